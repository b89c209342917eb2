// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A network namespace without a name, for as long as a piece of work lasts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libsieve/util/result.hpp"

namespace sieve::bench {

// Runs `work` in a thread with a network and a mount namespace of its own, where /sys shows that network. The
// kernel takes all of it away when the thread ends, however it ends.
Status in_private_network(const std::function<Status()>& work);

// Runs a program to its end, found in PATH, and returns the seconds it took; an error if it does not end with
// 0. `input` becomes its standard input if not empty; what it prints goes nowhere, or to `output`.
Result<double> run_tool(const std::vector<std::string>& arguments, const std::string& input = {},
                        const std::string& output = {});

// True if a program of that name is in PATH or where administrators keep theirs.
[[nodiscard]] bool have_tool(const std::string& name);

// Ties the calling thread to a processor; errors are ignored.
void pin_to_processor(unsigned processor);

} // namespace sieve::bench
