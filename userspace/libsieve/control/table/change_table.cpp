// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/change_table.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/safety/allowlist.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/control/safety/redirection.hpp"
#include "libsieve/control/table/end_probation.hpp"
#include "libsieve/control/table/prepare.hpp"
#include "libsieve/control/table/replies.hpp"

namespace sieve::control {

namespace {

// Checks that the filters to be kept are still in force and that redirected packets can reach their targets.
Status check_hook(Kernel& kernel, const NextTable& change, const kernel::Hook& hook) {
    SIEVE_TRY(refuse_on_probation(kernel, hook));
    const kernel::TableInForce now = kernel.read_table(hook);
    for (std::size_t i = 0; i < change.table.sets.size(); i++) {
        if (!change.kept[i]) continue;
        const std::string& name = change.table.sets[i].name;
        const kernel::SetInForce* set = now.find(name);
        if (set == nullptr || KeptFilter{set->map_id, set->exact_id} != *change.kept[i])
            return failure(
                ErrorKind::changed_meanwhile,
                fmt::format("{}: somebody else has changed set {} meanwhile", change.table.interface, name),
                {.interface = change.table.interface, .set = name});
    }
    return check_targets(kernel, {hook.interface, hook.point, hook.mode}, change.table.sets);
}

} // namespace

Result<PreparedTable> PreparedTable::prepare(Kernel& kernel, NextTable given, const Observer& observer,
                                             Safety safety) {
    PreparedTable coming(kernel, std::move(given), std::move(safety));
    const NextTable& change = coming.change_;
    const TableSpec& spec = change.table;
    SIEVE_TRY(check_names(spec.sets));
    SIEVE_ASSIGN(const kernel::Hook hook,
                 find_ours(kernel, {.interface = spec.interface, .point = spec.point}));
    SIEVE_TRY(check_hook(kernel, change, hook));
    std::vector<SetSpec> fresh;
    for (std::size_t i = 0; i < spec.sets.size(); i++)
        if (!change.kept[i]) fresh.push_back(spec.sets[i]);
    PreparedSets& prepared = coming.prepared_;
    if (!fresh.empty()) {
        const auto host = [&] { return lockout_questions(coming.safety_, spec.interface, spec.point); };
        SIEVE_ASSIGN(prepared, control::prepare(kernel, spec.point, false, fresh, observer, host));
    }
    coming.wanted_ = {.default_action = spec.default_action,
                      .sets = {},
                      .unreadable = spec.unreadable,
                      .probation = coming.safety_.confirm_within};
    std::size_t next = 0;
    for (std::size_t i = 0; i < spec.sets.size(); i++)
        coming.wanted_.sets.push_back(wanted_set(spec.sets[i].name, change.actions[i],
                                                 change.kept[i] ? SetMaps{} : prepared.sets[next++].maps));
    return coming;
}

Status PreparedTable::check() {
    const TableSpec& spec = change_.table;
    SIEVE_ASSIGN(hook_, find_ours(*kernel_, {.interface = spec.interface, .point = spec.point}));
    SIEVE_TRY(check_hook(*kernel_, change_, hook_));
    const kernel::TableInForce before = kernel_->read_table(hook_);
    wanted_.replies = replies_of(spec, &before);
    catch_up(spec.sets, prepared_.sets);
    const ComingTable coming{
        .table = wanted_, .fresh = prepared_.sets, .specs = spec.sets, .before = &before};
    SIEVE_TRY(prepared_.trial
                  ? refuse_lockout(*kernel_, *prepared_.trial, spec.interface, spec.point, coming, safety_)
                  : refuse_lockout(*kernel_, spec.interface, spec.point, coming, safety_));
    for (kernel::WantedSet& set : wanted_.sets) {
        const kernel::SetInForce* same = before.find(set.name);
        set.fresh_counters = same != nullptr && action_of(*same) != action_of(set);
    }
    return {};
}

Result<TableChanged> PreparedTable::commit() {
    const TableSpec& spec = change_.table;
    const auto begin = std::chrono::steady_clock::now();
    const kernel::TableInForce before = kernel_->read_table(hook_);
    SIEVE_ASSIGN(const std::optional<RepliesMade> replies,
                 replace_table(*kernel_, hook_, wanted_, spec.flows, prepared_.sets));
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
    std::vector<Warning> warnings =
        target_warnings(*kernel_, {hook_.interface, hook_.point, hook_.mode}, spec.sets);
    for (Warning& warning : allowlist_warnings(prepared_.sets, wanted_))
        warnings.push_back(std::move(warning));
    if (before.replies != wanted_.replies || before.default_action != wanted_.default_action)
        for (Warning& warning : replies_warnings(*kernel_, hook_, wanted_, spec.replies.has_value()))
            warnings.push_back(std::move(warning));
    return TableChanged{.hook = std::move(hook_),
                        .warnings = std::move(warnings),
                        .brought_in = std::move(prepared_.sets),
                        .replies = replies,
                        .milliseconds = taken.count()};
}

} // namespace sieve::control
