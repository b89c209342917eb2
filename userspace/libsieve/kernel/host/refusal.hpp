// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Errors for what the kernel refused, with a remedy.
#pragma once

#include <string>
#include <string_view>

#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// "WHAT: TEXT (errno N); REMEDY", of kind not_permitted for EPERM and EACCES, else kernel_refused. `error` is
// an errno value of either sign. Without `remedy` the usual one for that errno is used: more memory, a newer
// kernel.
[[nodiscard]] tl::unexpected<Error> refusal(std::string_view what, int error, std::string_view remedy = {});

} // namespace sieve::kernel
