// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A network namespace without a name that lasts as long as one piece of work.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

// Runs `work` in a thread with its own network and mount namespaces, where /sys shows that network. The
// kernel removes both when the thread ends, however it ends.
Status in_private_network(const std::function<Status()>& work);

// Finds a program in PATH, runs it to its end, and returns the seconds that it took. An error if its exit
// code is not 0. `input`, if not empty, becomes its standard input. Its output is discarded, or goes to
// `output`.
Result<double> run_tool(const std::vector<std::string>& arguments, const std::string& input = {},
                        const std::string& output = {});

// True if a program of that name is in PATH, or in the usual directories if PATH is unset.
[[nodiscard]] bool have_tool(const std::string& name);

// Ties the calling thread to a processor. Ignores errors.
void pin_to_processor(unsigned processor);

} // namespace sieve::bench
