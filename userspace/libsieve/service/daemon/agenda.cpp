// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/agenda.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace sieve::service {

namespace {

bool is_far(const SetConfiguration& set) {
    return std::any_of(set.sources.begin(), set.sources.end(), [](const SourceSpec& source) {
        return !std::holds_alternative<FileSpec>(source) && !std::holds_alternative<FolderSpec>(source) &&
               !std::holds_alternative<GlobSpec>(source);
    });
}

} // namespace

void Agenda::Settling::trigger(Time now, const AgendaLimits& limits) {
    if (!first_) first_ = now;
    due_ = std::min(now + limits.quiet, *first_ + limits.longest);
}

Agenda::Time Agenda::Entry::due() const {
    return changed.due() ? std::min(timer, *changed.due()) : timer;
}

Agenda::Agenda(Chance chance, AgendaLimits limits) : chance_(std::move(chance)), limits_(limits) {}

void Agenda::follow(const Configuration& configuration, Time now) {
    std::map<std::string, Entry> before = std::exchange(sets_, {});
    for (const SetConfiguration& set : configuration.sets) {
        Entry entry;
        if (const auto found = before.find(set.name); found != before.end())
            entry = found->second;
        else
            entry.timer = now;
        if (entry.turn == Turn::answered) { // to what was asked before
            entry.turn = Turn::waits;
            entry.timer = now;
        }
        entry.interval = set.refresh;
        entry.far = is_far(set);
        entry.timer = std::min(entry.timer, now + entry.interval);
        sets_.emplace(set.name, entry);
    }
}

void Agenda::compare(Time at) {
    compare_ = compare_ ? std::min(*compare_, at) : at;
}

void Agenda::ask_all(Time now) {
    for (auto& [name, entry] : sets_) entry.timer = now;
}

void Agenda::lists_changed(const std::set<std::string>& sets, Time now) {
    for (const std::string& name : sets)
        if (const auto found = sets_.find(name); found != sets_.end())
            found->second.changed.trigger(now, limits_);
}

void Agenda::interfaces_changed(Time now) {
    interfaces_.trigger(now, limits_);
}

std::optional<Agenda::Time> Agenda::next() const {
    std::optional<Time> next = compare_;
    const auto sooner = [&next](Time time) { next = next ? std::min(*next, time) : time; };
    if (interfaces_.due()) sooner(*interfaces_.due());
    for (const auto& [name, entry] : sets_) {
        if (entry.turn == Turn::answered) sooner(Time::min());
        if (entry.turn == Turn::waits && !entry.far) sooner(entry.due());
    }
    return next;
}

std::optional<Agenda::Time> Agenda::next_far(FarRoom room) const {
    std::optional<Time> next;
    for (const auto& [name, entry] : sets_)
        if (entry.turn == Turn::waits && entry.far && entry.has_room(room))
            next = next ? std::min(*next, entry.due()) : entry.due();
    return next;
}

bool Agenda::fails(const std::string& set) const {
    const auto found = sets_.find(set);
    return found != sets_.end() && found->second.failures > 0;
}

std::optional<CycleOptions> Agenda::take(Time now) {
    const auto is_due = [now](std::optional<Time> time) { return time && *time <= now; };
    CycleOptions cycle{.ask = Ask::nothing, .sets = {}, .failing = Failing::stops_itself};
    if (is_due(compare_) || is_due(interfaces_.due())) {
        compare_.reset();
        interfaces_.clear();
        return cycle;
    }
    for (auto& [name, entry] : sets_) {
        if (entry.turn != Turn::answered) {
            if (entry.far || !is_due(entry.due())) continue;
            entry.changed.clear();
        }
        cycle.sets.insert(name);
        entry.turn = Turn::waits;
        if (entry.failures > 0) cycle.failures[name] = entry.failures;
        entry.timer = now + entry.interval; // until it is known what became of the cycle
    }
    if (cycle.sets.empty()) return std::nullopt;
    cycle.ask = Ask::some;
    return cycle;
}

std::optional<std::string> Agenda::take_far(Time now, FarRoom room) {
    std::pair<const std::string, Entry>* first = nullptr;
    for (auto& candidate : sets_) {
        const Entry& entry = candidate.second;
        if (!entry.far || entry.turn != Turn::waits || entry.due() > now || !entry.has_room(room)) continue;
        if (first == nullptr || entry.due() < first->second.due()) first = &candidate;
    }
    if (first == nullptr) return std::nullopt;
    first->second.changed.clear();
    first->second.turn = Turn::asked;
    return first->first;
}

void Agenda::answered(const std::string& set) {
    if (const auto found = sets_.find(set); found != sets_.end()) found->second.turn = Turn::answered;
}

void Agenda::done(const CycleOptions& cycle, const CycleReport& report, Time now) {
    for (const SetReport& set : report.sets) {
        const auto found = sets_.find(set.name);
        if (found == sets_.end()) continue;
        Entry& entry = found->second;
        const bool lost = !std::exchange(entry.bare, !set.last_good) && entry.bare;
        if (!cycle.sets.contains(set.name)) {
            if (lost) entry.timer = now; // its image is built anew, before a hook needs it
            continue;
        }
        // An answer without an entry may be a server's that is about to have some.
        if (set.outcome != SetOutcome::failed && set.guard != Guard::empty) {
            schedule(entry, now);
            continue;
        }
        const bool counted =
            set.failures > entry.failures; // by the cycle, which knows what a server asks for
        back_off(entry, now);
        if (counted && set.ask_after) entry.timer = now + *set.ask_after;
    }
    const bool failed = std::any_of(report.hooks.begin(), report.hooks.end(),
                                    [](const HookReport& hook) { return hook.error.has_value(); });
    if (failed)
        back_off_comparing(now);
    else
        failures_ = 0;
}

void Agenda::failed(const CycleOptions& cycle, Time now) {
    for (const std::string& name : cycle.sets)
        if (const auto found = sets_.find(name); found != sets_.end()) {
            found->second.turn = Turn::waits;
            back_off(found->second, now);
        }
    if (cycle.sets.empty()) back_off_comparing(now);
}

void Agenda::called_off(const CycleOptions& cycle, Time now) {
    for (const std::string& name : cycle.sets)
        if (const auto found = sets_.find(name); found != sets_.end()) {
            found->second.turn = Turn::waits;
            found->second.timer = now;
        }
    if (cycle.sets.empty()) compare_ = now;
}

std::optional<Agenda::Time> Agenda::next_of(const std::string& set) const {
    const auto found = sets_.find(set);
    return found == sets_.end() ? std::nullopt : std::optional(found->second.due());
}

void Agenda::schedule(Entry& entry, Time now) {
    entry.failures = 0;
    entry.timer = now + jittered(entry.interval, chance_());
}

void Agenda::back_off(Entry& entry, Time now) {
    entry.failures++;
    entry.timer = now + backoff_delay(entry.failures, chance_(), {}, limits_.backoff);
}

void Agenda::back_off_comparing(Time now) {
    failures_++;
    const Time retry = now + backoff_delay(failures_, chance_(), {}, limits_.backoff);
    compare_ = compare_ ? std::min(*compare_, retry) : retry;
}

} // namespace sieve::service
