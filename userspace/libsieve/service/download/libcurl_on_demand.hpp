// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// libcurl is opened when a function of it is called first. A process that cannot open it then ends, as one
// does whose libraries are not there. Whoever must not end, the service, asks beforehand.
#pragma once

#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Opens libcurl. Error: it is not installed, or there is no memory or no file descriptor for it now.
[[nodiscard]] Status libcurl_is_there();

} // namespace sieve::service
