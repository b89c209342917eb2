// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/prepare.hpp"

#include <set>
#include <utility>

#include <fmt/core.h>

namespace sieve::control {

Status check_names(std::span<const SetSpec> sets) {
    if (sets.size() > SIEVE_MAX_SETS)
        return invalid_request(
            fmt::format("{} sets, but the program takes at most {}", sets.size(), SIEVE_MAX_SETS));
    std::set<std::string> names;
    for (const SetSpec& set : sets) {
        if (!kernel::is_set_name(set.name))
            return invalid_request(
                fmt::format("`{}`: a set's name is {}", set.name, kernel::set_name_form()));
        if (!names.insert(set.name).second)
            return invalid_request(fmt::format("set {} is given twice", set.name));
    }
    return {};
}

namespace {

// A match with a set that lets packets pass does no harm.
bool spares_keys(const SetSpec& set) {
    return !set.action || takes_packets(set.action->action);
}

} // namespace

Result<std::vector<ReadySet>> bring_in(Kernel& kernel, std::span<const SetSpec> sets,
                                       std::vector<SetInputs> inputs, const Observer& observer,
                                       const FindQuestions& host) {
    std::vector<ReadySet> ready;
    ready.reserve(sets.size());
    for (std::size_t i = 0; i < sets.size(); i++) {
        const SetSpec& set = sets[i];
        FindKeys find_spared;
        if (host && spares_keys(set))
            find_spared = [&]() -> Result<std::vector<sieve_key>> {
                SIEVE_ASSIGN(const std::vector<LockoutQuestion> questions, host());
                return keys_of(questions, set.feed.fields);
            };
        SIEVE_ASSIGN(OpenedSet opened, open_set(set, std::move(inputs[i]), observer, find_spared));
        SIEVE_ASSIGN(SetMaps maps,
                     kernel.bring_in(opened.image, opened.exact ? &*opened.exact : nullptr, set.name, 0));
        ready.push_back({.name = set.name,
                         .image = std::move(opened.image),
                         .maps = std::move(maps),
                         .keys = std::move(opened.keys)});
    }
    return ready;
}

Result<PreparedSets> prepare(Kernel& kernel, kernel::HookPoint point, bool frags,
                             std::span<const SetSpec> sets, const Observer& observer,
                             const FindQuestions& host) {
    // Building may take minutes. Find out first whether this process lacks the rights or an input.
    SIEVE_TRY(kernel.may_load_programs());
    SIEVE_ASSIGN(std::vector<SetInputs> inputs, find_inputs(sets));
    PreparedSets prepared;
    const auto make = [&]() -> Result<std::vector<const ReadySet*>> {
        SIEVE_ASSIGN(prepared.sets, bring_in(kernel, sets, std::move(inputs), observer, host));
        std::vector<const ReadySet*> made;
        for (const ReadySet& set : prepared.sets) made.push_back(&set);
        return made;
    };
    SIEVE_ASSIGN(prepared.trial, kernel.start_trial(point, frags, make));
    for (std::uint32_t slot = 0; slot < prepared.sets.size(); slot++) {
        ReadySet& set = prepared.sets[slot];
        SIEVE_ASSIGN(set.preflight, prepared.trial->test(slot, set));
    }
    return prepared;
}

void catch_up(std::span<const SetSpec> specs, std::span<const ReadySet> sets) {
    for (const ReadySet& set : sets)
        for (const SetSpec& spec : specs)
            if (spec.name == set.name && spec.catch_up) spec.catch_up(set.maps.filter_id);
}

Result<std::vector<SetAction>> find_actions(Kernel& kernel, std::span<const SetSpec> sets,
                                            sieve_action default_action) {
    std::vector<SetAction> actions;
    for (const SetSpec& set : sets) {
        if (!set.action) {
            actions.push_back(natural_action(default_action));
        } else if (set.action->action == SIEVE_ACTION_LIMIT) {
            if (default_action == SIEVE_ACTION_DROP)
                return invalid_request(
                    fmt::format("set {}: up to a limit matches take the default, and the default is drop; "
                                "expected default pass",
                                set.name));
            actions.push_back({SIEVE_ACTION_LIMIT, set.action->limit.rate, set.action->limit.burst});
        } else if (set.action->action < SIEVE_ACTION_FIRST_REDIRECT) {
            actions.push_back({set.action->action, 0});
        } else {
            SIEVE_ASSIGN(const kernel::Target target, kernel.find_target(set.action->target));
            actions.push_back({target.action, target.number});
        }
        SetAction& action = actions.back();
        if (const Status checked = check_condition(set.condition); !checked)
            return invalid_request(fmt::format("set {}: {}", set.name, checked.error().message));
        action.condition = set.condition;
        if (!set.keeps_replies_out) continue;
        action.keeps_replies_out = true;
        if (!may_drop(action.action))
            return invalid_request(
                fmt::format("set {}: replies=drop is for a set that drops or limits, and the "
                            "set's action is {}",
                            set.name, action_name(action.action)));
    }
    return actions;
}

kernel::WantedSet wanted_set(const std::string& name, const SetAction& action, const SetMaps& maps) {
    return {.name = name,
            .action = action.action,
            .map_fd = maps.filter_fd,
            .target = action.target,
            .exact_fd = maps.exact_fd,
            .burst = action.burst,
            .keeps_replies_out = action.keeps_replies_out,
            .condition = action.condition};
}

kernel::WantedTable wanted_table(const std::vector<ReadySet>& sets, const std::vector<SetAction>& actions,
                                 const TableSpec& spec) {
    kernel::WantedTable table{
        .default_action = spec.default_action, .sets = {}, .unreadable = spec.unreadable};
    for (std::size_t i = 0; i < sets.size(); i++)
        table.sets.push_back(wanted_set(sets[i].name, actions[i], sets[i].maps));
    return table;
}

} // namespace sieve::control
