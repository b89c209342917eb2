// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/schedule.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace sieve::service {

namespace {

constexpr std::chrono::milliseconds quiet{10};    // without a further trigger, before a trigger counts
constexpr std::chrono::milliseconds longest{250}; // that a trigger is held back, however many follow it

bool is_far(const SetConfiguration& set) {
    return std::any_of(set.sources.begin(), set.sources.end(), [](const SourceSpec& source) {
        return !std::holds_alternative<FileSpec>(source) && !std::holds_alternative<FolderSpec>(source) &&
               !std::holds_alternative<GlobSpec>(source);
    });
}

} // namespace

void Schedule::Settling::trigger(Time now) {
    if (!first_) first_ = now;
    due_ = std::min(now + quiet, *first_ + longest);
}

Schedule::Time Schedule::Entry::due() const {
    return changed.due() ? std::min(timer, *changed.due()) : timer;
}

bool Schedule::Entry::has_room(RefreshRoom room) const {
    if (far) return failures == 0 ? room.far : room.failing;
    return is_long ? room.near_long : room.near;
}

Schedule::Schedule(Chance chance, BackoffLimits backoff) : chance_(std::move(chance)), backoff_(backoff) {}

void Schedule::follow(const Configuration& configuration, Time now) {
    std::map<std::string, Entry> before = std::exchange(sets_, {});
    for (const SetConfiguration& set : configuration.sets) {
        Entry entry;
        if (const auto found = before.find(set.name); found != before.end())
            entry = found->second;
        else
            entry.timer = now;
        if (entry.phase == Phase::refreshed) { // by what was configured before
            entry.phase = Phase::waits;
            entry.timer = now;
        }
        entry.interval = set.refresh;
        entry.far = is_far(set);
        entry.timer = std::min(entry.timer, now + entry.interval);
        sets_.emplace(set.name, entry);
    }
}

void Schedule::compare(Time at) {
    compare_ = compare_ ? std::min(*compare_, at) : at;
}

void Schedule::ask_all(Time now) {
    for (auto& [name, entry] : sets_) entry.timer = now;
}

void Schedule::lists_changed(const std::set<std::string>& sets, Time now) {
    for (const std::string& name : sets)
        if (const auto found = sets_.find(name); found != sets_.end()) found->second.changed.trigger(now);
}

void Schedule::interfaces_changed(Time now) {
    interfaces_.trigger(now);
}

std::optional<Schedule::Time> Schedule::next() const {
    std::optional<Time> next = compare_;
    const auto sooner = [&next](Time time) { next = next ? std::min(*next, time) : time; };
    if (interfaces_.due()) sooner(*interfaces_.due());
    for (const auto& [name, entry] : sets_)
        if (entry.phase == Phase::refreshed) sooner(Time::min());
    return next;
}

std::optional<Schedule::Time> Schedule::next_refresh(RefreshRoom room) const {
    std::optional<Time> next;
    for (const auto& [name, entry] : sets_)
        if (entry.phase == Phase::waits && entry.has_room(room))
            next = next ? std::min(*next, entry.due()) : entry.due();
    return next;
}

bool Schedule::fails(const std::string& set) const {
    const auto found = sets_.find(set);
    return found != sets_.end() && found->second.failures > 0;
}

std::optional<CycleOptions> Schedule::take(Time now) {
    const auto is_due = [now](std::optional<Time> time) { return time && *time <= now; };
    CycleOptions cycle{.ask = Ask::nothing, .sets = {}, .on_failure = OnFailure::go_on};
    if (is_due(compare_) || is_due(interfaces_.due())) {
        compare_.reset();
        interfaces_.clear();
        return cycle;
    }
    for (auto& [name, entry] : sets_) {
        if (entry.phase != Phase::refreshed) continue;
        cycle.sets.insert(name);
        entry.phase = Phase::in_cycle;
        if (entry.asks) entry.timer = now + entry.interval; // until it is known what became of the cycle
    }
    if (cycle.sets.empty()) return std::nullopt;
    cycle.ask = Ask::some;
    return cycle;
}

std::optional<Refresh> Schedule::take_refresh(Time now, RefreshRoom room) {
    const auto is_due = [&](const Entry& entry) {
        return entry.phase == Phase::waits && entry.due() <= now && entry.has_room(room);
    };
    std::pair<const std::string, Entry>* first = nullptr;
    for (auto& candidate : sets_)
        if (is_due(candidate.second) && (first == nullptr || candidate.second.due() < first->second.due()))
            first = &candidate;
    if (first == nullptr) return std::nullopt;
    const Entry taken = first->second;
    Refresh refresh{.far = taken.far,
                    .failing = taken.failures > 0,
                    .is_long = taken.is_long || taken.bare,
                    .files_only = taken.far && taken.timer > now && !taken.refused};
    for (auto& candidate : sets_) {
        auto& [name, entry] = candidate;
        const bool alone = taken.far || taken.is_long;
        if (alone ? &candidate != first : !is_due(entry) || entry.far || entry.is_long) continue;
        refresh.is_long = refresh.is_long || entry.bare;
        refresh.sets.insert(name);
        entry.changed.clear();
        entry.phase = Phase::at_work;
        entry.asks = !refresh.files_only;
    }
    return refresh;
}

bool Schedule::join(const std::set<std::string>& sets) {
    const auto waits = [this](const std::string& set) {
        const auto found = sets_.find(set);
        return found == sets_.end() || found->second.phase == Phase::waits;
    };
    if (!std::ranges::all_of(sets, waits)) return false;
    for (const std::string& set : sets)
        if (const auto found = sets_.find(set); found != sets_.end()) {
            found->second.changed.clear();
            found->second.phase = Phase::at_work;
            found->second.asks = true;
        }
    return true;
}

void Schedule::refreshed(const std::set<std::string>& sets) {
    for (const std::string& set : sets)
        if (const auto found = sets_.find(set); found != sets_.end()) found->second.phase = Phase::refreshed;
}

void Schedule::done(const CycleOptions& cycle, const CycleReport& report, Time now) {
    for (const SetReport& set : report.sets) {
        const auto found = sets_.find(set.name);
        if (found == sets_.end()) continue;
        Entry& entry = found->second;
        const bool lost = !std::exchange(entry.bare, !set.last_good) && entry.bare;
        entry.is_long = set.last_good && set.last_good->entries > long_list;
        if (!cycle.sets.contains(set.name)) {
            if (lost) entry.timer = now; // its image is built anew, before a hook needs it
            continue;
        }
        entry.phase = Phase::waits;
        entry.refused = set.outcome == SetOutcome::refused;
        // An answer without an entry may be a server's that is about to have some, and a hook may refuse a
        // list for another set's, which is about to change.
        const bool may_pass = set.guard == Guard::empty || set.guard == Guard::lockout;
        if (set.outcome != SetOutcome::failed && !may_pass && !report.unwritten) {
            schedule(entry, now);
            continue;
        }
        back_off(entry, now, set.retry_after);
    }
    const bool failed =
        report.unwritten || std::any_of(report.hooks.begin(), report.hooks.end(),
                                        [](const HookReport& hook) { return !hook.trouble().empty(); });
    if (failed)
        back_off_comparing(failures_, now);
    else
        failures_ = 0;
    // That may last for weeks, and keeps nothing else from being tried again soon.
    if (std::ranges::any_of(report.away, &AwayProgram::left))
        back_off_comparing(looks_, now);
    else
        looks_ = 0;
}

void Schedule::failed(const CycleOptions& cycle, Time now) {
    for (const std::string& name : cycle.sets)
        if (const auto found = sets_.find(name); found != sets_.end()) {
            found->second.phase = Phase::waits;
            back_off(found->second, now);
        }
    if (cycle.sets.empty()) back_off_comparing(failures_, now);
}

void Schedule::called_off(const CycleOptions& cycle, Time now) {
    for (const std::string& name : cycle.sets)
        if (const auto found = sets_.find(name); found != sets_.end()) {
            found->second.phase = Phase::waits;
            found->second.timer = now;
        }
    if (cycle.sets.empty()) compare_ = now;
}

std::optional<Schedule::Time> Schedule::next_of(const std::string& set) const {
    const auto found = sets_.find(set);
    return found == sets_.end() ? std::nullopt : std::optional(found->second.due());
}

void Schedule::schedule(Entry& entry, Time now) {
    if (!entry.asks) return; // the servers' time stays
    entry.failures = 0;
    entry.timer = now + jittered(entry.interval, chance_());
}

void Schedule::back_off(Entry& entry, Time now, std::optional<std::chrono::seconds> retry_after) {
    if (!entry.asks && entry.failures > 0) return; // its time is planned, however often files change
    entry.failures++;
    BackoffLimits limits = backoff_;
    limits.most = limits.most_asked_for = std::min(limits.most, entry.interval);
    entry.timer = now + backoff_delay(entry.failures, chance_(), retry_after, limits);
}

void Schedule::back_off_comparing(unsigned& failures, Time now) {
    failures++;
    const Time retry = now + backoff_delay(failures, chance_(), {}, backoff_);
    compare_ = compare_ ? std::min(*compare_, retry) : retry;
}

} // namespace sieve::service
