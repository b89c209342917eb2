// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What all commands share: the options in front of the command, the exit code, and the remarks on the way.
#pragma once

#include <functional>
#include <string>

#include "front-end/console/exit_code.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/util/parallel/progress.hpp"

namespace sieve::cli {

struct Context {
    bool json = false;
    bool quiet = false;
    bool verbose = false;
    bool no_sandbox = false; // this process reads lists itself, whatever its privileges
    Exit exit = Exit::done;
    bool changed = false; // what is in force was changed; from now on, no exit code may say otherwise
};

// Prints a remark to standard error unless --quiet.
void remark(const Context& context, const std::string& text);

// One of front-end/console/progress_bar.hpp.
Progress progress_bar(const Context& context);

// Makes a bar for each of several jobs.
std::function<Progress()> progress_bars(const Context& context);

// A bar and remarks as an observer for the library, which also reports the controller that we wait for.
control::Observer observer(const Context& context);

} // namespace sieve::cli
