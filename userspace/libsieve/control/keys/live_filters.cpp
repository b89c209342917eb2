// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/live_filters.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "libsieve/build/key_changes.hpp"
#include "libsieve/control/access/hold_lock.hpp"
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

Result<OpenFilter> open_filter(Kernel& kernel, std::uint32_t map_id, bool verified) {
    OpenFilter open{.facts = {.map_id = map_id}, .filter = nullptr};
    SIEVE_ASSIGN(open.filter, kernel.open_filter(map_id));
    const sieve_lookup& lookup = open.filter->lookup();
    open.facts.fields = lookup.fields;
    open.facts.lines = open.filter->lines().size();
    open.facts.changeable = kind_of(lookup).facts().changes_live && kind_of(lookup).exact() == nullptr &&
                            lookup.probes == 0 && !verified;
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

Result<FilterChanged> change_filter(OpenFilter& open, const std::string& set,
                                    const DifferenceFor& difference_for, bool rates) {
    FilterChanged changed;
    if (const KeyDifference* difference = difference_for(open.facts)) {
        changed.touched = true;
        if (difference->removed.fields() != open.facts.fields || !open.facts.changeable)
            return invalid_request(fmt::format("set {}: its filter on {} cannot take single keys", set,
                                               open.facts.hook.interface));
        SIEVE_ASSIGN(const DifferenceReport applied,
                     apply_difference(open.filter->lookup(), open.filter->file(), open.filter->lines(),
                                      difference->removed, difference->added, rates));
        changed.done = applied.done;
        changed.no_room = applied.no_room;
        changed.absent = applied.absent;
        changed.expected_fpr = applied.expected_fpr;
        changed.mistaken = matches_any(*open.filter, difference->strangers);
        read_header(open);
    }
    changed.filter = open.facts;
    return changed;
}

} // namespace

struct LiveFilters::Parts {
    Held lock;
    std::string set;
    std::vector<OpenFilter> filters{};
};

LiveFilters::LiveFilters(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LiveFilters::LiveFilters(LiveFilters&&) noexcept = default;
LiveFilters& LiveFilters::operator=(LiveFilters&&) noexcept = default;
LiveFilters::~LiveFilters() = default;

Result<LiveFilters> LiveFilters::hold(Kernel& kernel, std::string set, const Observer& observer) {
    SIEVE_ASSIGN(Held lock, hold_lock(kernel, observer));
    auto parts = std::make_unique<Parts>(Parts{.lock = std::move(lock), .set = std::move(set)});
    SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks, hooks_of(kernel, {}));
    for (const kernel::Hook& hook : hooks) {
        if (!hook.speaks_our_version()) continue;
        const kernel::TableInForce table = kernel.read_table(hook);
        const kernel::SetInForce* found = table.find(parts->set);
        if (found == nullptr) continue;
        // Two hooks may share a map.
        if (std::ranges::any_of(parts->filters,
                                [&](const OpenFilter& other) { return other.facts.map_id == found->map_id; }))
            continue;
        SIEVE_ASSIGN(OpenFilter open, open_filter(kernel, found->map_id, found->exact_id != 0));
        open.facts.hook = {.interface = hook.interface.name, .point = hook.point};
        parts->filters.push_back(std::move(open));
    }
    return LiveFilters(std::move(parts));
}

Result<std::vector<FilterChanged>> LiveFilters::change(const DifferenceFor& difference_for, bool rates) {
    std::vector<FilterChanged> done;
    bool any = false;
    for (OpenFilter& open : parts_->filters) {
        Result<FilterChanged> changed = change_filter(open, parts_->set, difference_for, rates);
        if (!changed && !any) return tl::unexpected(std::move(changed.error()));
        if (!changed) return unfinished("some filters have the change, not all", changed.error());
        any = any || changed->touched;
        done.push_back(std::move(*changed));
    }
    return done;
}

Result<FilterChanged> change_coming_filter(Kernel& kernel, const std::string& set, std::uint32_t map_id,
                                           const DifferenceFor& difference_for) {
    SIEVE_ASSIGN(OpenFilter open, open_filter(kernel, map_id, false));
    return change_filter(open, set, difference_for, false);
}

} // namespace sieve::control
