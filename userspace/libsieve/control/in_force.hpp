// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is in force on a hook, as the starting point of a change.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/kernel.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

// One hook of one interface. Without a point, a change means the one hook where our program runs, and reading
// covers all hooks of the interface. Without an interface, reading covers all interfaces.
struct HookName {
    std::string interface {};
    std::optional<kernel::HookPoint> point{};
};

// Every hook that the name covers, whatever runs there, ordered by interface and then by hook point. Without
// an interface: those of all interfaces of this network namespace; one that goes away during the call is left
// out.
[[nodiscard]] Result<std::vector<kernel::Hook>> read_hooks(Kernel& kernel, const HookName& name);

// Those of them where our program runs, also if it speaks another version.
[[nodiscard]] Result<std::vector<kernel::Hook>> hooks_of(Kernel& kernel, const HookName& name);

// The hook, if our program runs there and speaks our version; else not_attached or other_version. If it runs
// at several and none was named, the one where a set of that name is in force; several_hooks if that does not
// decide.
[[nodiscard]] Result<kernel::Hook> find_ours(Kernel& kernel, const HookName& name,
                                             const std::string& set = {});

// The table in force as a wish, in which one set is to be changed.
struct TableWithSet {
    kernel::WantedTable table; // all as it is
    std::size_t index = 0;     // of the set in question
    kernel::SetInForce set;    // the set in question as it is in force

    [[nodiscard]] bool verified() const { return set.exact_id != 0; }
};

// Error no_such_set, with the names that there are, if no set has the name.
[[nodiscard]] Result<TableWithSet> table_with(Kernel& kernel, const kernel::Hook& hook,
                                              const std::string& set);

} // namespace sieve::control
