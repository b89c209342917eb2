// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/access/in_force.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace sieve::control {

namespace {

bool has_set(Hooks& kernel, const kernel::Hook& hook, const std::string& set) {
    return hook.speaks_our_version() && kernel.read_table(hook).find(set) != nullptr;
}

Result<std::vector<kernel::Hook>> read_hooks_of(Hooks& kernel, const kernel::Interface& interface,
                                                std::optional<kernel::HookPoint> only) {
    std::vector<kernel::Hook> hooks;
    for (const kernel::HookPoint point : kernel::all_hook_points) {
        if (only && point != *only) continue;
        SIEVE_ASSIGN(kernel::Hook hook, kernel.read_hook(interface, point));
        hooks.push_back(std::move(hook));
    }
    return hooks;
}

tl::unexpected<Error> several(const std::string& interface, const std::vector<kernel::Hook>& hooks) {
    std::vector<std::string> names;
    for (const kernel::Hook& hook : hooks) names.emplace_back(kernel::hook_point_name(hook.point));
    std::string message =
        fmt::format("{} runs xdp-sieve at several hooks: {}", interface, fmt::join(names, ", "));
    return failure(ErrorKind::several_hooks, std::move(message),
                   {.interface = interface, .hooks = std::move(names)});
}

} // namespace

Result<std::vector<kernel::Hook>> read_hooks(Hooks& kernel, const HookName& name) {
    if (!name.interface.empty()) {
        SIEVE_ASSIGN(const kernel::Interface interface, kernel.find_interface(name.interface));
        return read_hooks_of(kernel, interface, name.point);
    }
    std::vector<kernel::Hook> all;
    for (const kernel::Interface& interface : kernel.interfaces()) {
        Result<std::vector<kernel::Hook>> hooks = read_hooks_of(kernel, interface, name.point);
        if (!hooks && !kernel.find_interface(interface.name)) continue; // the interface has gone
        if (!hooks) return tl::unexpected(std::move(hooks.error()));
        std::move(hooks->begin(), hooks->end(), std::back_inserter(all));
    }
    return all;
}

Result<std::vector<kernel::Hook>> hooks_of(Hooks& kernel, const HookName& name) {
    SIEVE_ASSIGN(std::vector<kernel::Hook> hooks, read_hooks(kernel, name));
    std::erase_if(hooks, [](const kernel::Hook& hook) { return !hook.ours; });
    return hooks;
}

Result<kernel::Hook> find_ours(Hooks& kernel, const HookName& name, const std::string& set) {
    SIEVE_ASSIGN(std::vector<kernel::Hook> hooks, hooks_of(kernel, name));
    if (hooks.empty()) {
        SIEVE_ASSIGN(const kernel::Interface interface, kernel.find_interface(name.interface));
        SIEVE_ASSIGN(kernel::Hook hook,
                     kernel.read_hook(interface, name.point.value_or(kernel::HookPoint::xdp)));
        SIEVE_TRY(kernel::refuse_unless_ours(hook));
        return hook; // the program was attached meanwhile
    }
    if (hooks.size() > 1 && !set.empty()) {
        const auto with_set = [&](const kernel::Hook& hook) { return has_set(kernel, hook, set); };
        if (std::count_if(hooks.begin(), hooks.end(), with_set) == 1) {
            kernel::Hook hook = std::move(*std::find_if(hooks.begin(), hooks.end(), with_set));
            return hook;
        }
    }
    if (hooks.size() > 1) return several(name.interface, hooks);
    SIEVE_TRY(kernel::refuse_unless_ours(hooks.front()));
    return std::move(hooks.front());
}

kernel::WantedTable wanted_of(const kernel::TableInForce& table) {
    kernel::WantedTable wanted{.default_action = table.default_action,
                               .sets = {},
                               .unreadable = table.unreadable,
                               .replies = table.replies};
    for (const kernel::SetInForce& set : table.sets)
        wanted.sets.push_back({.name = set.name,
                               .action = set.action,
                               .map_fd = -1,
                               .target = set.target,
                               .burst = set.burst,
                               .keeps_replies_out = set.keeps_replies_out,
                               .condition = set.condition});
    return wanted;
}

Result<TableWithSet> table_with(Hooks& kernel, const kernel::Hook& hook, const std::string& name) {
    const kernel::TableInForce live = kernel.read_table(hook);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < live.sets.size(); i++) {
        if (live.sets[i].name == name)
            return TableWithSet{.table = wanted_of(live), .index = i, .set = live.sets[i]};
        names.push_back(live.sets[i].name);
    }
    const std::string in_force = names.empty()       ? "no set is"
                                 : names.size() == 1 ? names.front() + " is"
                                                     : fmt::format("{} are", fmt::join(names, ", "));
    return failure(ErrorKind::no_such_set,
                   fmt::format("{}: set {} is not in force; {}", hook.interface.name, name, in_force),
                   {.interface = hook.interface.name, .set = name, .in_force = std::move(names)});
}

} // namespace sieve::control
