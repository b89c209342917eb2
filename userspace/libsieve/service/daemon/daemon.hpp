// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The daemon: runs a cycle on every trigger, one at a time, until it is told to stop.
//
//     files, timers, interfaces, signals --> Schedule --> a cycle on a worker thread --> log, status, metrics
//                                              | ^
//                                              v | what is ready
//                                          Refreshes: sources are asked and images built, side by side
//
// The loop's thread only waits and decides. A cycle that only compares runs at normal priority, every other
// one at low priority. A reload or a stop calls off what is at work.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/contact/manager.hpp"
#include "libsieve/service/daemon/ban_server.hpp"
#include "libsieve/service/daemon/bounded_host_addresses.hpp"
#include "libsieve/service/daemon/cycle_log.hpp"
#include "libsieve/service/daemon/event_loop.hpp"
#include "libsieve/service/daemon/interface_watch.hpp"
#include "libsieve/service/daemon/list_watch.hpp"
#include "libsieve/service/daemon/live_sets.hpp"
#include "libsieve/service/daemon/notifier.hpp"
#include "libsieve/service/daemon/refreshes.hpp"
#include "libsieve/service/daemon/schedule.hpp"
#include "libsieve/service/daemon/state_watch.hpp"
#include "libsieve/service/daemon/usage_reports.hpp"
#include "libsieve/service/daemon/worker.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/service/monitor/statistics.hpp"
#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// What the daemon works with: the host's own, or a test's. All outlive the daemon.
struct DaemonParts {
    EventLoop& loop;
    control::Kernel& kernel;
    HostAddresses& host;
    Log& log;
    Notifier& notifier;
    watching::Statistics& statistics;
    // Called with the configuration at the start, and with each one that is taken later.
    std::function<void(const Configuration& configuration)> adopted{};
    // Called when a person has accepted a list that a guard had refused.
    std::function<void()> accepted{};
    // Called with what is in force and what is wrong, whenever that may have changed.
    std::function<void(const std::string& standing)> told{};
    // What is wrong beside the cycles, for `systemctl status`; empty: nothing.
    std::function<std::string()> trouble_beside{};
};

struct DaemonSettings {
    std::string configuration = standard_configuration; // its path
    // How long another holder of the state directory is waited for.
    std::chrono::milliseconds patience = watching::patience_with_children;
    std::string ban_socket{};                 // its path; empty: nobody can ask about bans
    double pace = 1;                          // how many times faster than time the timers run: for tests
    BackoffLimits backoff{};                  // of what failed
    std::optional<std::string> spare{};       // of the state directory; nothing: standard_spare()
    std::optional<SandboxSettings> sandbox{}; // nothing: standard_sandbox(); `cancel` is the daemon's
};

class Daemon {
  public:
    // Reads the configuration, takes the state directory, and listens; the first cycle begins with the loop.
    // Signals: SIGHUP, SIGTERM and SIGINT must be blocked in every thread. Errors: those of the configuration
    // and of the state directory; nothing was changed.
    [[nodiscard]] static Result<std::unique_ptr<Daemon>> start(const DaemonParts& parts,
                                                               const DaemonSettings& settings);
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;
    ~Daemon();

    // Until a signal, or stop(), ends it. The error is that of the loop, or of unloading (unfinished).
    [[nodiscard]] Status run();

    // What signals and watches call; a test may, too.
    void reload();
    void stop();
    void interfaces_changed(const InterfaceChange& change);
    void lists_changed(const std::set<std::string>& sets);

    [[nodiscard]] bool is_idle() const { return !running_; } // no cycle is at work
    [[nodiscard]] std::size_t refreshes() const { return refreshes_.at_work(); }
    [[nodiscard]] const Configuration& configuration() const { return *configuration_; }
    [[nodiscard]] std::uint64_t cycles() const { return cycles_; } // that have ended

  private:
    using Time = Schedule::Time;
    struct RunningCycle; // the cycle that is at work

    Daemon(const DaemonParts& parts, const DaemonSettings& settings, Configuration configuration,
           StateDirectory state);
    [[nodiscard]] Status listen();
    [[nodiscard]] Time now() const;
    void arm();
    void look_at_schedule();
    void begin(CycleOptions options);
    [[nodiscard]] RefreshRoom room() const;
    void refresh();
    void refreshed(Refreshes::Done done);
    void take_out_ended();
    void end();
    void tell(const RunningCycle& ended);
    void note(const RunningCycle& ended);
    void tell_state();
    void watch_state();
    void ask_accepted();
    void announce();
    [[nodiscard]] std::string standing() const;
    void call_off();
    void adopt();
    void follow_lists();
    void finish_stopping();
    void notify_status(const std::string& first_line);
    [[nodiscard]] bool concerns(const std::string& interface) const;
    [[nodiscard]] control::Observer observer() const;

    DaemonParts parts_;
    DaemonSettings settings_;
    std::shared_ptr<const Configuration> configuration_;
    std::shared_ptr<const Configuration> next_; // of a reload, until the cycle at work has ended
    StateDirectory state_;
    std::unique_ptr<BoundedHostAddresses> bounded_host_addresses_; // of the first cycle
    Time started_ = std::chrono::steady_clock::now();
    Schedule schedule_;
    CycleLog cycle_log_;
    LiveSets live_;
    BanServer bans_;
    UsageReports usage_reports_;
    bool live_sets_wait_ = true; // for being opened, before the next cycle
    EventSource live_troubles_;
    ListWatch lists_;
    std::unique_ptr<InterfaceWatch> interfaces_;
    std::unique_ptr<StateWatch> watch_;           // null: the state directory cannot be watched
    unsigned watched_state_ = 0;                  // of StateDirectory::taken()
    std::vector<ManagedHook> in_force_;           // after the last cycle, where it did not fail
    bool some_are_away_ = false;                  // of the programs that it noted (AwayProgram)
    std::map<std::string, std::string> accepted_; // lists that people accepted, whose sets are asked
    UniqueFd cancel_;                             // readable: the cycle at work is called off
    EventSource timer_;
    EventSource ends_timer_; // looks for keys whose time is over
    EventSource urgent_ended_;
    EventSource patient_ended_;
    std::vector<EventSource> signals_;
    bool ready_ = false;
    bool reloading_ = false;
    bool stopping_ = false;
    bool state_in_memory_ = false; // some of it; as it was told
    std::uint64_t cycles_ = 0;
    Status result_{};
    std::shared_ptr<RunningCycle> running_;
    std::map<std::string, std::shared_ptr<SetSurvey>> surveyed_; // for the next cycle
    // Of sets, why a server or a command was behind when it was last asked.
    std::map<std::string, std::optional<Error>> behind_;
    std::set<std::string> held_back_; // sets that change together with one that is at work
    // These end first: what they work with is above.
    Refreshes refreshes_;
    std::unique_ptr<Worker> urgent_;
    std::unique_ptr<Worker> patient_;
};

} // namespace sieve::service
