// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The child's side of a refresh: what a program that starts refreshes runs when it was executed as the child
// of one.
#pragma once

#include <optional>

namespace sieve::service {

// The first thing that main() of such a program calls, before it starts a thread. Nothing: this is no child.
// Else the work was done, and main() returns the value.
[[nodiscard]] std::optional<int> run_as_child(int argc, char** argv);

} // namespace sieve::service
