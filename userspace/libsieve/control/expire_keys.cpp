// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/expire_keys.hpp"

#include <iterator>
#include <memory>
#include <utility>

#include "libsieve/build/key_changes.hpp"
#include "libsieve/control/changeable_set.hpp"
#include "libsieve/control/hold_lock.hpp"
#include "libsieve/util/unfinished.hpp"

namespace sieve::control {

namespace {

Result<std::vector<sieve_key>> overdue_keys(Kernel& kernel, const kernel::SetInForce& set) {
    std::vector<sieve_key> overdue;
    if (set.inserted_id == 0) return overdue;
    SIEVE_ASSIGN(const std::unique_ptr<RunningKeys> inserted, kernel.open_inserted(set.inserted_id));
    SIEVE_ASSIGN(const std::vector<kernel::NotedKey> all, inserted->all());
    const std::uint64_t now = kernel.boot_time();
    for (const kernel::NotedKey& one : all)
        if (one.note.end != 0 && one.note.end <= now) overdue.push_back(one.key);
    return overdue;
}

Result<bool> any_overdue(Kernel& kernel, const std::vector<kernel::Hook>& hooks) {
    for (const kernel::Hook& hook : hooks) {
        if (!hook.speaks_our_version()) continue;
        for (const kernel::SetInForce& set : kernel.read_table(hook).sets) {
            SIEVE_ASSIGN(const std::vector<sieve_key> overdue, overdue_keys(kernel, set));
            if (!overdue.empty()) return true;
        }
    }
    return false;
}

} // namespace

Result<std::vector<ExpiredKeys>> expire_keys_at(Kernel& kernel, const kernel::Hook& hook) {
    std::vector<ExpiredKeys> done;
    for (const kernel::SetInForce& set : kernel.read_table(hook).sets) {
        SIEVE_ASSIGN(const std::vector<sieve_key> overdue, overdue_keys(kernel, set));
        if (overdue.empty()) continue;
        SIEVE_ASSIGN(const OpenSet open, open_changeable(kernel, hook.interface.name, set));
        KeySet keys(open.filter->lookup().fields);
        for (const sieve_key& key : overdue) keys.add(key);
        open.notes->expire();
        auto report = sieve::change_keys(open.filter->lookup(), open.filter->file(), open.filter->lines(),
                                         keys, KeyChange::erase, {}, open.notes.get());
        if (!report && done.empty()) return tl::unexpected(std::move(report.error()));
        if (!report)
            return unfinished("some keys whose time is over were taken out, not all", report.error());
        done.push_back({.hook = {.interface = hook.interface.name, .point = hook.point},
                        .set = set.name,
                        .taken_out = report->done - open.notes->unsure(),
                        .unsure = open.notes->unsure()});
    }
    return done;
}

Result<std::vector<ExpiredKeys>> expire_keys(Kernel& kernel, const HookName& name, const Observer& observer) {
    {
        SIEVE_ASSIGN(const std::vector<kernel::Hook> hooks, hooks_of(kernel, name));
        SIEVE_ASSIGN(const bool any, any_overdue(kernel, hooks));
        if (!any) return std::vector<ExpiredKeys>();
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
    }
    return done;
}

} // namespace sieve::control
