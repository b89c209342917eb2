// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/apply.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libsieve/control/access/hold_lock.hpp"
#include "libsieve/control/safety/allowlist.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/control/safety/redirection.hpp"
#include "libsieve/control/safety/table_guard.hpp"
#include "libsieve/control/safety/undone_changes.hpp"
#include "libsieve/control/table/end_probation.hpp"
#include "libsieve/control/table/prepare.hpp"
#include "libsieve/control/table/replies.hpp"
#include "libsieve/util/results/unfinished.hpp"

namespace sieve::control {

namespace {

bool other_mode(const kernel::Hook& hook, kernel::ModeChoice choice) {
    switch (choice) {
    case kernel::ModeChoice::automatic:
        return false;
    case kernel::ModeChoice::native:
        return hook.mode != kernel::Mode::native;
    case kernel::ModeChoice::skb:
        return hook.mode != kernel::Mode::skb;
    }
    return false;
}

// The rank of our program among those that share the hook.
std::string rank_text(const kernel::Hook& hook) {
    if (const kernel::TcFilter* filter = hook.filter(); filter != nullptr)
        return fmt::format("as a filter of tc with priority {}", filter->priority);
    if (!hook.behind_dispatcher()) return "alone";
    const std::optional<kernel::DispatcherRank> rank = hook.rank();
    return rank ? fmt::format("behind libxdp's dispatcher with priority {}", rank->priority)
                : "behind libxdp's dispatcher";
}

// Refuses a table that conflicts with what is attached at the hook.
Status hook_allows(const kernel::Hook& hook, const TableSpec& spec) {
    if (spec.point != kernel::HookPoint::xdp && (spec.mode != kernel::ModeChoice::automatic || spec.chain))
        return invalid_request(fmt::format("hook {}: a mode and a chain belong to the XDP hook",
                                           kernel::hook_point_name(spec.point)));
    SIEVE_TRY(kernel::may_attach(hook, spec.force));
    if (!hook.ours) return {};
    if (!hook.speaks_our_version()) return spec.force ? Status() : kernel::refuse_unless_ours(hook);
    if (other_mode(hook, spec.mode))
        return failure(ErrorKind::attached_otherwise,
                       fmt::format("{} runs xdp-sieve in {} mode already", hook.interface.name,
                                   kernel::mode_name(hook.mode)),
                       {.interface = hook.interface.name});
    if (spec.priority || spec.chain)
        return failure(ErrorKind::attached_otherwise,
                       fmt::format("{} runs xdp-sieve already, {}, and its rank cannot be changed",
                                   hook.interface.name, rank_text(hook)),
                       {.interface = hook.interface.name});
    return {};
}

// Refuses a table that turns the allowlist in force around, before its sets are built.
Status keeps_allowlist(Kernel& kernel, const kernel::Hook& hook, const TableSpec& spec,
                       const std::vector<SetAction>& actions) {
    if (spec.force || !hook.speaks_our_version()) return {};
    const kernel::TableInForce now = kernel.read_table(hook);
    kernel::WantedTable wanted{.default_action = spec.default_action, .sets = {}};
    for (std::size_t i = 0; i < spec.sets.size(); i++)
        wanted.sets.push_back({.name = spec.sets[i].name, .action = actions[i].action});
    SIEVE_TRY(refuse_opening(spec.interface, now, wanted));
    if (now.default_action == SIEVE_ACTION_PASS) return {};
    return refuse_closing(spec.interface, now, wanted);
}

// Refuses a table without the sets in force, which would go without having been named.
Status keeps_sets(Kernel& kernel, const kernel::Hook& hook, const TableSpec& spec) {
    if (spec.replace || !hook.speaks_our_version()) return {};
    std::vector<std::string> gone;
    for (const kernel::SetInForce& set : kernel.read_table(hook).sets)
        if (std::ranges::none_of(spec.sets, [&](const SetSpec& wanted) { return wanted.name == set.name; }))
            gone.push_back(set.name);
    if (gone.empty()) return {};
    return failure(
        ErrorKind::wants_force,
        fmt::format("{}: {} {} in force and not in this table: {} would go", spec.interface,
                    fmt::join(gone, ", "), gone.size() == 1 ? "is" : "are", gone.size() == 1 ? "it" : "they"),
        {.interface = spec.interface, .in_force = gone, .hooks = {kernel::hook_point_name(spec.point)}});
}

// A set that has the name of a set in force, but another action or another list, is another set.
void start_counters(Kernel& kernel, const kernel::TableInForce& now, const std::vector<ReadySet>& sets,
                    kernel::WantedTable& wanted) {
    for (std::size_t i = 0; i < sets.size(); i++) {
        const kernel::SetInForce* before = now.find(sets[i].name);
        if (before == nullptr) continue;
        kernel::WantedSet& set = wanted.sets[i];
        const Result<kernel::FilterHeader> filter = kernel.read_filter(before->map_id);
        const auto& identity = sets[i].image.file().identity;
        const bool same_list =
            filter && filter->file.identity[0] == identity[0] && filter->file.identity[1] == identity[1];
        set.fresh_counters = !same_list || action_of(set) != action_of(*before);
    }
}

// Refuses a table that conflicts with what is attached at the hook, or whose targets cannot deliver.
Status may_apply(Kernel& kernel, const kernel::Hook& hook, const TableSpec& spec, const Safety& safety) {
    SIEVE_TRY(hook_allows(hook, spec));
    SIEVE_TRY(refuse_on_probation(kernel, hook));
    if (safety.confirm_within.count() != 0 && (hook.foreign() || (hook.ours && !hook.speaks_our_version())))
        return invalid_request(
            fmt::format("{}: a change that replaces another program cannot be on probation: that program "
                        "would not come back",
                        hook.interface.name));
    if (!redirects(spec.sets)) return {};
    SIEVE_ASSIGN(const kernel::Mode mode, expected_mode(kernel, hook, spec.mode));
    return check_targets(kernel, {hook.interface, hook.point, mode}, spec.sets);
}

// The joint filter of those of the sets that can be joined; nothing if they are fewer than two. It names no
// set for what this host lives by, `host`.
Result<std::optional<Joined>> join(Kernel& kernel, kernel::HookPoint point, std::span<const ReadySet> sets,
                                   const FindQuestions& host, const Observer& observer) {
    std::vector<Joinable> joinable;
    std::map<std::string, const KeySet*> keys;
    for (const ReadySet& set : sets) {
        std::string reason = cannot_be_joined(set.image.lookup(), set.maps.verified());
        if (reason.empty() && !set.keys) reason = "an image does not list its keys";
        if (!reason.empty()) {
            observer.remark(fmt::format("set {} is not joined: {}", set.name, reason));
            continue;
        }
        const Image& image = set.image;
        joinable.push_back({.set = joint_set_of(set.name, image.lookup(), image.file(), image.exceptions()),
                            .filter_fd = set.maps.filter_fd,
                            .members = sample_members(*set.keys),
                            .holds = [&image](const sieve_key& key) { return image.contains(key); }});
        keys.emplace(set.name, &*set.keys);
    }
    joinable = largest_group(std::move(joinable), observer);
    if (joinable.empty()) return std::optional<Joined>();
    SIEVE_ASSIGN(const std::vector<LockoutQuestion> questions, host());
    SIEVE_ASSIGN(Joined joined,
                 make_joint(kernel, point, joinable, keys_of(questions, joinable.front().set.fields),
                            [&](const JointTask& task) {
                                std::vector<const KeySet*> lists;
                                for (const JointSet& set : task.sets) lists.push_back(keys.at(set.name));
                                return build_joint(task, lists, observer);
                            }));
    return std::optional<Joined>(std::move(joined));
}

Warning filters_before(const kernel::Hook& hook) {
    const char* const point = kernel::hook_point_name(hook.point);
    return {.kind = WarningKind::filters_before,
            .message = fmt::format("{} {}: xdp-sieve does not see packets that filters before it accept: {}",
                                   hook.interface.name, point, kernel::filters_text(hook.filters_before())),
            .facts = {.interface = hook.interface.name, .hooks = {point}}};
}

kernel::DispatcherRank rank_of(const TableSpec& spec) {
    kernel::DispatcherRank rank;
    if (spec.priority) rank.priority = *spec.priority;
    if (spec.chain) rank.chain = *spec.chain;
    return rank;
}

} // namespace

Result<PreparedApply> PreparedApply::prepare(Kernel& kernel, TableSpec given, const Observer& observer,
                                             Safety safety) {
    PreparedApply coming(kernel, std::move(given), std::move(safety));
    const TableSpec& spec = coming.spec_;
    SIEVE_TRY(check_names(spec.sets));
    SIEVE_TRY(check_flows(spec.flows, may_let_replies_pass(spec.replies, spec.default_action, spec.point)));
    SIEVE_ASSIGN(coming.interface_, kernel.find_interface(spec.interface));
    SIEVE_ASSIGN(coming.actions_, find_actions(kernel, spec.sets, spec.default_action));
    {
        SIEVE_ASSIGN(const kernel::Hook hook, kernel.read_hook(coming.interface_, spec.point));
        SIEVE_TRY(may_apply(kernel, hook, spec, coming.safety_));
        SIEVE_TRY(keeps_allowlist(kernel, hook, spec, coming.actions_));
        SIEVE_TRY(keeps_sets(kernel, hook, spec));
    }
    kernel.expect_to_attach();
    constexpr int ordinary_mtu = 1500;
    const bool frags = kernel.mtu(coming.interface_) > ordinary_mtu;
    const auto host = [&] { return lockout_questions(coming.safety_, coming.interface_.name, spec.point); };
    std::vector<SetSpec> specs = spec.sets;
    for (SetSpec& set : specs) set.keep_keys = spec.join;
    PreparedSets& prepared = coming.prepared_;
    SIEVE_ASSIGN(prepared, control::prepare(kernel, spec.point, frags, specs, observer, host));
    if (!spec.join) return coming;
    SIEVE_ASSIGN(coming.applied_.joined, join(kernel, spec.point, prepared.sets, host, observer));
    for (ReadySet& set : prepared.sets) set.keys.reset(); // frees their memory
    return coming;
}

Status PreparedApply::check() {
    SIEVE_ASSIGN(applied_.hook, kernel_->read_hook(interface_, spec_.point));
    SIEVE_TRY(may_apply(*kernel_, applied_.hook, spec_, safety_));
    SIEVE_TRY(keeps_allowlist(*kernel_, applied_.hook, spec_, actions_));
    SIEVE_TRY(keeps_sets(*kernel_, applied_.hook, spec_));
    applied_.table = wanted_table(prepared_.sets, actions_, spec_);
    applied_.table.probation = safety_.confirm_within;
    std::optional<kernel::TableInForce> now;
    if (applied_.hook.speaks_our_version()) now = kernel_->read_table(applied_.hook);
    applied_.table.replies = replies_of(spec_, now ? &*now : nullptr);
    if (applied_.joined) applied_.table.joint = applied_.joined->wanted();
    applied_.attached_now = !now;
    catch_up(spec_.sets, prepared_.sets);
    return refuse_lockout(*kernel_, *prepared_.trial, interface_.name, spec_.point,
                          {.table = applied_.table,
                           .fresh = prepared_.sets,
                           .specs = spec_.sets,
                           .joined = applied_.joined ? &*applied_.joined : nullptr},
                          safety_);
}

Result<Applied> PreparedApply::commit() {
    Applied& applied = applied_;
    std::vector<Warning> undone;
    if (applied.attached_now) {
        std::unique_ptr<ReadyReplies> replies;
        if (applied.table.replies == SIEVE_ACTION_PASS) {
            SIEVE_ASSIGN(replies, kernel_->ready_replies(interface_, spec_.flows));
            SIEVE_TRY(prepared_.trial->use(*replies));
        }
        Result<kernel::Attached> attached = prepared_.trial->go_live(
            applied.hook, applied.table, {.mode = spec_.mode, .force = spec_.force, .rank = rank_of(spec_)});
        if (!attached) {
            if (replies && attached.error().kind == ErrorKind::unfinished) replies->keep();
            return tl::unexpected(std::move(attached.error()));
        }
        if (replies) {
            replies->keep();
            applied.replies = replies->made();
        } else if (const Status ended = kernel_->end_replies(interface_); !ended) {
            // What a program of another version needed.
            return unfinished("the table is in force, but what replies needed before is still there",
                              ended.error());
        }
        applied.hook = std::move(attached->hook);
        applied.remarks = std::move(attached->remarks);
        applied.place_ignored = spec_.point == kernel::HookPoint::xdp && (spec_.priority || spec_.chain) &&
                                !applied.hook.behind_dispatcher();
    } else {
        const kernel::TableInForce before = kernel_->read_table(applied.hook);
        if (!spec_.keep_counters) start_counters(*kernel_, before, prepared_.sets, applied.table);
        undone = undone_changes(*kernel_, before, applied.table);
        SIEVE_ASSIGN(applied.replies,
                     replace_table(*kernel_, applied.hook, applied.table, spec_.flows, prepared_.sets));
    }
    // The table is in force. An error from here on must not claim that it is not.
    const Status warned = without_throwing([&]() -> Status {
        applied.warnings =
            target_warnings(*kernel_, {interface_, spec_.point, applied.hook.mode}, spec_.sets);
        for (Warning& warning : allowlist_warnings(prepared_.sets, applied.table))
            applied.warnings.push_back(std::move(warning));
        for (Warning& warning :
             replies_warnings(*kernel_, applied.hook, applied.table, spec_.replies.has_value()))
            applied.warnings.push_back(std::move(warning));
        if (!applied.hook.filters_before().empty()) applied.warnings.push_back(filters_before(applied.hook));
        for (Warning& warning : undone) applied.warnings.push_back(std::move(warning));
        return {};
    });
    if (!warned)
        return unfinished("the new table is in force, but could not be checked for warnings", warned.error());
    applied.sets = std::move(prepared_.sets);
    return std::move(applied_);
}

Result<Applied> apply(Kernel& kernel, const TableSpec& spec, const Observer& observer, const Safety& safety) {
    SIEVE_ASSIGN(PreparedApply coming, PreparedApply::prepare(kernel, spec, observer, safety));
    SIEVE_ASSIGN(const Held lock, hold_lock(kernel, observer));
    SIEVE_TRY(coming.check());
    return coming.commit();
}

} // namespace sieve::control
