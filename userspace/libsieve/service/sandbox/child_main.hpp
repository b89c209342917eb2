// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The child's side of a refresh, or of a list that a command reads: what a program that starts such children
// runs when it was executed as one.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Work for children beside that with lists, which the program names in its TaskOrders.
struct ChildTask {
    const char* name;
    // Runs in the confined child. libcurl's global state is there. What cannot be done is reported.
    std::function<Status(const std::string& message)> work;
};

// The first thing that main() of such a program calls, before it starts a thread. Nothing: this is no child.
// Else the work was done, and main() returns the value.
[[nodiscard]] std::optional<int> run_as_child(int argc, char** argv, std::span<const ChildTask> tasks = {});

} // namespace sieve::service
