// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/replies.hpp"

#include <chrono>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/control/table/hit_marks.hpp"
#include "libsieve/kernel/hooks/flow_memory.hpp"
#include "libsieve/util/results/unfinished.hpp"

namespace sieve::control {

std::string flow_counts() {
    return fmt::format("a whole number of flows from {} to {}", kernel::least_flows, kernel::most_flows);
}

bool is_flow_count(std::uint64_t flows) {
    return flows >= kernel::least_flows && flows <= kernel::most_flows;
}

bool may_let_replies_pass(std::optional<sieve_action> replies, sieve_action default_action,
                          kernel::HookPoint point) {
    if (replies) return *replies == SIEVE_ACTION_PASS;
    return default_action == SIEVE_ACTION_DROP && point != kernel::HookPoint::egress;
}

Status check_flows(const WantedFlows& flows, bool replies_may_pass) {
    if (!flows.most || replies_may_pass) return {};
    return invalid_request("a number of flows is for replies that pass");
}

sieve_action replies_of(const TableSpec& spec, const kernel::TableInForce* now) {
    if (!may_let_replies_pass(spec.replies, spec.default_action, spec.point)) return SIEVE_ACTION_DROP;
    if (spec.replies) return SIEVE_ACTION_PASS;
    return now != nullptr && now->default_action == SIEVE_ACTION_DROP ? now->replies : SIEVE_ACTION_PASS;
}

std::vector<Warning> replies_warnings(Replies& kernel, const kernel::Hook& hook,
                                      const kernel::WantedTable& table, bool asked) {
    std::vector<Warning> warnings;
    const auto warn = [&](WarningKind kind, std::string message) {
        warnings.push_back(
            {kind,
             std::move(message),
             {.interface = hook.interface.name, .hooks = {kernel::hook_point_name(hook.point)}}});
    };
    const bool pass = table.replies == SIEVE_ACTION_PASS;
    if (table.default_action == SIEVE_ACTION_DROP && hook.point != kernel::HookPoint::egress) {
        const std::string place =
            fmt::format("{} {}", hook.interface.name, kernel::hook_point_name(hook.point));
        if (!pass)
            warn(WarningKind::answers_dropped,
                 place + ": the default drops answers to what this host begins, too: of names, time, updates "
                         "and leases");
        else if (!asked)
            warn(WarningKind::replies_unasked,
                 place + ": answers to what this host begins pass, since the default is drop and nothing "
                         "else was said");
    }
    if (!pass) return warnings;
    if (const Result<RepliesState> state = kernel.read_replies(hook); state && !state->before.empty())
        warn(WarningKind::filters_before_notes,
             fmt::format("{} egress: the program that notes flows does not see packets that filters before "
                         "it accept, so answers to these are not known as replies: {}",
                         hook.interface.name, kernel::filters_text(state->before)));
    return warnings;
}

Result<std::optional<RepliesMade>> replace_table(Kernel& kernel, const kernel::Hook& hook,
                                                 const kernel::WantedTable& table, const WantedFlows& flows,
                                                 std::span<const ReadySet> fresh) {
    std::unique_ptr<ReadyReplies> ready;
    if (table.replies == SIEVE_ACTION_PASS) {
        SIEVE_ASSIGN(ready, kernel.ready_replies(hook.interface, flows));
        SIEVE_TRY(ready->serve(hook));
    }
    const bool were_on = kernel.read_table(hook).replies == SIEVE_ACTION_PASS;
    const Status done =
        replace_keeping_hits(kernel, hook, fresh, [&] { return kernel.replace_table(hook, table); });
    const bool in_force = done || done.error().kind == ErrorKind::unfinished;
    if (!in_force) return tl::unexpected(done.error());
    std::optional<RepliesMade> made;
    if (ready) {
        ready->keep();
        made = ready->made();
    }
    SIEVE_TRY(done);
    // On probation the table from before may come back, and needs what it had.
    if (!ready && were_on && table.probation.count() == 0)
        if (const Status ended = kernel.end_replies(hook.interface); !ended)
            return unfinished("the new table is in force, but what its replies needed is still there",
                              ended.error());
    return made;
}

Result<RepliesEdited> edit_replies(Kernel& kernel, const HookName& name, sieve_action action,
                                   const WantedFlows& flows, const Observer& observer, const Safety& safety) {
    if (action != SIEVE_ACTION_PASS && action != SIEVE_ACTION_DROP)
        return invalid_request("replies are passed or dropped");
    SIEVE_TRY(check_flows(flows, action == SIEVE_ACTION_PASS));
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_ASSIGN(const kernel::Hook hook, find_ours(kernel, name));
    const kernel::TableInForce before = kernel.read_table(hook);
    RepliesEdited done{.table = {.point = hook.point}, .before = before.replies};
    for (const kernel::SetInForce& set : before.sets) done.table.order.push_back(set.name);
    if (before.replies == action) {
        if (action == SIEVE_ACTION_DROP) {
            // They may have passed on probation, whose time was over.
            SIEVE_TRY(kernel.end_replies(hook.interface));
            return done;
        }
        SIEVE_ASSIGN(const RepliesState state, kernel.read_replies(hook));
        if (state.noting && (!flows.most || (state.memory && state.memory->max_flows == *flows.most)))
            return done;
    }
    kernel::WantedTable table = wanted_of(before);
    table.replies = action;
    table.probation = safety.confirm_within;
    SIEVE_TRY(
        refuse_lockout(kernel, hook.interface.name, hook.point, {.table = table, .before = &before}, safety));
    const auto begin = std::chrono::steady_clock::now();
    SIEVE_ASSIGN(done.made, replace_table(kernel, hook, table, flows, {}));
    done.table.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    done.table.changed = true;
    done.table.warnings = replies_warnings(kernel, hook, table, true);
    return done;
}

} // namespace sieve::control
