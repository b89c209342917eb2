// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What happened in this service since it started, and what its hooks counted over the last hour. The daemon
// tells the statistics; metrics and status page are made from it. Every function may be called from any
// thread, none blocks for long, and none throws.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/query/sample.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/monitor/fleet_standing.hpp"
#include "libsieve/service/monitor/totals.hpp"
#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/safety/guards.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::watching {

using Clock = std::chrono::system_clock;
using Seconds = std::chrono::duration<double>;

// What the daemon is doing.
enum class DaemonState : std::uint8_t {
    starting,  // last good images are being put in force
    ready,     // waiting for the next trigger
    working,   // a cycle runs
    reloading, // a new configuration is being read
    stopping,
};
inline constexpr DaemonState all_daemon_states[] = {DaemonState::starting, DaemonState::ready,
                                                    DaemonState::working, DaemonState::reloading,
                                                    DaemonState::stopping};

// The word for it, such as "ready".
[[nodiscard]] const char* daemon_state_name(DaemonState state);
// "unchanged", "replaced", "failed" or "refused".
[[nodiscard]] const char* outcome_name(SetOutcome outcome);

inline constexpr SetOutcome all_outcomes[] = {SetOutcome::unchanged, SetOutcome::replaced, SetOutcome::failed,
                                              SetOutcome::refused};
inline constexpr Guard all_guards[] = {Guard::empty,    Guard::shrink,     Guard::growth,
                                       Guard::coverage, Guard::protection, Guard::lockout};

// How long the parts of a refresh took; nothing for a part that did not happen or was not measured.
struct RefreshTimes {
    std::optional<Seconds> fetching{}; // asking the sources
    std::optional<Seconds> building{}; // reading the list and building the filter
};

// When a cycle ran, and about which sets it asked.
struct CycleTimes {
    Clock::time_point at = Clock::now(); // its end
    Seconds took{0};
    std::set<std::string> asked{}; // the sets whose sources were asked; only these count as refreshed
};

// One refresh of one set.
struct RefreshNote {
    SetOutcome result = SetOutcome::unchanged;
    Clock::time_point at = Clock::now();
    RefreshTimes times{};
    std::optional<Guard> guard{};         // that refused the list
    std::string message{};                // of the error or the refusal
    std::optional<SetRecord> last_good{}; // after the refresh
};

// A change in place of a set in force.
struct LiveChangeNote {
    std::uint64_t inserted = 0; // keys
    std::uint64_t deleted = 0;
    Seconds took{0};
    bool rebuild_due = false; // it could not be made in place
    Clock::time_point at = Clock::now();
};

// A sum of durations.
struct TimeSum {
    std::uint64_t count = 0;
    Seconds sum{0};
    Seconds last{0};

    void add(Seconds duration);
};

// What the statistics knows of a set.
struct SetHistory {
    std::array<std::uint64_t, std::size(all_outcomes)> refreshes{}; // by SetOutcome
    std::array<std::uint64_t, std::size(all_guards)> refusals{};    // by Guard
    std::optional<RefreshNote> last{};                              // the last refresh
    std::optional<Clock::time_point> confirmed{}; // the last time the sources agreed with what is in force
    // Visits to its sources are numbered: the last one that began, and the last one that ended with `last`.
    // What the sources held when visit N began is known once `ended` is N.
    std::uint64_t begun = 0, ended = 0;
    std::optional<SetRecord> last_good{};
    bool action_waits = false; // for the list of the set's new sources
    TimeSum fetching{}, building{}, testing{};
    std::uint64_t live_changes = 0;
    std::uint64_t live_inserted = 0, live_deleted = 0; // keys
    std::uint64_t rebuilds_due = 0;
    TimeSum changing{};
    std::optional<LiveChangeNote> last_change{};
    std::optional<std::uint64_t> live_entries{}; // on the list, which changed since its image was built
};

// What the hooks counted at one moment.
struct Moment {
    Clock::time_point at{};
    std::map<HookId, HookTotals> hooks{};
    std::map<HookId, std::map<std::string, SetTotals>> sets{};
};

// Everything that the statistics knows, copied at one moment.
struct StatisticsCopy {
    std::string version{};
    Clock::time_point started{};
    DaemonState state = DaemonState::starting;
    Configuration configuration{};
    std::map<std::string, SetHistory> sets{}; // the sets of the configuration
    std::uint64_t cycles = 0, cycles_failed = 0, cycles_changed = 0;
    TimeSum cycle_time{};
    std::optional<Clock::time_point> last_cycle{};
    std::optional<std::string> cycle_error{};            // of the last cycle
    std::map<HookId, std::string> hook_errors{};         // of the last cycle
    std::set<HookId> paused{};                           // in the last cycle
    std::map<HookId, std::string> otherwise{};           // hooks that are attached otherwise than configured
    std::map<HookId, std::vector<WaitingSet>> waiting{}; // sets that are not in force yet
    std::set<HookId> default_waits{};                    // whose default stays pass meanwhile
    std::vector<std::string> missing{};                  // interfaces, in the last cycle
    std::uint64_t reloads = 0, reloads_failed = 0;
    std::optional<Clock::time_point> last_reload{};
    std::optional<std::string> reload_error{}; // of the last one
    std::map<HookId, TimeSum> swapping{};
    std::optional<FleetStanding> fleet{}; // nothing: this host follows none
    std::uint64_t observations_failed = 0;
    std::optional<std::string> observation_error{}; // of the last one
    std::optional<std::string> state_trouble{};     // why state is kept in memory only
    std::optional<std::string> keeping_error{};     // why the counters could not be written the last time
};

class Statistics {
  public:
    struct Settings {
        std::string version{};
        // Where the counters are kept over restarts (totals.hpp), such as STATE_DIRECTORY/counters.json;
        // empty: nowhere.
        std::string counters_file{};
        std::chrono::seconds between{10}; // two moments of the history
        std::chrono::seconds kept{3600};  // how long a moment is kept
    };

    explicit Statistics(Settings settings);
    Statistics(const Statistics&) = delete;
    Statistics& operator=(const Statistics&) = delete;
    ~Statistics();

    // The configuration that is in force from now on. What is known of sets that it lacks is forgotten.
    void set_configuration(const Configuration& configuration);
    void set_state(DaemonState state);

    // A cycle begins that asks the sources of these sets.
    void note_cycle_begun(const std::set<std::string>& asked);
    // A cycle ended. Counts a refresh for each set of times.asked, so a caller that notes those refreshes
    // itself leaves `asked` empty.
    void note_cycle(const CycleReport& report, const CycleTimes& times);
    // A cycle ended with an error and changed nothing.
    void note_cycle_failed(const Error& error, const CycleTimes& times);
    void note_refresh(const std::string& set, RefreshNote note);
    void note_live_change(const std::string& set, const LiveChangeNote& change);
    // How many entries the list of a set that changes in place has; nothing: nobody knows.
    void note_live_entries(const std::string& set, std::optional<std::uint64_t> entries);
    // The configuration was read again; `error` if it is not valid and the old one stays.
    void note_reload(const std::optional<Error>& error, Clock::time_point at = Clock::now());
    // Why state is kept in memory only; nothing: all of it is kept in the state directory.
    void note_state_trouble(std::optional<std::string> why);
    // How this host stands in its fleet; nothing: it follows none any more.
    void note_fleet(std::optional<FleetStanding> standing);
    // A filter was asked in the kernel before it went live, and a table was put in force. See TimedKernel.
    void note_test(const std::string& set, Seconds took);
    void note_swap(const HookId& hook, Seconds took);

    // Reads the counters of all hooks and adds them up. The exposer calls it for each scrape and every
    // `between`; the daemon calls it before a cycle that may take a program away. Returns what was read.
    Result<std::vector<control::Sample>> observe(control::Kernel& kernel,
                                                 Clock::time_point at = Clock::now());
    // The same for samples that were taken already.
    void observe(const std::vector<control::Sample>& samples, Clock::time_point at = Clock::now());

    [[nodiscard]] StatisticsCopy record() const;
    [[nodiscard]] Totals totals() const; // of everything at one moment
    [[nodiscard]] HookTotals totals(const HookId& hook) const;
    [[nodiscard]] SetTotals totals(const HookId& hook, const std::string& set) const;
    // The moments of the last hour, oldest first.
    [[nodiscard]] std::vector<Moment> history() const;
    [[nodiscard]] std::chrono::seconds between() const { return settings_.between; }

    // Writes the counters file. The destructor does it too.
    Status keep();

  private:
    void add_samples(const std::vector<control::Sample>& samples, Clock::time_point at);
    // The caller holds mutex_.
    void remember_moment(const std::vector<control::Sample>& samples, Clock::time_point at);
    void refresh_noted(const std::string& set, RefreshNote note);

    const Settings settings_;
    const std::string boot_;
    mutable std::mutex mutex_;
    // Samples are taken and added up one after the other: an older one must not follow a newer one.
    std::mutex observing_;
    StatisticsCopy record_;
    Totals totals_;
    std::deque<Moment> history_;
    std::mutex writing_; // the counters file
};

} // namespace sieve::service::watching
