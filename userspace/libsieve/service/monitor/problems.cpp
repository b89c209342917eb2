// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/problems.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/config/values/duration.hpp"
#include "libsieve/service/monitor/words.hpp"

namespace sieve::service::watching {

namespace {

// A stream that is polled every few seconds is not stale because of one slow answer.
constexpr std::chrono::minutes shortest_staleness{5};

// The error's own words, without what was said before, and closed like a sentence.
std::string sentence(std::string text, const std::string& subject = {}) {
    for (const std::string& said_before : {std::string("refused: "), subject + ": "})
        if (text.starts_with(said_before)) text.erase(0, said_before.size());
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    if (!text.empty() && text.back() != '.' && text.back() != '!' && text.back() != '?') text += '.';
    return text;
}

std::string what_stays(const SetHistory& set, Clock::time_point now) {
    if (!set.last_good) return "The set has no last good list.";
    const Clock::time_point built{std::chrono::seconds(set.last_good->built_at)};
    const std::uint64_t entries = *entries_of(set);
    return fmt::format("The last good list, of {} and with {} {}, stays in force.", ago(built, now),
                       whole_count(entries), entries == 1 ? "entry" : "entries");
}

void add_hooks(std::vector<Problem>& problems, const Snapshot& snapshot) {
    const auto& errors = snapshot.record.hook_errors;
    for (const WantedHook& hook : snapshot.wanted) {
        if (hook.paused) {
            problems.push_back(
                {Severity::failure, "paused", hook_text(hook.id),
                 fmt::format("The interface is paused: no packet is judged there, whatever the "
                             "configuration says. `xdp-sieve resume {}` ends that.",
                             hook.id.interface)});
            continue;
        }
        if (hook.up || errors.contains(hook.id) || snapshot.error) continue;
        problems.push_back(
            {Severity::failure, "interface-missing", hook_text(hook.id),
             "The configuration names this hook, and the program does not run there: no "
             "packet is judged. Either the interface is missing, or the program was taken away."});
    }
    for (const auto& [hook, error] : errors)
        problems.push_back(
            {Severity::failure, "hook-failed", hook_text(hook),
             "The last cycle could not bring this hook in line with the configuration: " + sentence(error)});
    for (const auto& [hook, how] : snapshot.record.otherwise)
        problems.push_back(
            {Severity::warning, "attached-otherwise", hook_text(hook),
             "Its lists are kept current; it is as configured once it is attached anew: " + sentence(how)});
}

// Sets that have no list yet, and those that wait for them.
void add_waiting(std::vector<Problem>& problems, const StatisticsCopy& record) {
    for (const auto& [hook, sets] : record.waiting) {
        for (const WaitingSet& set : sets)
            problems.push_back(
                {Severity::warning, "set-waiting", "set " + set.name,
                 !set.held_back.empty()
                     ? fmt::format("It is not in force on {}: {}", hook_text(hook), sentence(set.held_back))
                 : set.behind.empty()
                     ? fmt::format("It has no list yet, and is not in force on {}. The other sets go on.",
                                   hook_text(hook))
                     : fmt::format("It is not in force on {}, since it waits for set {}.", hook_text(hook),
                                   set.behind)});
        if (record.default_waits.contains(hook))
            problems.push_back(
                {Severity::warning, "default-waiting", hook_text(hook),
                 "The default is pass, and sets that go stay, until the sets that pass have their lists."});
    }
}

// What replies need, and what becomes of answers without it.
void add_replies(std::vector<Problem>& problems, const HookSnapshot& hook) {
    if (!hook.sample.replies) return;
    const control::RepliesState& replies = *hook.sample.replies;
    if (!replies.noting)
        problems.push_back(
            {Severity::failure, "noting-missing", hook_text(hook.id),
             "The program that notes the flows of this host was taken away from the interface: "
             "answers to new flows are dropped. The next cycle puts it back."});
    const std::uint64_t refused = replies.counts.refused;
    if (replies.memory && (replies.memory->load() >= kernel::flow_memory_warning_load || refused > 0))
        problems.push_back(
            {Severity::warning, "flows-full", hook_text(hook.id),
             fmt::format("The flow memory is full to {:.0f} %{}. It needs a higher max-flows.",
                         100 * replies.memory->load(),
                         refused == 0 ? std::string()
                                      : fmt::format(", and {} flow{} found no room: answers to some flows "
                                                    "are dropped",
                                                    whole_count(refused), refused == 1 ? "" : "s"))});
}

void add_list(std::vector<Problem>& problems, const SetConfiguration& set, const SetHistory& history,
              Clock::time_point now) {
    const std::string subject = "set " + set.name;
    const bool failed = history.last && history.last->result == SetOutcome::failed;
    if (history.last && history.last->result == SetOutcome::refused)
        problems.push_back(
            {Severity::warning, "list-refused", subject,
             fmt::format("A guard{} refused the new list {}. {} {}",
                         history.last->guard ? fmt::format(" ({})", guard_name(*history.last->guard))
                                             : std::string(),
                         ago(history.last->at, now), sentence(history.last->message, subject),
                         what_stays(history, now))});
    if (failed)
        problems.push_back({Severity::warning, "refresh-failed", subject,
                            fmt::format("The last refresh, {}, failed. {} {}", ago(history.last->at, now),
                                        sentence(history.last->message, subject), what_stays(history, now))});
    if (history.action_waits)
        problems.push_back(
            {Severity::warning, "action-waiting", subject,
             "Its new action comes into force with the list of its new sources. Until then, list and "
             "action stay as they are."});
    if (is_stale(set, history, now))
        problems.push_back(
            {Severity::warning, "list-stale", subject,
             fmt::format("Its sources were last confirmed {}; they are to be asked every {}.",
                         ago(last_confirmed(history).value_or(now), now), duration_text(asked_every(set)))});
}

void add_fleet(std::vector<Problem>& problems, const FleetStanding& fleet, Clock::time_point now) {
    const char *kind = nullptr, *text = nullptr;
    switch (fleet.state) {
    case FleetState::followed:
        if (fleet.error.empty()) return;
        kind = "fleet-left-over";
        text = "A set that is taken out of a fleet is also to be taken out of the configuration.";
        break;
    case FleetState::behind:
        return;
    case FleetState::failed:
        kind = "fleet-failed";
        text = "The manifest that this host is to have cannot come into force, and what was before stays.";
        break;
    case FleetState::refused:
        kind = "fleet-refused";
        text = "What is published is not right, and what is in force stays.";
        break;
    case FleetState::halted:
        kind = "fleet-halted";
        text = "The rollout has stopped.";
        break;
    case FleetState::unpublished:
        if (fleet.in_force == 0 && fleet.error.empty()) return; // a fleet that begins
        kind = "fleet-unpublished";
        text = "What is in force stays.";
        break;
    case FleetState::store_away:
        kind = "fleet-store-away";
        text = "The store does not give what this host is to have, and what is in force stays.";
        break;
    case FleetState::etcd_away:
        kind = "fleet-etcd-away";
        text = "etcd does not answer, so nothing new is heard of, and what is in force stays.";
        break;
    }
    const std::string contact = fleet.state != FleetState::etcd_away ? std::string()
                                : fleet.contact
                                    ? fmt::format(" It answered last {}.", ago(*fleet.contact, now))
                                    : std::string(" It has not answered since the start.");
    problems.push_back({Severity::warning, kind, "fleet " + fleet.fleet,
                        text + contact + (fleet.error.empty() ? "" : " " + sentence(fleet.error))});
}

} // namespace

std::string hook_text(const HookId& hook) {
    return fmt::format("{} ({})", hook.interface, kernel::hook_point_name(hook.point));
}

bool is_stale(const SetConfiguration& set, const SetHistory& history, Clock::time_point now) {
    const auto confirmed = last_confirmed(history);
    return confirmed &&
           now - *confirmed > std::max<std::chrono::seconds>(3 * asked_every(set), shortest_staleness);
}

std::vector<Problem> problems_of(const Snapshot& snapshot) {
    std::vector<Problem> problems;
    const StatisticsCopy& record = snapshot.record;
    if (snapshot.error)
        problems.push_back({Severity::failure, "kernel-unreadable", "kernel",
                            "What runs in the kernel could not be read: " + sentence(*snapshot.error)});
    add_hooks(problems, snapshot);
    add_waiting(problems, record);
    for (const HookSnapshot& hook : snapshot.hooks) add_replies(problems, hook);
    if (record.reload_error)
        problems.push_back(
            {Severity::warning, "configuration-rejected", "configuration",
             "The configuration on the disk is not valid, and the one before stays in force. " +
                 sentence(*record.reload_error)});
    if (record.cycle_error)
        problems.push_back({Severity::warning, "cycle-failed", "last cycle",
                            "It changed nothing. " + sentence(*record.cycle_error)});
    for (const SetConfiguration& set : record.configuration.sets)
        if (const auto history = record.sets.find(set.name); history != record.sets.end())
            add_list(problems, set, history->second, snapshot.at);
    if (record.fleet) add_fleet(problems, *record.fleet, snapshot.at);
    if (record.state_trouble)
        problems.push_back({Severity::warning, "state-not-kept", "state directory",
                            "What cannot be written there is kept in memory, until the machine ends. " +
                                sentence(*record.state_trouble)});
    if (record.keeping_error)
        problems.push_back({Severity::warning, "counters-not-kept", "counters",
                            "They cannot be kept for the next start: " + sentence(*record.keeping_error)});
    std::stable_sort(problems.begin(), problems.end(),
                     [](const Problem& a, const Problem& b) { return a.severity > b.severity; });
    return problems;
}

} // namespace sieve::service::watching
