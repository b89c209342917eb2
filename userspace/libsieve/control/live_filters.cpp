// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/live_filters.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "libsieve/build/key_changes.hpp"
#include "libsieve/control/hold_lock.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/unfinished.hpp"

namespace sieve::control {

namespace {

struct OpenFilter {
    LiveFilter facts;
    std::unique_ptr<RunningFilter> filter;
};

void read_header(OpenFilter& open) {
    const sieve_file& file = open.filter->file();
    open.facts.identity[0] = file.identity[0];
    open.facts.identity[1] = file.identity[1];
    open.facts.changes = file.changes;
    open.facts.keys = file.keys;
}

Result<OpenFilter> open_filter(Kernel& kernel, const kernel::Hook& hook, const kernel::SetInForce& set) {
    OpenFilter open{
        .facts = {.hook = {.interface = hook.interface.name, .point = hook.point}, .map_id = set.map_id},
        .filter = nullptr};
    SIEVE_ASSIGN(open.filter, kernel.open_filter(set.map_id));
    const sieve_lookup& lookup = open.filter->lookup();
    open.facts.fields = lookup.fields;
    open.facts.lines = open.filter->lines().size();
    open.facts.changeable = kind_of(lookup).facts().changes_live && kind_of(lookup).exact() == nullptr &&
                            lookup.probes == 0 && set.exact_id == 0;
    read_header(open);
    return open;
}

bool matches_any(RunningFilter& filter, const std::vector<sieve_key>& keys) {
    const sieve_lookup& lookup = filter.lookup();
    return std::any_of(keys.begin(), keys.end(), [&](const sieve_key& key) {
        return kind_of(lookup).holds(lookup, sieve_hash_key(&key, lookup.hash_key, lookup.fields),
                                     filter.lines().data());
    });
}

} // namespace

Result<std::vector<FilterChanged>>
change_live_filters(Kernel& kernel, const std::string& set,
                    const std::function<const KeyDifference*(const LiveFilter& filter)>& difference_for,
                    bool rates, const Observer& observer) {
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks, hooks_of(kernel, {}));
    std::vector<OpenFilter> filters;
    for (const kernel::Hook& hook : hooks) {
        if (!hook.speaks_our_version()) continue;
        const kernel::TableInForce table = kernel.read_table(hook);
        const kernel::SetInForce* found = table.find(set);
        if (found == nullptr) continue;
        SIEVE_ASSIGN(OpenFilter open, open_filter(kernel, hook, *found));
        // Two hooks may share a map.
        const bool known = std::any_of(filters.begin(), filters.end(), [&](const OpenFilter& other) {
            return other.facts.map_id == open.facts.map_id;
        });
        if (!known) filters.push_back(std::move(open));
    }
    std::vector<FilterChanged> done;
    for (OpenFilter& open : filters) {
        FilterChanged changed;
        const KeyDifference* difference = difference_for(open.facts);
        if (difference != nullptr) {
            changed.touched = true;
            if (difference->removed.fields() != open.facts.fields || !open.facts.changeable)
                return invalid_request(fmt::format("set {}: its filter on {} cannot take single keys", set,
                                                   open.facts.hook.interface));
            auto applied = apply_difference(open.filter->lookup(), open.filter->file(), open.filter->lines(),
                                            difference->removed, difference->added, rates);
            if (!applied && done.empty()) return tl::unexpected(std::move(applied.error()));
            if (!applied) return unfinished("some filters have the change, not all", applied.error());
            changed.done = applied->done;
            changed.no_room = applied->no_room;
            changed.absent = applied->absent;
            changed.expected_fpr = applied->expected_fpr;
            changed.mistaken = matches_any(*open.filter, difference->strangers);
            read_header(open);
        }
        changed.filter = open.facts;
        done.push_back(std::move(changed));
    }
    return done;
}

} // namespace sieve::control
