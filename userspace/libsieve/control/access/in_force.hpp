// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is in force at a hook: the starting point of a change.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/hooks.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// A hook, as callers name it. Without a point, a change applies to the one hook where our program runs, and
// reading covers all hooks of the interface. Without an interface, reading covers all interfaces.
struct HookName {
    std::string interface {};
    std::optional<kernel::HookPoint> point{};
};

// Every hook that the name covers, whatever runs there, ordered by interface and then by hook point. Without
// an interface, the name covers all interfaces of this network namespace; one that goes away during the call
// is left out.
[[nodiscard]] Result<std::vector<kernel::Hook>> read_hooks(Hooks& kernel, const HookName& name);

// The hooks among them where our program runs, including programs that speak another version.
[[nodiscard]] Result<std::vector<kernel::Hook>> hooks_of(Hooks& kernel, const HookName& name);

// The hook, if our program runs there and speaks our version; otherwise not_attached or other_version. If the
// program runs at several hooks and no point was named, the result is the hook where a set named `set` is in
// force. Error several_hooks if that does not decide.
[[nodiscard]] Result<kernel::Hook> find_ours(Hooks& kernel, const HookName& name,
                                             const std::string& set = {});

// The table in force as a wanted table: putting it in force would change nothing.
[[nodiscard]] kernel::WantedTable wanted_of(const kernel::TableInForce& table);

// The same, in which one set is about to change.
struct TableWithSet {
    kernel::WantedTable table; // equal to the table in force
    std::size_t index = 0;     // of the set in question
    kernel::SetInForce set;    // the set in question, as it is in force

    [[nodiscard]] bool verified() const { return set.exact_id != 0; }
};

// Error no_such_set if no set has the name; its message lists the names in force.
[[nodiscard]] Result<TableWithSet> table_with(Hooks& kernel, const kernel::Hook& hook,
                                              const std::string& set);

} // namespace sieve::control
