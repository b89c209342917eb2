// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/expire_keys.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include <sieve/inserted.h>

#include "libsieve/build/key_changes.hpp"
#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/keys/changeable_set.hpp"
#include "libsieve/control/keys/exact_set.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/results/unfinished.hpp"

namespace sieve::control {

namespace {

Result<std::vector<kernel::NotedKey>> ending_keys(Filters& kernel, const kernel::SetInForce& set) {
    if (set.inserted_id == 0) return std::vector<kernel::NotedKey>();
    SIEVE_ASSIGN(const std::unique_ptr<RunningKeys> inserted, kernel.open_inserted(set.inserted_id));
    SIEVE_ASSIGN(std::vector<kernel::NotedKey> keys, inserted->all());
    std::erase_if(keys, [](const kernel::NotedKey& one) { return one.note.end == 0; });
    return keys;
}

// Entries of the set that have ended for packets, and still take room.
Result<std::uint64_t> ended_entries(Filters& kernel, const kernel::SetInForce& set) {
    SIEVE_ASSIGN(const kernel::FilterHeader header, kernel.read_filter(set.map_id));
    if (!lists_and_changes(header.lookup)) return std::uint64_t{0};
    SIEVE_ASSIGN(const std::unique_ptr<RunningFilter> filter, kernel.open_filter(set.map_id));
    return count_ending(*filter).ended;
}

// When the first key of these hooks ends, as in KeyNote. Keys that end for packets by themselves count once
// they have ended.
Result<std::optional<std::uint64_t>> first_end(Kernel& kernel, const std::vector<kernel::Hook>& hooks) {
    std::optional<std::uint64_t> first;
    for (const kernel::Hook& hook : hooks) {
        if (!hook.speaks_our_version()) continue;
        for (const kernel::SetInForce& set : kernel.read_table(hook).sets) {
            SIEVE_ASSIGN(const std::vector<kernel::NotedKey> keys, ending_keys(kernel, set));
            for (const kernel::NotedKey& one : keys)
                first = std::min(first.value_or(one.note.end), one.note.end);
            SIEVE_ASSIGN(const std::uint64_t ended, ended_entries(kernel, set));
            if (ended > 0) first = 0;
        }
    }
    return first;
}

// A controller that died may have left open whether it inserted a key. As long as nobody has changed the
// filter since, a match tells: the key did not match before. So this is done before any other change.
Status settle(Filters& kernel, const kernel::SetInForce& set, const std::vector<kernel::NotedKey>& keys) {
    const auto open_question = [](const kernel::NotedKey& one) {
        return one.note.state == SIEVE_INSERTED_COMING;
    };
    if (set.exact_id != 0 || std::none_of(keys.begin(), keys.end(), open_question)) return {};
    SIEVE_ASSIGN(const std::unique_ptr<RunningFilter> filter, kernel.open_filter(set.map_id));
    SIEVE_ASSIGN(const std::unique_ptr<RunningKeys> notes, kernel.open_inserted(set.inserted_id));
    const sieve_lookup& lookup = filter->lookup();
    const StoredKeys stored(lookup, filter->probes());
    for (const kernel::NotedKey& one : keys) {
        if (!open_question(one)) continue;
        bool any = false, all = true;
        stored.for_each(one.key, [&](const sieve_key& key) {
            const bool holds = kind_of(lookup).holds(lookup, stored.hash(key), filter->lines().data());
            any = any || holds;
            all = all && holds;
        });
        if (!any) {
            SIEVE_TRY(notes->erase(one.key));
            continue;
        }
        // Of a prefix with several stored keys, some may have matched before: nobody knows how many came.
        const bool in = all && stored.count(one.key) == 1;
        SIEVE_TRY(notes->put(one.key,
                             {.end = one.note.end, .state = in ? SIEVE_INSERTED_IN : SIEVE_INSERTED_UNSURE}));
    }
    return {};
}

// Nothing if no key of the set is overdue.
Result<std::optional<ExpiredKeys>> expire_keys_of(Kernel& kernel, const kernel::Hook& hook,
                                                  const kernel::SetInForce& set) {
    SIEVE_ASSIGN(std::vector<kernel::NotedKey> overdue, ending_keys(kernel, set));
    SIEVE_TRY(settle(kernel, set, overdue));
    const std::uint64_t now = kernel.boot_time();
    std::erase_if(overdue, [now](const kernel::NotedKey& one) { return one.note.end > now; });
    if (overdue.empty()) return std::optional<ExpiredKeys>();
    SIEVE_ASSIGN(const OpenSet open, open_changeable(kernel, hook.interface.name, set));
    std::vector<sieve_key> entries;
    for (const kernel::NotedKey& one : overdue) entries.push_back(one.key);
    open.notes->expire();
    SIEVE_ASSIGN(const KeyChangeReport report,
                 sieve::change_keys(open.stored, open.filter->lookup(), open.filter->file(),
                                    open.filter->lines(), entries, KeyChange::erase, {}, open.notes.get()));
    return std::optional(ExpiredKeys{.hook = {.interface = hook.interface.name, .point = hook.point},
                                     .set = set.name,
                                     .taken_out = report.done - open.notes->unsure(),
                                     .unsure = open.notes->unsure()});
}

// Makes room in the sets of a hook whose keys end by themselves.
Status sweep_at(Kernel& kernel, const kernel::Hook& hook, std::vector<ExpiredKeys>& done) {
    for (const kernel::SetInForce& set : kernel.read_table(hook).sets) {
        SIEVE_ASSIGN(const std::uint64_t ended, ended_entries(kernel, set));
        if (ended == 0) continue;
        SIEVE_ASSIGN(const std::uint64_t swept, sweep_exact_set(kernel, set));
        done.push_back({.hook = {.interface = hook.interface.name, .point = hook.point},
                        .set = set.name,
                        .taken_out = swept});
    }
    return {};
}

} // namespace

Result<std::vector<ExpiredKeys>> expire_keys_at(Kernel& kernel, const kernel::Hook& hook) {
    std::vector<ExpiredKeys> done;
    for (const kernel::SetInForce& set : kernel.read_table(hook).sets) {
        auto expired = expire_keys_of(kernel, hook, set);
        if (!expired && done.empty()) return tl::unexpected(std::move(expired.error()));
        if (!expired)
            return unfinished("some keys whose time is over were taken out, not all", expired.error());
        if (*expired) done.push_back(std::move(**expired));
    }
    return done;
}

Result<std::vector<ExpiredKeys>> expire_keys(Kernel& kernel, const HookName& name, const Observer& observer) {
    {
        SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks, hooks_of(kernel, name));
        // Whoever names an interface must not take a program that cannot be read for one without such keys.
        if (!name.interface.empty())
            for (const kernel::Hook& hook : hooks) SIEVE_TRY(kernel::refuse_unless_ours(hook));
        SIEVE_ASSIGN(const std::optional<std::uint64_t> first, first_end(kernel, hooks));
        if (!first || *first > kernel.boot_time()) return std::vector<ExpiredKeys>();
    }
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks, hooks_of(kernel, name));
    std::vector<ExpiredKeys> done;
    for (const kernel::Hook& hook : hooks) {
        if (!hook.speaks_our_version()) continue;
        auto more = expire_keys_at(kernel, hook);
        if (!more && done.empty()) return tl::unexpected(std::move(more.error()));
        if (!more) return unfinished("some keys whose time is over were taken out, not all", more.error());
        done.insert(done.end(), std::make_move_iterator(more->begin()), std::make_move_iterator(more->end()));
        const Status swept = sweep_at(kernel, hook, done);
        if (!swept && done.empty()) return tl::unexpected(swept.error());
        if (!swept) return unfinished("some keys whose time is over were taken out, not all", swept.error());
    }
    return done;
}

Result<std::optional<std::chrono::nanoseconds>> time_to_next_end(Kernel& kernel, const HookName& name) {
    SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks, hooks_of(kernel, name));
    SIEVE_ASSIGN(const std::optional<std::uint64_t> first, first_end(kernel, hooks));
    if (!first) return std::nullopt;
    const std::uint64_t now = kernel.boot_time();
    return std::chrono::nanoseconds(*first > now ? *first - now : 0);
}

} // namespace sieve::control
