// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/in_force.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace sieve::control {

Result<HookName> choose_hook(Kernel& kernel, const std::string& name, std::optional<kernel::HookPoint> point,
                             const std::string& set) {
    if (point) return HookName{.interface = name, .point = *point};
    SIEVE_ASSIGN(const kernel::Interface interface, kernel.find_interface(name));
    std::vector<kernel::HookPoint> ours;
    std::vector<kernel::HookPoint> with_set;
    for (const kernel::HookPoint each : kernel::all_hook_points) {
        SIEVE_ASSIGN(const kernel::Hook hook, kernel.read_hook(interface, each));
        if (!hook.ours) continue;
        ours.push_back(each);
        if (!set.empty() && hook.speaks_our_version() && kernel.read_table(hook).find(set) != nullptr)
            with_set.push_back(each);
    }
    if (ours.empty()) return HookName{.interface = name};
    if (ours.size() == 1) return HookName{.interface = name, .point = ours.front()};
    if (with_set.size() == 1) return HookName{.interface = name, .point = with_set.front()};
    std::vector<std::string> names;
    for (const kernel::HookPoint each : with_set.empty() ? ours : with_set)
        names.emplace_back(kernel::hook_point_name(each));
    return failure(ErrorKind::which_hook,
                   fmt::format("{} has {} at several hooks: {}", name,
                               with_set.empty() ? std::string("the program") : "set " + set,
                               fmt::join(names, ", ")),
                   {.interface = name, .set = set});
}

Result<kernel::Hook> find_ours(Kernel& kernel, const HookName& name) {
    SIEVE_ASSIGN(const kernel::Interface interface, kernel.find_interface(name.interface));
    SIEVE_ASSIGN(kernel::Hook hook, kernel.read_hook(interface, name.point));
    SIEVE_TRY(kernel::refuse_unless_ours(hook));
    return hook;
}

Result<TableInForce> table_with(Kernel& kernel, const kernel::Hook& hook, const std::string& name) {
    const kernel::LiveTable live = kernel.read_table(hook);
    TableInForce found;
    found.table.default_action = live.default_action;
    std::vector<std::string> names;
    bool there = false;
    for (const kernel::LiveSet& set : live.sets) {
        if (set.name == name) {
            there = true;
            found.index = found.table.sets.size();
            found.set = set;
        }
        names.push_back(set.name);
        found.table.sets.push_back(
            {.name = set.name, .action = set.action, .map_fd = -1, .target = set.target});
    }
    if (there) return found;
    const std::string in_force = names.empty()       ? "no set is"
                                 : names.size() == 1 ? names.front() + " is"
                                                     : fmt::format("{} are", fmt::join(names, ", "));
    return failure(ErrorKind::no_such_set,
                   fmt::format("{}: set {} is not in force; {}", hook.interface.name, name, in_force),
                   {.interface = hook.interface.name, .set = name, .in_force = std::move(names)});
}

} // namespace sieve::control
