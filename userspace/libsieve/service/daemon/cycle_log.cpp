// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/cycle_log.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "libsieve/util/text/counted.hpp"

namespace sieve::service {

namespace {

constexpr char action_waits_text[] = "its new action comes into force with the list of its new sources";

std::string entries_text(std::uint64_t entries) {
    return counted(entries, "entry", "entries");
}

std::string size_text(std::uint64_t bytes) {
    if (bytes < 1024) return fmt::format("{} bytes", bytes);
    constexpr std::array<const char*, 3> units{"KiB", "MiB", "GiB"};
    double size = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    for (; size >= 1024 && unit + 1 < units.size(); unit++) size /= 1024;
    return fmt::format("{:.1f} {}", size, units[unit]);
}

std::string rate_text(double rate) {
    return rate == 0 ? "no false positives" : fmt::format("expected false positive rate {:.2g}", rate);
}

// In the host's time, as a person who reads the log has it on the clock.
std::string clock_text(std::int64_t seconds) {
    const std::time_t time = seconds;
    std::tm parts{};
    ::localtime_r(&time, &parts);
    return fmt::format("{:%Y-%m-%d %H:%M:%S}", parts);
}

std::string hook_name(const std::string& interface, kernel::HookPoint point) {
    return point == kernel::HookPoint::xdp ? interface : fmt::format("{} {}", interface, kernel::hook_point_name(point));
}
std::string hook_name(const HookPlan& plan) {
    return hook_name(plan.interface, plan.point);
}

std::string changes_text(const HookPlan& plan) {
    std::vector<std::string> parts;
    for (const SetPlan& set : plan.sets) {
        if (set.comes) parts.push_back("+" + set.name);
        if (set.goes) parts.push_back("-" + set.name);
        if (set.new_filter) parts.push_back(fmt::format("{} has a new filter", set.name));
        if (set.other_action())
            parts.push_back(fmt::format("{} does {} now", set.name, control::describe_action(*set.action)));
    }
    if (!plan.order_before.empty()) parts.push_back(fmt::format("order {}", fmt::join(plan.names(), ", ")));
    if (plan.default_before)
        parts.push_back(fmt::format("default {}", control::action_name(plan.default_action)));
    if (plan.replies_before) parts.push_back(fmt::format("replies {}", control::action_name(plan.replies)));
    if (plan.notes_gone) parts.emplace_back("the program that notes flows is back");
    return fmt::format("{}", fmt::join(parts, ", "));
}

// Where the hook refused its table, the one before is still in force.
std::vector<std::string> sets_in_force(const HookReport& hook) {
    if (!hook.error) return hook.plan.names();
    std::vector<std::string> names;
    for (const SetPlan& set : hook.plan.sets)
        if (set.action_before) names.push_back(set.name);
    return names;
}

} // namespace

std::string span_text(std::chrono::milliseconds span) {
    const double seconds = std::chrono::duration<double>(span).count();
    if (seconds < 1) return fmt::format("{} ms", span.count());
    if (seconds < 10) return fmt::format("{:.1f} s", seconds);
    if (seconds < 120) return fmt::format("{:.0f} s", seconds);
    if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
    return fmt::format("{:.0f} h", seconds / 3600);
}

void CycleLog::follow(const Configuration& configuration) {
    std::erase_if(sets_, [&](const auto& known) { return configuration.find_set(known.first) == nullptr; });
    hooks_.clear(); // as they are is said anew
    paused_.clear();
    missing_.clear();
    away_.clear();
    otherwise_.clear();
}

void CycleLog::tell(const std::set<std::string>& asked, const CycleReport& report,
                    std::chrono::milliseconds took) {
    for (const HookReport& hook : report.hooks) tell_hook(hook);
    tell_gone(report);
    for (const SetReport& set : report.sets) tell_set(set, asked.contains(set.name), took);
    tell_missing(report);
    tell_away(report);
}

void CycleLog::tell_set(const SetReport& set, bool asked, std::chrono::milliseconds took) {
    Set& known = sets_[set.name];
    known.entries = set.last_good ? set.last_good->entries : 0;
    if (!std::exchange(known.action_waits, set.action_waits) && set.action_waits)
        log_.warning(about_set(set.name, action_waits_text), {{"SET", set.name}});
    if (!asked) return;
    known.outcome = set.outcome;
    LogFields fields{{"SET", set.name}};
    if (set.last_good) fields.emplace_back("ENTRIES", fmt::format("{}", set.last_good->entries));
    const bool recovered = !std::exchange(known.trouble, {}).empty();
    switch (set.outcome) {
    case SetOutcome::unchanged:
        if (recovered)
            log_.notice(fmt::format("set {}: its sources answer again; the list is the one in force, with {}",
                                    set.name, entries_text(known.entries)),
                        fields);
        return;
    case SetOutcome::replaced: {
        fields.emplace_back("MILLISECONDS", fmt::format("{}", took.count()));
        const std::string before =
            set.entries_before == 0 ? "" : fmt::format(" (before: {})", set.entries_before);
        log_.notice(fmt::format("set {}: a new list with {}{}, {}, {}, in {}{}", set.name,
                                entries_text(set.last_good->entries), before, size_text(set.last_good->bytes),
                                rate_text(set.last_good->expected_fpr), span_text(took),
                                recovered ? "; its sources answer again" : ""),
                    fields);
        if (set.last_good->skipped > 0)
            log_.warning(
                fmt::format("set {}: {} skipped", set.name,
                            counted(set.last_good->skipped, "malformed line was", "malformed lines were")),
                fields);
        return;
    }
    case SetOutcome::failed:
    case SetOutcome::refused:
        break;
    }
    const bool refused = set.outcome == SetOutcome::refused;
    known.trouble = set.error ? set.error->message : "no interface took it";
    known.accept = set.accept;
    fields.emplace_back("RESULT", refused ? "refused" : "failed");
    if (set.guard) fields.emplace_back("GUARD", guard_name(*set.guard));
    const std::string stays =
        set.renewed
            ? fmt::format("a new list with {} is in force: what its other sources say, with what this one "
                          "said before",
                          entries_text(known.entries))
        : set.last_good ? fmt::format("the list of {} with {} stays in force",
                                      clock_text(set.last_good->built_at), entries_text(known.entries))
                        : std::string("there is no earlier list");
    std::string next;
    if (const auto wait = next_of_(set.name))
        next = fmt::format("; its sources are asked again in {}", span_text(*wait));
    log_.warning(fmt::format("{}{}; {}{}", about_set(set.name, known.trouble), refused ? " (refused)" : "",
                             stays, next),
                 fields);
}

void CycleLog::tell_hook(const HookReport& hook) {
    const HookPlan& plan = hook.plan;
    const std::string name = hook_name(plan);
    const LogFields fields{{"INTERFACE", plan.interface}, {"HOOK", kernel::hook_point_name(plan.point)}};
    if (hook.carried_out && plan.step == HookStep::unload) {
        hooks_.erase(name);
        log_.notice(fmt::format("{}: unloaded, since {}", name,
                                plan.paused ? "it is paused" : "the configuration does not name it any more"),
                    fields);
    }
    if (plan.paused && !hook.error) {
        hooks_.erase(name);
        if (paused_.insert(name).second)
            log_.warning(
                fmt::format("{}: is paused, so no packet is judged there; `xdp-sieve resume {}` ends that",
                            name, plan.interface),
                fields);
        return;
    }
    if (!plan.paused) paused_.erase(name);
    if (hook.carried_out && plan.step == HookStep::unload) return;
    const bool known = hooks_.contains(name);
    tell_otherwise(name, plan, fields);
    const std::string trouble = hook.trouble();
    const Hook before = std::exchange(
        hooks_[name], Hook{trouble, sets_in_force(hook), plan.waiting, plan.default_waits() && !hook.error});
    if (hook.error) {
        if (known && before.trouble == trouble) return;
        // The first list of a set is still on its way, or its failure is told with the set.
        if (plan.program_id == 0 && !plan.waiting.empty())
            log_.warning(fmt::format("{}: nothing is in force yet: {}", name, trouble), fields);
        else
            log_.error(fmt::format("{}: stays as it is: {}", name, trouble), fields);
        return;
    }
    if (!hook.carried_out) return;
    switch (plan.step) {
    case HookStep::attach:
        log_.notice(fmt::format("{}: attached; in force: {}", name, fmt::join(plan.names(), ", ")), fields);
        break;
    case HookStep::change:
        log_.notice(fmt::format("{}: changed: {}", name, changes_text(plan)), fields);
        break;
    case HookStep::nothing:
        if (!known)
            log_.info(
                fmt::format("{}: taken over as it runs; in force: {}", name, fmt::join(plan.names(), ", ")),
                fields);
        else if (!before.trouble.empty() && trouble.empty())
            log_.notice(fmt::format("{}: is as it should be again", name), fields);
        break;
    case HookStep::unload:
        break;
    }
    if (!trouble.empty() && before.trouble != trouble)
        log_.error(fmt::format("{}: {}", name, trouble), fields);
    tell_waiting(name, plan, before, fields);
    for (const std::string& remark : hook.done.remarks)
        log_.info(fmt::format("{}: {}", name, remark), fields);
    for (const control::Warning& warning : hook.done.warnings) log_.warning(warning.message, fields);
}

void CycleLog::tell_waiting(const std::string& name, const HookPlan& plan, const Hook& before,
                            const LogFields& fields) {
    for (const WaitingSet& set : plan.waiting)
        if (set.held_back.empty() &&
            (!before.trouble.empty() || std::ranges::find(before.waiting, set) == before.waiting.end()))
            log_.warning(fmt::format("{}: {}; the other sets go on", name, waiting_text(set)), fields);
    if (plan.default_waits() && !before.default_waits)
        log_.warning(
            fmt::format(
                "{}: the default is pass, and sets that go stay, until the sets that pass have their lists",
                name),
            fields);
}

std::string CycleLog::about_waiting(const WaitingSet& waiting) const {
    std::string text = waiting_text(waiting);
    if (!waiting.behind.empty()) return text;
    const auto set = sets_.find(waiting.name);
    if (set != sets_.end() && !set->second.trouble.empty())
        text +=
            about_set(waiting.name, set->second.trouble).substr(fmt::format("set {}", waiting.name).size());
    if (const auto wait = next_of_(waiting.name))
        text += fmt::format(
            ", asked again at {}",
            clock_text(std::time(nullptr) + std::chrono::ceil<std::chrono::seconds>(*wait).count()));
    return text;
}

void CycleLog::tell_otherwise(const std::string& name, const HookPlan& plan, const LogFields& fields) {
    if (!plan.otherwise) {
        otherwise_.erase(name);
        return;
    }
    if (std::exchange(otherwise_[name], plan.otherwise->message) == plan.otherwise->message) return;
    log_.warning(fmt::format("{}; it goes on so, with lists that are kept current, since packets would pass "
                             "unjudged while it is changed; it is as configured once it is attached anew",
                             plan.otherwise->message),
                 fields);
}

void CycleLog::tell_gone(const CycleReport& report) {
    std::erase_if(paused_, [&](const std::string& known) {
        return std::none_of(report.hooks.begin(), report.hooks.end(), [&](const HookReport& hook) {
            return hook.plan.paused && hook_name(hook.plan) == known;
        });
    });
    std::erase_if(hooks_, [&](const auto& known) {
        const bool there = std::any_of(report.hooks.begin(), report.hooks.end(), [&](const HookReport& hook) {
            return hook_name(hook.plan) == known.first;
        });
        const std::string interface = known.first.substr(0, known.first.find(' '));
        const bool missing = std::find(report.missing.begin(), report.missing.end(), interface) !=
                             report.missing.end(); // that is said below
        if (!there && !missing)
            log_.info(fmt::format("{}: the interface has gone", known.first), {{"INTERFACE", interface}});
        if (!there) otherwise_.erase(known.first);
        return !there;
    });
}

void CycleLog::tell_missing(const CycleReport& report) {
    std::set<std::string> now(report.missing.begin(), report.missing.end());
    for (const std::string& name : now)
        if (!missing_.contains(name)) {
            log_.warning(fmt::format("{}: there is no interface of that name; its sets are put in force when "
                                     "it appears",
                                     name),
                         {{"INTERFACE", name}});
        }
    missing_ = std::move(now);
}

void CycleLog::tell_away(const CycleReport& report) {
    std::map<std::uint32_t, std::string> now;
    for (const AwayProgram& program : report.away) {
        if (!program.left) continue;
        const std::string name = hook_name(program.noted.interface, program.noted.point);
        now.emplace(program.noted.program_id, name);
        if (!away_.contains(program.noted.program_id))
            log_.warning(
                fmt::format("{}: the configuration does not name it any more, and its program runs at no "
                            "interface that can be seen, so maybe in another network namespace; it is "
                            "unloaded when it comes back",
                            name),
                {{"INTERFACE", program.noted.interface},
                 {"HOOK", kernel::hook_point_name(program.noted.point)}});
    }
    for (const auto& [id, name] : std::exchange(away_, std::move(now))) {
        const bool is_here = std::ranges::any_of(
            report.hooks, [id = id](const HookReport& hook) { return hook.plan.program_id == id; });
        if (!away_.contains(id) && !is_here) log_.info(fmt::format("{}: its program has gone", name));
    }
}

std::string CycleLog::standing() const {
    std::set<std::string> in_force, not_yet;
    std::vector<std::string> working;
    std::vector<std::string> troubles;
    for (const auto& [name, hook] : hooks_) {
        if (!hook.trouble.empty()) {
            // Many an error begins with the interface.
            troubles.push_back(hook.trouble.starts_with(name) ? hook.trouble
                                                              : fmt::format("{}: {}", name, hook.trouble));
        }
        if (hook.trouble.empty() || !hook.sets.empty()) {
            working.push_back(name);
            in_force.insert(hook.sets.begin(), hook.sets.end());
        }
        for (const WaitingSet& set : hook.waiting)
            if (not_yet.insert(set.name).second && set.held_back.empty())
                troubles.push_back(about_waiting(set));
        if (hook.default_waits) troubles.push_back(fmt::format("{}: the default is pass until then", name));
    }
    for (const auto& [name, otherwise] : otherwise_) troubles.push_back(otherwise);
    for (const auto& [name, set] : sets_) {
        if (set.action_waits) troubles.push_back(about_set(name, action_waits_text));
        if (set.trouble.empty() || not_yet.contains(name)) continue;
        std::string what =
            set.outcome == SetOutcome::refused ? "its new list was refused" : "its refresh failed";
        if (!set.accept.empty()) what += fmt::format("; `{}` takes it, once", set.accept);
        troubles.push_back(fmt::format("set {}: {}", name, what));
    }
    for (const std::string& name : paused_)
        troubles.push_back(fmt::format("{} is paused, so no packet is judged there", name));
    for (const std::string& name : missing_) troubles.push_back(fmt::format("interface {} is missing", name));
    for (const auto& [id, name] : away_)
        troubles.push_back(fmt::format("{}: its program is to be unloaded, and runs elsewhere", name));
    const std::size_t sets = in_force.size();
    for (const std::string& name : not_yet) in_force.insert(name);
    const std::string count = in_force.size() == sets
                                  ? counted(sets, "set", "sets")
                                  : fmt::format("{} of {}", sets, counted(in_force.size(), "set", "sets"));
    std::string text = working.empty() ? "nothing is in force"
                                       : fmt::format("{} in force on {}", count, fmt::join(working, ", "));
    if (!troubles.empty()) text += fmt::format("; {}", fmt::join(troubles, "; "));
    return text;
}

} // namespace sieve::service
