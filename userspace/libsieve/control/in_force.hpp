// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is in force on a hook, as the starting point of a change.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "libsieve/control/kernel.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

// One hook of one interface.
struct HookName {
    std::string interface {};
    kernel::HookPoint point = kernel::HookPoint::xdp;
};

// The hook of the interface that a caller means who named no point: the only one where our program runs; of
// several, the only one whose table has `set`. XDP if our program runs at none, so that what follows says so.
// Error which_hook if the choice is not clear.
[[nodiscard]] Result<HookName> choose_hook(Kernel& kernel, const std::string& interface,
                                           std::optional<kernel::HookPoint> point,
                                           const std::string& set = {});

// The hook, if our program runs there and speaks our version; else not_attached or other_version.
[[nodiscard]] Result<kernel::Hook> find_ours(Kernel& kernel, const HookName& name);

// The table in force as a wish, in which one set is to be changed.
struct TableInForce {
    kernel::WantedTable table; // all as it is
    std::size_t index = 0;     // of the set in question
    kernel::LiveSet set;       // the set in question as it is in force

    [[nodiscard]] bool verified() const { return set.exact_id != 0; }
};

// Error no_such_set, with the names that there are, if no set has the name.
[[nodiscard]] Result<TableInForce> table_with(Kernel& kernel, const kernel::Hook& hook,
                                              const std::string& set);

} // namespace sieve::control
