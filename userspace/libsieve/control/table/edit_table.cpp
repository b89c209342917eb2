// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/edit_table.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/safety/allowlist.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/control/safety/redirection.hpp"
#include "libsieve/control/safety/table_guard.hpp"
#include "libsieve/control/table/end_probation.hpp"
#include "libsieve/control/table/prepare.hpp"
#include "libsieve/control/table/replies.hpp"
#include "libsieve/util/results/unfinished.hpp"

namespace sieve::control {

namespace {

using Sets = std::vector<kernel::WantedSet>;

std::ptrdiff_t position_of(const Sets& sets, const std::string& name) {
    return std::find_if(sets.begin(), sets.end(), [&](const auto& set) { return set.name == name; }) -
           sets.begin();
}

// Where in `sets` the position is; an error if the set next to it is not in force.
Result<std::ptrdiff_t> index_of(Kernel& kernel, const kernel::Hook& hook, const Sets& sets,
                                const Position& position) {
    const auto end = static_cast<std::ptrdiff_t>(sets.size());
    switch (position.where) {
    case Position::Where::first:
        return 0;
    case Position::Where::last:
        return end;
    case Position::Where::before:
    case Position::Where::after:
        break;
    }
    const std::ptrdiff_t other = position_of(sets, position.other);
    if (other == end)
        SIEVE_TRY(table_with(kernel, hook, position.other)); // the error names the sets in force
    return position.where == Position::Where::before ? other : other + 1;
}

// The set that says at which hook the table is meant, if there are several hooks.
const std::string& set_at(const Position& position, const std::string& otherwise) {
    return position.other.empty() ? otherwise : position.other;
}

Result<SetAction> find_action(Kernel& kernel, const std::string& set, const WantedAction& action,
                              sieve_action default_action) {
    SetSpec spec;
    spec.name = set;
    spec.action = action;
    SIEVE_ASSIGN(const std::vector<SetAction> actions, find_actions(kernel, {&spec, 1}, default_action));
    return actions.front();
}

// Whether packets can reach the target of a set's action.
Status check_target(Kernel& kernel, const kernel::Hook& hook, const SetSpec& set) {
    return check_targets(kernel, {hook.interface, hook.point, hook.mode}, {&set, 1});
}

std::vector<Warning> warnings_of(Kernel& kernel, const kernel::Hook& hook, const SetSpec& set) {
    return target_warnings(kernel, {hook.interface, hook.point, hook.mode}, {&set, 1});
}

bool same_order(const kernel::TableInForce& now, const Sets& wanted) {
    return std::equal(now.sets.begin(), now.sets.end(), wanted.begin(), wanted.end(),
                      [](const auto& a, const auto& b) { return a.name == b.name; });
}

// Puts the edited table in force. The caller holds the lock.
Result<Edited> put(Kernel& kernel, const kernel::Hook& hook, const kernel::WantedTable& table) {
    Edited edited{.point = hook.point, .changed = true};
    for (const kernel::WantedSet& set : table.sets) edited.order.push_back(set.name);
    const auto begin = std::chrono::steady_clock::now();
    SIEVE_TRY(replace_table(kernel, hook, table, {}, {}));
    edited.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return edited;
}

Edited as_it_is(const kernel::Hook& hook, const kernel::TableInForce& now) {
    Edited edited{.point = hook.point};
    for (const kernel::SetInForce& set : now.sets) edited.order.push_back(set.name);
    return edited;
}

} // namespace

Result<SetEdited> edit_set(Kernel& kernel, const HookName& name, const std::string& set, const SetEdit& edit,
                           const Observer& observer, const Safety& safety) {
    if (!edit.action && !edit.position && !edit.keeps_replies_out && edit.condition.fields == 0)
        return invalid_request(fmt::format(
            "set {}: neither an action, nor a condition, nor a place in the order to change", set));
    if (edit.position && edit.position->other == set)
        return invalid_request(fmt::format("set {}: it cannot stand beside itself", set));
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name, set));
    SIEVE_ASSIGN(TableWithSet now, table_with(kernel, hook, set));
    const kernel::TableInForce before = kernel.read_table(hook);
    SetEdited done{.table = {}, .before = action_of(now.set), .now = action_of(now.set)};
    SetSpec spec;
    spec.name = set;
    spec.action = edit.action;
    kernel::WantedSet wanted = now.table.sets[now.index];
    if (edit.action) {
        SIEVE_ASSIGN(done.now, find_action(kernel, set, *edit.action, now.table.default_action));
        SIEVE_TRY(check_target(kernel, hook, spec));
        wanted.action = done.now.action;
        wanted.target = done.now.target;
        wanted.burst = done.now.burst;
    }
    // An action that drops nothing forgets what the set said about replies.
    done.now.keeps_replies_out = edit.keeps_replies_out.value_or(done.before.keeps_replies_out);
    if (done.now.keeps_replies_out && !may_drop(done.now.action)) {
        if (edit.keeps_replies_out)
            return invalid_request(fmt::format(
                "set {}: replies=drop is for a set that drops or limits, and the set's action is {}", set,
                action_name(done.now.action)));
        done.now.keeps_replies_out = false;
    }
    wanted.keeps_replies_out = done.now.keeps_replies_out;
    done.now.condition = edited(done.before.condition, edit.condition);
    if (const Status checked = check_condition(done.now.condition); !checked)
        return invalid_request(fmt::format("set {}: {}", set, checked.error().message));
    wanted.condition = done.now.condition;
    const bool other_action = done.now != done.before;
    wanted.fresh_counters = other_action && !edit.keep_counters;
    Sets& sets = now.table.sets;
    if (edit.position) {
        sets.erase(sets.begin() + static_cast<std::ptrdiff_t>(now.index));
        SIEVE_ASSIGN(const std::ptrdiff_t index, index_of(kernel, hook, sets, *edit.position));
        sets.insert(sets.begin() + index, wanted);
    } else {
        sets[now.index] = wanted;
    }
    if (!other_action && same_order(before, sets)) {
        done.table = as_it_is(hook, before);
        return done;
    }
    if (!edit.force) SIEVE_TRY(refuse_closing(name.interface, before, now.table));
    now.table.probation = safety.confirm_within;
    SIEVE_TRY(refuse_lockout(kernel, hook.interface.name, hook.point, {.table = now.table, .before = &before},
                             safety));
    SIEVE_ASSIGN(done.table, put(kernel, hook, now.table));
    if (other_action) done.table.warnings = warnings_of(kernel, hook, spec);
    return done;
}

Result<SetAdded> add_set(Kernel& kernel, const HookName& name, const SetSpec& spec, const Position& position,
                         bool force, const Observer& observer, const Safety& safety) {
    SIEVE_TRY(check_names({&spec, 1}));
    HookName at = name;
    struct Place {
        kernel::Hook hook;
        kernel::TableInForce before;
        kernel::WantedTable table; // without the set
        std::ptrdiff_t index = 0;
        SetAction action;
    };
    // Whatever can be refused without work is refused before the work, and again under the lock.
    const auto find_place = [&]() -> Result<Place> {
        SIEVE_ASSIGN(kernel::Hook hook, find_ours(kernel, at, set_at(position, {})));
        Place place{.hook = std::move(hook), .before = {}, .table = {}, .action = {}};
        place.before = kernel.read_table(place.hook);
        place.table = wanted_of(place.before);
        // A program that has had no table, such as one that `ip link` attached, passes what it cannot read.
        // The first set begins a table.
        if (place.before.sets.empty() && place.before.default_action == SIEVE_ACTION_PASS)
            place.table.unreadable = TableSpec{}.unreadable;
        if (place.before.find(spec.name) != nullptr)
            return invalid_request(fmt::format("{}: a set {} is in force already; a swap replaces its filter",
                                               name.interface, spec.name));
        if (place.table.sets.size() >= SIEVE_MAX_SETS)
            return invalid_request(fmt::format("{}: {} sets are in force, and the program takes no more",
                                               name.interface, SIEVE_MAX_SETS));
        SIEVE_ASSIGN(place.index, index_of(kernel, place.hook, place.table.sets, position));
        SIEVE_ASSIGN(const std::vector<SetAction> actions,
                     find_actions(kernel, {&spec, 1}, place.before.default_action));
        place.action = actions.front();
        SIEVE_TRY(check_target(kernel, place.hook, spec));
        SIEVE_TRY(refuse_on_probation(kernel, place.hook));
        return place;
    };
    {
        SIEVE_ASSIGN(const Place place, find_place());
        at.point = place.hook.point;
    }
    SIEVE_ASSIGN(PreparedSets prepared, prepare(kernel, *at.point, false, {&spec, 1}, observer, [&] {
                     return lockout_questions(safety, name.interface, *at.point);
                 }));
    ReadySet& set = prepared.sets.front();

    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(Place place, find_place());
    place.table.probation = safety.confirm_within;
    place.table.sets.insert(place.table.sets.begin() + place.index,
                            wanted_set(spec.name, place.action, set.maps));
    if (!force) SIEVE_TRY(refuse_closing(name.interface, place.before, place.table));
    SIEVE_TRY(refuse_lockout(
        kernel, *prepared.trial, place.hook.interface.name, place.hook.point,
        {.table = place.table, .fresh = {&set, 1}, .specs = {&spec, 1}, .before = &place.before}, safety));
    SIEVE_ASSIGN(Edited edited, put(kernel, place.hook, place.table));
    // The set is in force. An error from here on must not claim that it is not.
    const Status warned = without_throwing([&]() -> Status {
        edited.warnings = warnings_of(kernel, place.hook, spec);
        for (Warning& warning : allowlist_warnings({&set, 1}, place.table))
            edited.warnings.push_back(std::move(warning));
        return {};
    });
    if (!warned)
        return unfinished("the set is in force, but could not be checked for warnings", warned.error());
    return SetAdded{.table = std::move(edited), .set = std::move(set), .action = place.action};
}

Result<DefaultEdited> edit_default(Kernel& kernel, const HookName& name, sieve_action action, bool force,
                                   const Observer& observer, const Safety& safety) {
    if (action != SIEVE_ACTION_PASS && action != SIEVE_ACTION_DROP)
        return invalid_request("a default is pass or drop");
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name));
    const kernel::TableInForce before = kernel.read_table(hook);
    DefaultEdited done{.table = as_it_is(hook, before), .before = before.default_action};
    if (before.default_action == action) return done;
    for (const kernel::SetInForce& set : before.sets)
        if (action == SIEVE_ACTION_DROP && set.action == SIEVE_ACTION_LIMIT)
            return invalid_request(
                fmt::format("set {}: up to a limit matches take the default, so the default "
                            "cannot be drop",
                            set.name));
    kernel::WantedTable table = wanted_of(before);
    table.default_action = action;
    // A new default of drop lets replies pass; else they are as they were.
    const bool unasked = action == SIEVE_ACTION_DROP && before.replies == SIEVE_ACTION_DROP &&
                         hook.point != kernel::HookPoint::egress;
    if (unasked) table.replies = SIEVE_ACTION_PASS;
    if (!force) SIEVE_TRY(refuse_closing(name.interface, before, table));
    table.probation = safety.confirm_within;
    SIEVE_TRY(
        refuse_lockout(kernel, hook.interface.name, hook.point, {.table = table, .before = &before}, safety));
    SIEVE_ASSIGN(done.table, put(kernel, hook, table));
    done.table.warnings = replies_warnings(kernel, hook, table, !unasked);
    return done;
}

} // namespace sieve::control
