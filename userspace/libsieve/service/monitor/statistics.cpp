// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/statistics.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/monitor/replace_file.hpp"
#include "libsieve/util/system/boot_id.hpp"
#include "libsieve/util/system/small_file.hpp"

namespace sieve::service::watching {

namespace {

constexpr std::size_t longest_counters = std::size_t{64} << 20;

std::int64_t since_1970(Clock::time_point at) {
    return std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count();
}

template <class Enum>
std::size_t index(Enum value) {
    return static_cast<std::size_t>(value);
}

// Nothing if there is no such file, or if it cannot be understood: counting then starts with the kernel's own
// counters.
std::optional<Totals> read_counters(const std::string& path, const std::string& boot) {
    if (path.empty()) return std::nullopt;
    const auto text = read_small_file(path, longest_counters);
    if (!text || !*text) return std::nullopt;
    auto totals = Totals::read(**text, boot);
    if (!totals) return std::nullopt;
    return std::move(*totals);
}

// Nothing for what took no time: it did not happen.
RefreshTimes refresh_times(const SetTimes& times) {
    const auto measured = [](std::chrono::milliseconds took) {
        return took.count() > 0 ? std::optional<Seconds>(took) : std::nullopt;
    };
    return {.fetching = measured(times.fetching), .building = measured(times.reading + times.building)};
}

} // namespace

const char* daemon_state_name(DaemonState state) {
    switch (state) {
    case DaemonState::starting:
        return "starting";
    case DaemonState::ready:
        return "ready";
    case DaemonState::working:
        return "working";
    case DaemonState::reloading:
        return "reloading";
    case DaemonState::stopping:
        return "stopping";
    }
    return "unknown";
}

const char* outcome_name(SetOutcome outcome) {
    switch (outcome) {
    case SetOutcome::unchanged:
        return "unchanged";
    case SetOutcome::replaced:
        return "replaced";
    case SetOutcome::failed:
        return "failed";
    case SetOutcome::refused:
        return "refused";
    }
    return "unknown";
}

void TimeSum::add(Seconds duration) {
    count++;
    sum += duration;
    last = duration;
}

Statistics::Statistics(Settings settings) : settings_(std::move(settings)), boot_(boot_id()) {
    record_.version = settings_.version;
    record_.started = Clock::now();
    if (auto totals = read_counters(settings_.counters_file, boot_)) totals_ = std::move(*totals);
}

Statistics::~Statistics() {
    (void)keep();
}

void Statistics::set_configuration(const Configuration& configuration) {
    const std::lock_guard lock(mutex_);
    record_.configuration = configuration;
    std::map<std::string, SetHistory> sets;
    for (const SetConfiguration& set : configuration.sets) sets[set.name] = std::move(record_.sets[set.name]);
    record_.sets = std::move(sets);
}

void Statistics::set_state(DaemonState state) {
    const std::lock_guard lock(mutex_);
    record_.state = state;
}

void Statistics::refresh_noted(const std::string& name, RefreshNote note) {
    SetHistory& set = record_.sets[name];
    set.refreshes[index(note.result)]++;
    if (note.guard) set.refusals[index(*note.guard)]++;
    if (note.times.fetching) set.fetching.add(*note.times.fetching);
    if (note.times.building) set.building.add(*note.times.building);
    if (note.result == SetOutcome::unchanged || note.result == SetOutcome::replaced) set.confirmed = note.at;
    if (note.last_good) {
        set.last_good = note.last_good;
        set.live_entries.reset(); // the set no longer changes in place
    }
    set.last = std::move(note);
}

void Statistics::note_refresh(const std::string& set, RefreshNote note) {
    const std::lock_guard lock(mutex_);
    refresh_noted(set, std::move(note));
}

void Statistics::note_cycle_begun(const std::set<std::string>& asked) {
    const std::lock_guard lock(mutex_);
    for (const std::string& name : asked) record_.sets[name].begun++;
}

void Statistics::note_cycle(const CycleReport& report, const CycleTimes& times) {
    const std::lock_guard lock(mutex_);
    record_.cycles++;
    if (report.changed) record_.cycles_changed++;
    record_.cycle_time.add(times.took);
    record_.last_cycle = times.at;
    record_.cycle_error.reset();
    record_.missing = report.missing;
    record_.hook_errors.clear();
    record_.otherwise.clear();
    record_.paused.clear();
    record_.waiting.clear();
    record_.default_waits.clear();
    for (const HookReport& hook : report.hooks) {
        const HookId id{hook.plan.interface, hook.plan.point};
        if (std::string trouble = hook.trouble(); !trouble.empty())
            record_.hook_errors[id] = std::move(trouble);
        if (hook.plan.paused) record_.paused.insert(id);
        if (!hook.plan.waiting.empty()) record_.waiting[id] = hook.plan.waiting;
        if (hook.plan.default_waits() && !hook.error) record_.default_waits.insert(id);
        if (hook.plan.otherwise) record_.otherwise[id] = hook.plan.otherwise->message;
    }
    for (const SetReport& set : report.sets) {
        record_.sets[set.name].action_waits = set.action_waits;
        if (!times.asked.contains(set.name)) {
            // A set that was not asked may still have failed to come in force, or be known from earlier.
            if (set.last_good) record_.sets[set.name].last_good = set.last_good;
            continue;
        }
        refresh_noted(set.name, {.result = set.outcome,
                                 .at = times.at,
                                 .times = refresh_times(set.times),
                                 .guard = set.guard,
                                 .message = set.error ? set.error->message : std::string(),
                                 .last_good = set.last_good});
        record_.sets[set.name].ended = record_.sets[set.name].begun;
    }
}

void Statistics::note_cycle_failed(const Error& error, const CycleTimes& times) {
    const std::lock_guard lock(mutex_);
    record_.cycles++;
    record_.cycles_failed++;
    record_.cycle_time.add(times.took);
    record_.last_cycle = times.at;
    record_.cycle_error = error.message;
}

void Statistics::note_live_change(const std::string& name, const LiveChangeNote& change) {
    const std::lock_guard lock(mutex_);
    SetHistory& set = record_.sets[name];
    set.live_changes++;
    set.live_inserted += change.inserted;
    set.live_deleted += change.deleted;
    if (change.rebuild_due) set.rebuilds_due++;
    set.changing.add(change.took);
    set.confirmed = change.at;
    set.last_change = change;
}

void Statistics::note_live_entries(const std::string& name, std::optional<std::uint64_t> entries) {
    const std::lock_guard lock(mutex_);
    if (const auto set = record_.sets.find(name); set != record_.sets.end())
        set->second.live_entries = entries;
}

void Statistics::note_reload(const std::optional<Error>& error, Clock::time_point at) {
    const std::lock_guard lock(mutex_);
    record_.reloads++;
    if (error) record_.reloads_failed++;
    record_.last_reload = at;
    record_.reload_error = error ? std::optional(error->message) : std::nullopt;
}

void Statistics::note_state_trouble(std::optional<std::string> why) {
    const std::lock_guard lock(mutex_);
    record_.state_trouble = std::move(why);
}

void Statistics::note_fleet(std::optional<FleetStanding> standing) {
    const std::lock_guard lock(mutex_);
    record_.fleet = std::move(standing);
}

void Statistics::note_test(const std::string& set, Seconds took) {
    const std::lock_guard lock(mutex_);
    record_.sets[set].testing.add(took);
}

void Statistics::note_swap(const HookId& hook, Seconds took) {
    const std::lock_guard lock(mutex_);
    record_.swapping[hook].add(took);
}

Result<std::vector<control::Sample>> Statistics::observe(control::Kernel& kernel, Clock::time_point at) {
    const std::lock_guard order(observing_);
    auto samples = control::take_samples(kernel, {});
    if (!samples) {
        const std::lock_guard lock(mutex_);
        record_.observations_failed++;
        record_.observation_error = samples.error().message;
        return samples;
    }
    add_samples(*samples, at);
    return samples;
}

void Statistics::observe(const std::vector<control::Sample>& samples, Clock::time_point at) {
    const std::lock_guard order(observing_);
    add_samples(samples, at);
}

void Statistics::add_samples(const std::vector<control::Sample>& samples, Clock::time_point at) {
    bool anew = false, due = false;
    {
        const std::lock_guard lock(mutex_);
        record_.observation_error.reset();
        anew = totals_.observe(samples, since_1970(at));
        if (history_.empty() || at - history_.back().at >= settings_.between) {
            remember_moment(samples, at);
            due = true;
        }
    }
    // What started anew is on the disk before anybody sees a number that follows from it.
    if (anew || due) (void)keep();
}

void Statistics::remember_moment(const std::vector<control::Sample>& samples, Clock::time_point at) {
    Moment moment{.at = at, .hooks = {}, .sets = {}};
    for (const control::Sample& sample : samples) {
        const HookId hook{sample.interface, sample.point};
        moment.hooks[hook] = totals_.hook(hook);
        for (const control::SetStatus& set : sample.table.sets)
            moment.sets[hook][set.set.name] = totals_.set(hook, set.set.name);
    }
    history_.push_back(std::move(moment));
    while (at - history_.front().at > settings_.kept) history_.pop_front();
}

StatisticsCopy Statistics::record() const {
    const std::lock_guard lock(mutex_);
    return record_;
}

Totals Statistics::totals() const {
    const std::lock_guard lock(mutex_);
    return totals_;
}

HookTotals Statistics::totals(const HookId& hook) const {
    const std::lock_guard lock(mutex_);
    return totals_.hook(hook);
}

SetTotals Statistics::totals(const HookId& hook, const std::string& set) const {
    const std::lock_guard lock(mutex_);
    return totals_.set(hook, set);
}

std::vector<Moment> Statistics::history() const {
    const std::lock_guard lock(mutex_);
    return {history_.begin(), history_.end()};
}

Status Statistics::keep() {
    if (settings_.counters_file.empty()) return {};
    const std::lock_guard writing(writing_);
    std::string text;
    {
        const std::lock_guard lock(mutex_);
        text = totals_.text(boot_);
    }
    Status written = replace_file(settings_.counters_file, text);
    const std::lock_guard lock(mutex_);
    record_.keeping_error = written ? std::nullopt : std::optional(written.error().message);
    return written;
}

} // namespace sieve::service::watching
