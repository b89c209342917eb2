// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What holds for all commands: the options in front of them, the exit code, and what is said on the way.
#pragma once

#include <string>

#include "libsieve/control/observer.hpp"
#include "libsieve/util/progress.hpp"
#include "xdp-sieve/exit_code.hpp"

namespace sieve::cli {

struct Context {
    bool json = false;
    bool quiet = false;
    bool verbose = false;
    Exit exit = Exit::done;
    bool changed = false; // what is in force was changed: from now on no exit code may deny it
};

// Prints a remark to standard error unless --quiet.
void remark(const Context& context, const std::string& text);

// A progress bar on standard error if that is a terminal, quiet is off and the work lasts over a second.
Progress progress_bar(const Context& context);

// Both, and whom is being waited for, for the library.
control::Observer observer(const Context& context);

} // namespace sieve::cli
