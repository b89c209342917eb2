// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/daemon.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "libsieve/control/keys/expire_keys.hpp"
#include "libsieve/service/config/configuration_reader.hpp"
#include "libsieve/service/config/values/configuration_secrets.hpp"
#include "libsieve/service/daemon/broken_off.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/monitor/process_usage.hpp"
#include "libsieve/service/reconcile/list_owner.hpp"
#include "libsieve/service/reconcile/reconcile.hpp"
#include "libsieve/service/reconcile/together.hpp"
#include "libsieve/util/random/chance.hpp"
#include "libsieve/util/results/unfinished.hpp"
#include "libsieve/util/system/event.hpp"
#include "libsieve/util/text/counted.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

Result<Configuration> load(const std::string& path) {
    SIEVE_ASSIGN(Configuration configuration, load_configuration(path, From::files));
    return live::with_range_sets(std::move(configuration));
}

// The longest time between two looks for keys whose time is over. Whoever inserts a key does not tell the
// daemon, so a key that ends sooner than the daemon looks next is taken out so much later at most.
constexpr std::chrono::seconds longest_without_a_look{10};

// Until sets that change in place are followed again, after that broke off.
constexpr std::chrono::seconds live_sets_pause{10};

// After a cycle that could not write all of the state.
constexpr std::chrono::minutes state_retry{1};

// How long the start waits for the host's addresses, about which a table is asked that comes into force where
// none runs. A table that replaces another waits until the addresses are known.
constexpr std::chrono::milliseconds host_patience{50};

// Takes keys out that people inserted for a time which is over (`insert --for`). The result is the time until
// the next look.
std::chrono::nanoseconds expire(control::Kernel& kernel, const control::Observer& observer, Log& log) {
    const auto expired = control::expire_keys(kernel, {}, observer);
    if (!expired) {
        log.warning(fmt::format("keys whose time is over: {}", expired.error().message));
        return longest_without_a_look;
    }
    for (const control::ExpiredKeys& one : *expired)
        log.info(fmt::format("{}: set {}: {} taken out, since the time is over", one.hook.interface, one.set,
                             counted(one.taken_out, "key")));
    const auto next = control::time_to_next_end(kernel, {});
    if (!next || !*next) return longest_without_a_look;
    return std::min<std::chrono::nanoseconds>(**next, longest_without_a_look);
}

// Whether somebody took a program off since the last cycle, such as by `ip link set dev eth0 xdp off`. A hook
// that cannot be read may have it.
bool has_lost(control::Kernel& kernel, const std::vector<ManagedHook>& in_force) {
    const auto hooks = control::hooks_of(kernel, {});
    return hooks && !std::ranges::all_of(in_force, [&](const ManagedHook& one) {
               return std::ranges::any_of(*hooks, [&](const kernel::Hook& hook) {
                   return hook.interface.name == one.interface && hook.point == one.point;
               });
           });
}

// Takes away every program that the service has put somewhere.
Status unload_all(control::Kernel& kernel, const StateDirectory& state, const control::Observer& observer,
                  Log& log) {
    const Configuration nothing;
    Status status;
    std::vector<ManagedHook> left;
    SIEVE_ASSIGN(const std::vector<ManagedHook> managed, state.hooks(observer.remark));
    const std::vector<HookPlan> plans = make_plan(kernel, nothing, {}, managed).hooks;
    for (const HookPlan& plan : plans) {
        const char* point = kernel::hook_point_name(plan.point);
        const LogFields fields{{"INTERFACE", plan.interface}, {"HOOK", point}};
        const auto done = plan.obstacle ? tl::unexpected(*plan.obstacle)
                                        : carry_out(kernel, nothing, plan, {}, state, observer);
        if (done) {
            log.notice(fmt::format("{} {}: unloaded, since on-stop is \"unload\"", plan.interface, point),
                       fields);
            continue;
        }
        log.error(
            fmt::format("{} {}: could not be unloaded: {}", plan.interface, point, done.error().message),
            fields);
        left.push_back({plan.interface, plan.point, plan.program_id});
        status = tl::unexpected(done.error());
    }
    for (const ManagedHook& one : managed) {
        if (std::ranges::find(plans, one.program_id, &HookPlan::program_id) != plans.end() ||
            !kernel.has_program(one.program_id).value_or(true))
            continue;
        log.warning(fmt::format("{} {}: is not unloaded, since its program runs at no interface that can be "
                                "seen, so maybe in another network namespace",
                                one.interface, kernel::hook_point_name(one.point)));
        left.push_back(one);
    }
    SIEVE_TRY(state.keep_hooks(left));
    return status;
}

// Calls `work`, which returns a Result. What it throws is a bug or a shortage of memory: an error of this
// work, and the daemon goes on.
template <class Work>
auto without_ending_the_daemon(const char* what, Work&& work) -> decltype(work()) {
    try {
        return std::forward<Work>(work)();
    } catch (const std::exception& error) {
        const Error why{.message = why_broken_off(error)};
        return unfinished(std::string(what) + " broke off, and what was changed before is in force", why);
    }
}

} // namespace

struct Daemon::RunningCycle {
    CycleOptions options;
    std::shared_ptr<const Configuration> configuration;
    Time began{};
    bool called_off = false;
    bool unloads = false; // it is no cycle, but the last act
    bool expires = false; // it is no cycle, but takes keys out whose time is over, as each cycle does
    std::chrono::nanoseconds next_look = longest_without_a_look; // for such keys, after its end
    bool lost = false; // a program is no longer where the last cycle left it
    Result<CycleReport> report{};
    Status unloaded{};

    // The sets that it was about. What did not come about since it was called off will be tried again.
    [[nodiscard]] std::set<std::string> answered() const {
        std::set<std::string> sets = options.sets;
        if (called_off && report)
            for (const SetReport& set : report->sets)
                if (set.outcome == SetOutcome::failed) sets.erase(set.name);
        return sets;
    }
};

Result<std::unique_ptr<Daemon>> Daemon::start(const DaemonParts& parts, const DaemonSettings& settings) {
    SIEVE_ASSIGN(Configuration configuration, load(settings.configuration));
    SIEVE_TRY(parts.kernel.may_load_programs());
    const auto waiting = [&](const std::string& holder) {
        parts.log.info(fmt::format("waiting for {}, which is at work with state directory {}", holder,
                                   printable(configuration.state_directory)));
    };
    const std::string& path = configuration.state_directory;
    const StateSettings kept{.spare = settings.spare.value_or(standard_spare(path)),
                             .tell = [&log = parts.log](const std::string& text) { log.warning(text); }};
    SIEVE_ASSIGN(StateDirectory state, StateDirectory::open(path, settings.patience, waiting, kept));
    std::unique_ptr<Daemon> daemon(new Daemon(parts, settings, std::move(configuration), std::move(state)));
    SIEVE_TRY(daemon->listen());
    return daemon;
}

Daemon::Daemon(const DaemonParts& parts, const DaemonSettings& settings, Configuration configuration,
               StateDirectory state)
    : parts_(parts), settings_(settings),
      configuration_(std::make_shared<const Configuration>(std::move(configuration))),
      state_(std::move(state)), schedule_(&chance, settings.backoff),
      cycle_log_(parts.log,
                 [this](const std::string& set) -> std::optional<std::chrono::milliseconds> {
                     const auto next = schedule_.next_of(set);
                     if (!next) return std::nullopt;
                     return std::chrono::duration_cast<std::chrono::milliseconds>(
                         std::max(*next - now(), Time::duration::zero()));
                 }),
      live_(parts.kernel, state_, parts.host, parts.log, parts.statistics),
      bans_(live_, parts.host, parts.log),
      usage_reports_(parts.kernel, parts.statistics, parts.log,
                     {.decisions = [this](const std::string& set) { return live_.decisions(set); }}),
      lists_(parts.loop, parts.log, [this](const std::set<std::string>& sets) { lists_changed(sets); }),
      refreshes_(parts.loop, parts.kernel, state_, parts.host, parts.log,
                 [this](Refreshes::Done done) { refreshed(std::move(done)); }) {}

Daemon::~Daemon() {
    call_off();
}

Status Daemon::listen() {
    SIEVE_ASSIGN(cancel_, make_event());
    if (!settings_.sandbox) {
        SIEVE_ASSIGN(settings_.sandbox, standard_sandbox());
    }
    settings_.sandbox->cancel = cancel_.get();
    bounded_host_addresses_ = std::make_unique<BoundedHostAddresses>(parts_.host, host_patience);
    EventLoop& loop = parts_.loop;
    SIEVE_ASSIGN(timer_, loop.timer([this] { look_at_schedule(); }));
    SIEVE_ASSIGN(ends_timer_, loop.timer([this] { take_out_ended(); }));
    SIEVE_ASSIGN(urgent_, Worker::start(Priority::normal));
    SIEVE_ASSIGN(patient_, Worker::start(Priority::low));
    SIEVE_ASSIGN(urgent_ended_, loop.on_readable(urgent_->ended(), [this] {
        urgent_->acknowledge();
        end();
    }));
    SIEVE_ASSIGN(patient_ended_, loop.on_readable(patient_->ended(), [this] {
        patient_->acknowledge();
        end();
    }));
    SIEVE_ASSIGN(live_troubles_, loop.on_readable(live_.troubles_changed(), [this] {
        live_.acknowledge();
        if (stopping_) return;
        if (live_.has_new_images()) {
            schedule_.compare(now());
            arm();
        }
        if (live_.has_broken_off()) {
            live_sets_wait_ = true; // for a cycle that comes
            schedule_.compare(now() + live_sets_pause);
            arm();
        }
        if (ready_ && !reloading_) notify_status(""); // else the comparison that follows says it
    }));
    SIEVE_ASSIGN(EventSource hangup, loop.on_signal(SIGHUP, [this] { reload(); }));
    SIEVE_ASSIGN(EventSource terminate, loop.on_signal(SIGTERM, [this] { stop(); }));
    SIEVE_ASSIGN(EventSource interrupt, loop.on_signal(SIGINT, [this] { stop(); }));
    signals_.push_back(std::move(hangup));
    signals_.push_back(std::move(terminate));
    signals_.push_back(std::move(interrupt));
    SIEVE_ASSIGN(interfaces_, InterfaceWatch::start(loop, [this](const InterfaceChange& change) {
                     interfaces_changed(change);
                 }));
    watch_state();
    announce();
    schedule_.follow(without_live_sets(*configuration_), now());
    schedule_.compare(now());
    arm();
    return {};
}

Status Daemon::run() {
    parts_.loop.answer_watchdog();
    SIEVE_TRY(parts_.loop.run());
    return result_;
}

Daemon::Time Daemon::now() const {
    const auto passed = std::chrono::steady_clock::now() - started_;
    return started_ + std::chrono::duration_cast<Time::duration>(passed * settings_.pace);
}

void Daemon::arm() {
    std::optional<Time> next = schedule_.next_refresh(room());
    if (const auto cycle = schedule_.next(); cycle && !running_)
        next = next ? std::min(*next, *cycle) : cycle;
    if (!next || stopping_) return timer_.unset();
    timer_.set(started_ + std::chrono::duration_cast<Time::duration>((*next - started_) / settings_.pace));
}

void Daemon::look_at_schedule() {
    if (!held_back_.empty()) schedule_.called_off({.sets = std::exchange(held_back_, {})}, now());
    refresh();
    if (!running_ && !stopping_)
        if (std::optional<CycleOptions> options = schedule_.take(now())) begin(std::move(*options));
    arm();
}

// What is remembered comes into force before any source is asked.
RefreshRoom Daemon::room() const {
    return ready_ && !reloading_ && !stopping_ ? refreshes_.room() : RefreshRoom{};
}

void Daemon::refresh() {
    while (std::optional<Refresh> refresh = schedule_.take_refresh(now(), room())) {
        const std::set<std::string> all = SetsTogether::of(*configuration_).completed(refresh->sets);
        std::set<std::string> others;
        std::ranges::set_difference(all, refresh->sets, std::inserter(others, others.end()));
        if (!schedule_.join(others)) {
            held_back_.merge(refresh->sets);
            continue;
        }
        refresh->sets = all;
        refresh->files_only = refresh->files_only && others.empty();
        parts_.statistics.note_cycle_begun(all);
        const Status begun = refreshes_.begin(configuration_, *refresh, *settings_.sandbox);
        if (begun) continue;
        parts_.log.error(fmt::format("set {}: its sources cannot be asked: {}", fmt::join(all, ", "),
                                     begun.error().message));
        schedule_.failed({.sets = all}, now());
    }
}

void Daemon::refreshed(Refreshes::Done done) {
    if (stopping_) return;
    const std::set<std::string>& sets = done.refresh.sets;
    if (done.called_off || done.configuration != configuration_) {
        schedule_.called_off({.sets = sets}, now());
    } else if (done.surveys.empty()) {
        schedule_.failed({.sets = sets}, now());
    } else {
        for (SetSurvey& survey : done.surveys) {
            std::optional<Error>& behind = behind_[survey.set->name];
            if (done.refresh.files_only && !survey.behind)
                survey.behind = behind; // nobody asked whether it is over
            else if (!survey.examined || !survey.examined->waits_to_give_up)
                behind = survey.behind;
            surveyed_[survey.set->name] = std::make_shared<SetSurvey>(std::move(survey));
        }
        schedule_.refreshed(sets);
    }
    look_at_schedule();
}

control::Observer Daemon::observer() const {
    control::Observer observer;
    observer.remark = [&log = parts_.log](const std::string& text) { log.info(text); };
    observer.waiting = [&log = parts_.log](const std::string& holder) {
        log.info(fmt::format("waiting for {} to finish its change", holder));
    };
    return observer;
}

void Daemon::begin(CycleOptions options) {
    clear_event(cancel_.get()); // of an earlier cycle
    running_ = std::make_shared<RunningCycle>();
    running_->options = std::move(options);
    running_->options.sandbox = settings_.sandbox;
    running_->configuration = configuration_;
    running_->began = std::chrono::steady_clock::now();
    for (const std::string& set : running_->options.sets)
        if (auto survey = surveyed_.extract(set)) running_->options.surveyed.insert(std::move(survey));
    Worker& worker = running_->options.ask == Ask::nothing ? *urgent_ : *patient_;
    if (ready_) parts_.statistics.set_state(watching::DaemonState::working);
    // At the start, what is remembered is in force before the lists of live sets are read.
    const bool is_first = cycles_ == 0;
    const bool opens = live_sets_wait_ && (!is_first || !live_.can_wait(*configuration_));
    if (opens) live_sets_wait_ = false;
    if (is_first) running_->options.host_where_none_runs = bounded_host_addresses_.get();
    running_->options.catch_up = [this](const std::string& set, std::uint32_t map_id) {
        live_.catch_up(set, map_id);
    };
    worker.run([this, job = running_, opens, is_first] {
        job->report = without_ending_the_daemon("the cycle", [&] {
            CycleOptions options = job->options;
            if (opens) live_.open(*job->configuration, *settings_.sandbox, observer());
            const std::lock_guard lock(live_.exclusive());
            state_.mend();
            if (is_first && !opens) take_over_renamed(*job->configuration, state_, observer());
            // A cycle may take a program away, and its counters with it. A failure is the statistics's to
            // show.
            (void)parts_.statistics.observe(parts_.kernel);
            job->next_look = expire(parts_.kernel, observer(), parts_.log);
            options.ask = Ask::nothing; // the sources were asked
            return run_cycle(parts_.kernel, *job->configuration, state_, parts_.host, options, observer());
        });
    });
}

// Between the cycles.
void Daemon::take_out_ended() {
    if (running_ || stopping_) return; // end() sets the timer
    running_ = std::make_shared<RunningCycle>();
    running_->expires = true;
    running_->options.ask = Ask::nothing;
    urgent_->run([this, job = running_] {
        const Status done = without_ending_the_daemon("taking keys out", [&]() -> Status {
            const std::lock_guard lock(live_.exclusive());
            job->next_look = expire(parts_.kernel, observer(), parts_.log);
            job->lost = has_lost(parts_.kernel, in_force_);
            return {};
        });
        if (!done) parts_.log.error(done.error().message);
    });
}

void Daemon::end() {
    if (!running_) return;
    const std::shared_ptr<RunningCycle> ended = std::exchange(running_, nullptr);
    if (ended->unloads) {
        result_ = std::move(ended->unloaded);
        parts_.loop.leave();
        return;
    }
    ends_timer_.set(std::chrono::steady_clock::now() +
                    std::chrono::duration_cast<Time::duration>(ended->next_look / settings_.pace));
    if (ended->expires) {
        if (ended->lost) schedule_.compare(now());
        if (stopping_) return finish_stopping();
        if (next_) adopt();
        return look_at_schedule();
    }
    cycles_++;
    if (cycles_ == 1 && bounded_host_addresses_->was_late())
        parts_.log.warning("the start did not wait for the addresses that this host lives by, so last good "
                           "lists came into force without being asked about them");
    if (cycles_ == 1 && !stopping_) follow_lists();
    live_.run();
    live_.reconcile_all(); // their filters may have come anew
    note(*ended);
    tell_state();
    watch_state();
    ask_accepted();
    if (ended->called_off)
        schedule_.called_off(ended->options, now());
    else if (ended->report)
        schedule_.done(ended->options, *ended->report, now());
    else
        schedule_.failed(ended->options, now());
    tell(*ended);
    if (stopping_) return finish_stopping();
    if (next_) {
        adopt();
    } else if (ended->options.ask == Ask::nothing && !ended->called_off && (!ready_ || reloading_)) {
        // What is remembered is in force. Now the sources are asked.
        schedule_.ask_all(now());
        if (live_sets_wait_) schedule_.compare(now());
        if (!ready_)
            parts_.log.info(fmt::format(
                "ready {} ms after the start of this process, {:.0f} ms of them on a processor: {}",
                watching::time_since_start().count(), watching::processor_time().count(), standing()));
        ready_ = true;
        reloading_ = false;
        notify_status("READY=1\n");
    } else {
        notify_status("");
    }
    parts_.statistics.set_state(watching::DaemonState::ready);
    // The disk may have room again.
    const Time retry = now() + state_retry;
    if (state_in_memory_ && schedule_.next().value_or(Time::max()) > retry) schedule_.compare(retry);
    look_at_schedule();
}

void Daemon::note(const RunningCycle& ended) {
    watching::CycleTimes times;
    times.took = std::chrono::steady_clock::now() - ended.began;
    times.asked = ended.answered();
    in_force_.clear();
    if (!ended.report) {
        if (!ended.called_off) parts_.statistics.note_cycle_failed(ended.report.error(), times);
        return;
    }
    some_are_away_ = !ended.report->away.empty();
    parts_.statistics.note_cycle(*ended.report, times);
    for (const HookReport& hook : ended.report->hooks)
        if (const std::uint32_t id = hook.program_id(); id != 0)
            in_force_.push_back({hook.plan.interface, hook.plan.point, id});
}

// The directory that is at the path now. Where it cannot be watched, a cycle finds what has changed.
void Daemon::watch_state() {
    if (watch_ && watched_state_ == state_.taken()) return;
    auto watch = StateWatch::start(parts_.loop, state_.path(),
                                   {.pauses =
                                        [this] {
                                            schedule_.compare(now());
                                            arm();
                                        },
                                    .refusals = [this] { ask_accepted(); }});
    watch_ = watch ? std::move(*watch) : nullptr;
    watched_state_ = state_.taken();
}

// A list that a person has just accepted is asked for at once.
void Daemon::ask_accepted() {
    const std::map<std::string, std::string> before = std::exchange(accepted_, state_.accepted());
    std::set<std::string> sets;
    for (const auto& [set, digest] : accepted_)
        if (const auto known = before.find(set); known == before.end() || known->second != digest)
            sets.insert(set);
    if (sets.empty()) return;
    lists_changed(sets);
    if (parts_.accepted) parts_.accepted();
}

// Whether the state is kept on the disk, when that changes.
void Daemon::tell_state() {
    std::optional<std::string> trouble = state_.trouble();
    parts_.statistics.note_state_trouble(trouble);
    if (std::exchange(state_in_memory_, trouble.has_value()) == trouble.has_value()) return;
    const std::string begin = fmt::format("state directory {}: ", printable(state_.path()));
    if (!trouble) return parts_.log.notice(begin + "all state is kept on the disk again");
    for (const std::string& known : {begin, std::string("state directory ")})
        if (trouble->starts_with(known)) trouble->erase(0, known.size());
    parts_.log.warning(fmt::format("{}{}; what cannot be written is kept in memory, in {}, until the machine "
                                   "ends, and filtering goes on",
                                   begin, *trouble, printable(state_.spare())));
}

void Daemon::announce() {
    parts_.statistics.set_configuration(*configuration_);
    usage_reports_.follow(configuration_, *settings_.sandbox);
    if (!settings_.ban_socket.empty()) bans_.follow(configuration_, settings_.ban_socket);
    if (parts_.adopted) parts_.adopted(*configuration_);
    for (const std::string& exposed : exposed_passwords(*configuration_)) parts_.log.warning(exposed);
}

void Daemon::tell(const RunningCycle& ended) {
    if (!ended.report) {
        if (!ended.called_off)
            parts_.log.error(ended.report.error().kind == ErrorKind::unfinished
                                 ? ended.report.error().message
                                 : fmt::format("nothing was changed: {}", ended.report.error().message));
        return;
    }
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - ended.began);
    cycle_log_.tell(ended.answered(), *ended.report, took);
    if (const auto& unwritten = ended.report->unwritten)
        parts_.log.error(unwritten->message + "; what is in force stays, and is written down later");
}

void Daemon::notify_status(const std::string& first_line) {
    const std::string text = standing();
    parts_.notifier.send(fmt::format("{}STATUS={}", first_line, text));
    if (parts_.told) parts_.told(text);
}

std::string Daemon::standing() const {
    std::string text = cycle_log_.standing();
    for (const std::string& trouble : live_.troubles()) text += "; " + trouble;
    if (parts_.trouble_beside)
        if (const std::string trouble = parts_.trouble_beside(); !trouble.empty()) text += "; " + trouble;
    if (state_in_memory_) text += "; the state is kept in memory only";
    return text;
}

void Daemon::call_off() {
    refreshes_.call_off();
    if (!running_ || running_->options.ask == Ask::nothing) return; // it will not be long
    running_->called_off = true;
    set_event(cancel_.get());
}

void Daemon::reload() {
    if (stopping_) return;
    parts_.statistics.set_state(watching::DaemonState::reloading);
    parts_.notifier.send(reloading_lines() + "\nSTATUS=reading the configuration anew");
    Result<Configuration> configuration = load(settings_.configuration);
    if (configuration && configuration->state_directory != configuration_->state_directory)
        configuration = bad_input(fmt::format(
            "{}: state-directory is now {}, and stays {} until the daemon is "
            "started anew",
            settings_.configuration, configuration->state_directory, configuration_->state_directory));
    parts_.statistics.note_reload(configuration ? std::nullopt : std::optional(configuration.error()));
    if (!configuration) {
        parts_.statistics.set_state(running_ ? watching::DaemonState::working : watching::DaemonState::ready);
        parts_.log.error(fmt::format("the configuration was not taken, and the one before stays: {}",
                                     configuration.error().message));
        if (ready_) // else the first cycle says it
            parts_.notifier.send(fmt::format("READY=1\nSTATUS={}; the new configuration was not taken: {}",
                                             standing(), configuration.error().message));
        return;
    }
    next_ = std::make_shared<const Configuration>(std::move(*configuration));
    reloading_ = true;
    call_off();
    if (!running_) adopt(); // else end() does
    arm();
}

void Daemon::adopt() {
    configuration_ = std::exchange(next_, nullptr);
    parts_.log.notice(fmt::format("the configuration was read anew: {}", settings_.configuration));
    cycle_log_.follow(*configuration_);
    announce();
    live_sets_wait_ = true;          // for the comparison that follows
    if (cycles_ > 0) follow_lists(); // else after the first cycle
    surveyed_.clear();
    behind_.clear();
    schedule_.follow(without_live_sets(*configuration_), now());
    schedule_.compare(now());
}

// Before the sources are asked and live sets read their files, so that no change is missed. After the first
// cycle: a path on a server that is dead holds whoever looks at it.
void Daemon::follow_lists() {
    if (Status watched = lists_.follow(*configuration_); !watched)
        parts_.log.warning(watched.error().message);
}

void Daemon::stop() {
    if (stopping_) return;
    stopping_ = true;
    parts_.statistics.set_state(watching::DaemonState::stopping);
    parts_.notifier.send("STOPPING=1\nSTATUS=stopping");
    timer_.unset();
    call_off();
    if (!running_) finish_stopping(); // else end() does
}

void Daemon::finish_stopping() {
    if (configuration_->on_stop == OnStop::keep) {
        parts_.log.notice("stopped; what is in force stays in force");
        parts_.loop.leave();
        return;
    }
    running_ = std::make_shared<RunningCycle>();
    running_->unloads = true;
    urgent_->run([this, job = running_] {
        job->unloaded = without_ending_the_daemon("unloading", [&] {
            live_.close();
            return unload_all(parts_.kernel, state_, observer(), parts_.log);
        });
    });
}

bool Daemon::concerns(const std::string& interface) const {
    for (const kernel::HookPoint point : kernel::all_hook_points)
        if (entry_for(*configuration_, interface, point) != nullptr) return true;
    return std::any_of(
        configuration_->sets.begin(), configuration_->sets.end(),
        [&](const SetConfiguration& set) { return set.action && set.action->target == interface; });
}

void Daemon::interfaces_changed(const InterfaceChange& change) {
    // An interface may come back with its program under whatever name.
    if (!change.everything && !some_are_away_ &&
        std::none_of(change.names.begin(), change.names.end(),
                     [this](const std::string& name) { return concerns(name); }))
        return;
    schedule_.interfaces_changed(now());
    arm();
}

void Daemon::lists_changed(const std::set<std::string>& sets) {
    live_.wake(sets);
    schedule_.lists_changed(sets, now());
    arm();
}

} // namespace sieve::service
