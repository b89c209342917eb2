// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the kernel said no to, told so that a person can act on it.
#pragma once

#include <string>
#include <string_view>

#include "libsieve/util/result.hpp"

namespace sieve::kernel {

// "WHAT: TEXT (errno N); REMEDY", of kind not_permitted for EPERM and EACCES, else kernel_refused. `error` is
// an errno value of either sign. Without a remedy of its own the usual one for that errno is added: more
// memory, a newer kernel.
[[nodiscard]] tl::unexpected<Error> refusal(std::string_view what, int error, std::string_view remedy = {});

} // namespace sieve::kernel
