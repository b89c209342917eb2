// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a user of this command line can do about an error or a warning, in terms of its commands and flags.
#pragma once

#include <string>

#include "libsieve/control/spec/warning.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::cli {

// The advice for an error of this kind. Empty if the message says it all. `confirms`: the command has
// --confirm; those that make a change to keys or joints in force do not.
[[nodiscard]] std::string remedy(const Error& error, bool confirms = true);

// The message, followed by the advice.
[[nodiscard]] std::string error_text(const Error& error, bool confirms = true);
[[nodiscard]] std::string warning_text(const control::Warning& warning);

} // namespace sieve::cli
