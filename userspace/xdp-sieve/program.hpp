// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The command line as a program: what main() does.
#pragma once

#include <span>

#include "xdp-sieve/command_line.hpp"

namespace sieve::cli {

// Runs the command that the arguments name, one of those that all have or one of `more`. Returns the exit
// code.
[[nodiscard]] int run_program(int argc, char** argv, std::span<const Command> more);

} // namespace sieve::cli
