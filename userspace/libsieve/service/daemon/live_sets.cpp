// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/live_sets.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/daemon/broken_off.hpp"
#include "libsieve/service/daemon/cycle_log.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/service/live/live_set.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/reconcile/list_owner.hpp"
#include "libsieve/util/system/event.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve::service {

namespace {

constexpr std::chrono::minutes longest_wait{1};

// What an opening that comes later may not meet.
bool may_pass(const Error& error) {
    return error.kind == ErrorKind::out_of_memory || error.kind == ErrorKind::kernel_refused ||
           error.kind == ErrorKind::busy;
}

bool is_in_trouble(const live::LiveUpdater::State& state) {
    return state.failures > 0 || !state.put_off.empty();
}

std::string trouble_of(const live::LiveUpdater::State& state) {
    if (!state.put_off.empty()) return state.put_off;
    if (!state.accept.empty())
        return fmt::format("its new list was refused; `{}` takes it, once", state.accept);
    return state.last_error.empty() ? "its source does not answer" : state.last_error;
}

UniqueFd new_signal() {
    Result<UniqueFd> event = make_event();
    return event ? std::move(*event) : UniqueFd();
}

} // namespace

// One updater and its thread.
class LiveSets::Runner {
  public:
    using BrokeOff = std::function<void(const std::exception& error)>;
    Runner(std::string set, UniqueFd cancel, int troubles_changed, BrokeOff broke_off,
           std::function<void()> stepped)
        : set_(std::move(set)), cancel_(std::move(cancel)), troubles_changed_(troubles_changed),
          broke_off_(std::move(broke_off)), stepped_(std::move(stepped)) {}
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;
    ~Runner() {
        set_event(cancel_.get());
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable()) thread_.join();
    }

    [[nodiscard]] const std::string& set() const { return set_; }
    [[nodiscard]] int cancel() const { return cancel_.get(); }
    void keep(std::unique_ptr<live::LiveUpdater> updater) { updater_ = std::move(updater); }
    [[nodiscard]] live::LiveUpdater::State state() const { return updater_->state(); }
    [[nodiscard]] bool is_banned(const live::Prefix& single) const { return updater_->is_banned(single); }

    void run(watching::Statistics& statistics) {
        if (thread_.joinable()) return;
        try {
            thread_ = std::thread([this, &statistics] { work_until_it_breaks_off(statistics); });
        } catch (const std::exception& error) {
            broke_off_(error);
        }
    }
    void wake() {
        updater_->wake();
        step_soon();
    }
    void reconcile_soon() {
        updater_->reconcile_soon();
        step_soon();
    }
    void catch_up(std::uint32_t map_id) { updater_->catch_up(map_id); }
    // From any thread.
    void step_soon() {
        {
            const std::lock_guard lock(mutex_);
            woken_ = true;
        }
        changed_.notify_all();
    }

  private:
    // To read a whole list, and to build a filter of it, takes several times what is kept. What the allocator
    // keeps of that goes back to the machine.
    void give_back_memory(const live::LiveUpdater::State& state) {
        const std::uint64_t apart =
            std::max(state.timed_entries, given_back_at_) - std::min(state.timed_entries, given_back_at_);
        const bool settled = state.in_step && !state.settles;
        if (std::exchange(settled_, settled) == settled && apart <= given_back_at_ / 4) return;
        given_back_at_ = state.timed_entries;
        ::malloc_trim(0);
    }

    // What the updater was doing is left as after a kill, and a updater that is opened anew settles it.
    void work_until_it_breaks_off(watching::Statistics& statistics) {
        try {
            work(statistics);
        } catch (const std::exception& error) {
            broke_off_(error);
        }
    }
    void work(watching::Statistics& statistics) {
        std::unique_lock lock(mutex_);
        while (!over_) {
            woken_ = false;
            lock.unlock();
            const live::Time next = updater_->step();
            const live::LiveUpdater::State state = updater_->state();
            give_back_memory(state);
            statistics.note_live_entries(set_, state.entries);
            if (state.ranges) statistics.note_live_entries(live::range_set_name(set_), state.ranges);
            if (state.in_step && state.asked != asked_) { // its source has answered anew
                asked_ = state.asked;
                statistics.note_refresh(set_, {.result = SetOutcome::unchanged});
            }
            const bool troubled = is_in_trouble(state);
            if (std::exchange(troubled_, troubled) != troubled) set_event(troubles_changed_);
            stepped_();
            lock.lock();
            // Somebody may set the clock, so nothing is waited for longer than that.
            const auto left =
                std::clamp<std::chrono::milliseconds>(next - live::current_time(), {}, longest_wait);
            changed_.wait_for(lock, left, [this] { return woken_ || over_; });
        }
    }

    std::string set_;
    UniqueFd cancel_;
    int troubles_changed_;
    BrokeOff broke_off_;
    std::function<void()> stepped_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool woken_ = false;
    bool over_ = false;
    std::unique_ptr<live::LiveUpdater> updater_; // its threads call step_soon()
    bool troubled_ = false;
    bool settled_ = false;
    std::uint64_t given_back_at_ = 0; // timed entries
    live::Time asked_{};
    std::thread thread_;
};

LiveSets::LiveSets(control::Kernel& kernel, const StateDirectory& state, HostAddresses& host, Log& log,
                   watching::Statistics& statistics)
    : kernel_(kernel), state_(state), host_(host), log_(log), statistics_(statistics),
      troubles_changed_(new_signal()) {}

LiveSets::~LiveSets() {
    close();
}

void LiveSets::broke_off() {
    broken_off_ = true;
    set_event(troubles_changed_.get());
}

void LiveSets::open(const Configuration& configuration, const SandboxSettings& sandbox,
                    const control::Observer& observer) {
    try {
        close();
        take_over_renamed(configuration, state_, observer);
        open_all(configuration, sandbox);
    } catch (...) {
        broke_off();
        throw;
    }
}

void LiveSets::open_all(const Configuration& configuration, const SandboxSettings& sandbox) {
    std::vector<std::unique_ptr<Runner>> opened;
    const std::set<std::string> awaiting = sets_that_await_bans(configuration, state_);
    for (const SetConfiguration& set : configuration.sets) {
        if (!live::is_live(set)) continue;
        if (awaiting.contains(set.name)) {
            log_.error(
                fmt::format("set {}: cannot be followed: its bans are still under its former name", set.name),
                {{"SET", set.name}});
            broke_off();
            continue;
        }
        auto runner = std::make_unique<Runner>(
            set.name, new_signal(), troubles_changed_.get(),
            [this, name = set.name](const std::exception& error) {
                log_.error(fmt::format("set {}: following it broke off, and begins anew: {}", name,
                                       why_broken_off(error)),
                           {{"SET", name}});
                broke_off();
            },
            [this] {
                { const std::lock_guard lock(mutex_); } // whoever looks sees it, or waits already
                stepped_.notify_all();
            });
        live::LiveUpdaterSettings settings;
        settings.configuration = configuration;
        settings.set = set.name;
        settings.sandbox = sandbox;
        settings.sandbox.cancel = runner->cancel();
        settings.tell = [this](const live::LiveEvent& event) { tell(event); };
        settings.exclusive = &exclusive_;
        settings.step_soon = [mine = runner.get()] { mine->step_soon(); };
        auto updater = live::LiveUpdater::open(std::move(settings), kernel_, state_, host_);
        if (!updater) {
            log_.error(fmt::format("set {}: cannot be followed: {}", set.name, updater.error().message),
                       {{"SET", set.name}});
            if (may_pass(updater.error())) broke_off();
            continue;
        }
        runner->keep(std::move(*updater));
        opened.push_back(std::move(runner));
    }
    const std::lock_guard lock(mutex_);
    runners_ = std::move(opened);
}

void LiveSets::run() {
    const std::lock_guard lock(mutex_);
    for (const auto& runner : runners_) runner->run(statistics_);
}

void LiveSets::close() {
    std::vector<std::unique_ptr<Runner>> ending;
    {
        const std::lock_guard lock(mutex_);
        ending = std::exchange(runners_, {});
    }
    ending.clear(); // not under the lock: a updater may take its time
}

void LiveSets::wake(const std::set<std::string>& sets) {
    const std::lock_guard lock(mutex_);
    for (const auto& runner : runners_)
        if (sets.contains(runner->set()) || sets.contains(live::range_set_name(runner->set())))
            runner->wake();
}

LiveSets::Runner* LiveSets::find(const std::string& set) const {
    const auto found = std::ranges::find_if(runners_, [&](const auto& one) { return one->set() == set; });
    return found != runners_.end() ? found->get() : nullptr;
}

std::optional<live::LiveUpdater::State>
LiveSets::wait(const std::string& set, std::chrono::milliseconds patience,
               const std::function<bool(const live::LiveUpdater::State& state)>& has_come) {
    std::optional<live::LiveUpdater::State> found;
    std::unique_lock lock(mutex_);
    (void)stepped_.wait_for(lock, patience, [&] {
        const Runner* runner = find(set);
        found = runner != nullptr ? std::optional(runner->state()) : std::nullopt;
        return found && has_come(*found);
    });
    return found;
}

bool LiveSets::is_banned(const std::string& set, const live::Prefix& single) const {
    const std::lock_guard lock(mutex_);
    const Runner* runner = find(set);
    return runner != nullptr && runner->is_banned(single);
}

std::vector<live::LiveUpdater::OriginCount> LiveSets::decisions(const std::string& set) const {
    const std::lock_guard lock(mutex_);
    if (const Runner* runner = find(set)) return runner->state().origins;
    return {};
}

void LiveSets::reconcile_all() {
    const std::lock_guard lock(mutex_);
    for (const auto& runner : runners_) runner->reconcile_soon();
}

void LiveSets::catch_up(const std::string& set, std::uint32_t map_id) {
    const std::lock_guard lock(mutex_);
    if (Runner* runner = find(set)) runner->catch_up(map_id);
}

std::vector<std::string> LiveSets::troubles() const {
    std::vector<std::string> all;
    const std::lock_guard lock(mutex_);
    for (const auto& runner : runners_)
        if (const auto state = runner->state(); is_in_trouble(state))
            all.push_back(about_set(runner->set(), trouble_of(state)));
    return all;
}

void LiveSets::acknowledge() {
    clear_event(troubles_changed_.get());
}

bool LiveSets::can_wait(const Configuration& configuration) const {
    std::vector<std::string> sets;
    for (const SetConfiguration& set : configuration.sets) {
        if (!live::is_live(set) && !live::is_range_set(configuration, set.name)) continue;
        const std::optional<SetRecord> record = state_.read(set.name, [](const std::string&) {});
        if (!record || live::has_changed_since_image(state_, set.name, *record)) return false;
        sets.push_back(set.name);
    }
    return !sets.empty() && !live::come_to_running_table(kernel_, configuration, sets);
}

void LiveSets::tell(const live::LiveEvent& event) {
    LogFields fields{{"SET", event.set}};
    if (event.entries) fields.emplace_back("ENTRIES", fmt::format("{}", *event.entries));
    switch (event.what) {
    case live::LiveEvent::What::changed:
        statistics_.note_live_change(event.set, {.inserted = event.change.added,
                                                 .deleted = event.change.removed,
                                                 .took = event.change.taken,
                                                 .rebuild_due = event.change.rebuild_due.has_value()});
        if (event.change.added + event.change.removed > 0)
            log_.info(
                fmt::format("set {}: {} came and {} went in {:.1f} ms{}", event.set, event.change.added,
                            event.change.removed, static_cast<double>(event.change.taken.count()) / 1000,
                            event.entries ? fmt::format("; {} on the list",
                                                        counted(*event.entries, "entry is", "entries are"))
                                          : ""),
                fields);
        break;
    case live::LiveEvent::What::rebuilt:
        // A filter that is built anew says nothing of a source that fails.
        if (event.in_step) statistics_.note_refresh(event.set, {.result = SetOutcome::replaced});
        new_images_ = true;
        set_event(troubles_changed_.get());
        log_.notice(fmt::format("set {}: a new filter with {} is in force", event.set,
                                counted(event.entries.value_or(0), "entry", "entries")),
                    fields);
        break;
    case live::LiveEvent::What::of_new_sources: // the cycle
        new_images_ = true;
        set_event(troubles_changed_.get());
        break;
    case live::LiveEvent::What::failed: {
        const bool refused = event.guard.has_value();
        const std::string message = event.error ? event.error->message : std::string("failed");
        statistics_.note_refresh(event.set, {.result = refused ? SetOutcome::refused : SetOutcome::failed,
                                             .guard = event.guard,
                                             .message = message});
        const std::string list = counted(event.entries.value_or(0), "entry", "entries");
        const std::string stays =
            !event.entries ? "what is in force stays"
            : event.others_go_on
                ? fmt::format(
                      "a list with {} is in force: what its other sources say, with what this one said "
                      "before",
                      list)
                : fmt::format("the list with {} stays in force", list);
        log_.warning(
            fmt::format("{}{}; {}", about_set(event.set, message), refused ? " (refused)" : "", stays),
            fields);
        break;
    }
    case live::LiveEvent::What::put_off: {
        const std::string message = event.error ? event.error->message : std::string("put off");
        statistics_.note_refresh(event.set, {.result = SetOutcome::failed, .guard = {}, .message = message});
        log_.warning(about_set(event.set, message) + "; what is in force stays until then", fields);
        break;
    }
    case live::LiveEvent::What::remark:
        log_.info(about_set(event.set, event.text), fields);
        break;
    }
}

Configuration without_live_sets(const Configuration& configuration) {
    Configuration rest = configuration;
    std::erase_if(rest.sets, [&](const SetConfiguration& set) {
        return live::is_live(set) || live::is_range_set(configuration, set.name);
    });
    return rest;
}

} // namespace sieve::service
