// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/top_keys.hpp"

#include <limits>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/access/hold_lock.hpp"

namespace sieve::control {

namespace {

tl::unexpected<Error> not_counted(const kernel::Hook& hook) {
    return failure(ErrorKind::no, fmt::format("{}: matches are not counted by key", hook.interface.name),
                   {.interface = hook.interface.name});
}

struct NamedSet {
    std::string name;
    std::uint32_t fields = 0;
};

// The sets in force, by slot. A set whose filter leaves during the call is left out.
std::map<std::uint32_t, NamedSet> sets_by_slot(Kernel& kernel, const kernel::Hook& hook) {
    std::map<std::uint32_t, NamedSet> sets;
    for (const kernel::SetInForce& set : kernel.read_table(hook).sets)
        if (const auto filter = kernel.read_filter(set.map_id); filter)
            sets[set.slot] = {.name = set.name, .fields = filter->lookup.fields};
    return sets;
}

} // namespace

double TopKeys::share(const TopKey& key) const {
    return matches == 0 ? 0 : static_cast<double>(key.packets) / static_cast<double>(matches);
}

Result<bool> count_keys(Kernel& kernel, const HookName& name, bool reset, const Observer& observer) {
    {
        SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name));
        if (kernel.watching(hook).counts_keys && !reset) return false;
    }
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name));
    if (kernel.watching(hook).counts_keys && !reset) return false;
    SIEVE_TRY(kernel.start_tally(hook));
    return true;
}

Status stop_counting_keys(Kernel& kernel, const HookName& name, const Observer& observer) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name));
    if (!kernel.watching(hook).counts_keys) return not_counted(hook);
    return kernel.stop_tally(hook);
}

Result<TopKeys> read_top_keys(Kernel& kernel, const HookName& name, std::size_t most) {
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name));
    if (!kernel.watching(hook).counts_keys) return not_counted(hook);
    SIEVE_ASSIGN(const kernel::Tally tally, kernel.read_tally(hook, std::numeric_limits<std::size_t>::max()));
    const std::map<std::uint32_t, NamedSet> sets = sets_by_slot(kernel, hook);
    TopKeys top{.point = hook.point,
                .since = tally.since,
                .matches = tally.total,
                .error = kernel::tally_error * static_cast<double>(tally.total),
                .error_chance = kernel::tally_failure()};
    for (const kernel::HeavyKey& heavy : tally.keys) {
        if (top.keys.size() == most) break;
        if (const auto set = sets.find(heavy.slot); set != sets.end())
            top.keys.push_back({.set = set->second.name,
                                .fields = set->second.fields,
                                .key = heavy.key,
                                .packets = heavy.packets});
    }
    return top;
}

} // namespace sieve::control
