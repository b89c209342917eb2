// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a user of this command line can do about an error or a warning: in its words, with its flags.
#pragma once

#include <string>

#include "libsieve/control/warning.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::cli {

// The advice for an error of this kind; empty if its message says all there is to say.
[[nodiscard]] std::string remedy(const Error& error);

// The message with the advice behind it.
[[nodiscard]] std::string error_text(const Error& error);
[[nodiscard]] std::string warning_text(const control::Warning& warning);

} // namespace sieve::cli
