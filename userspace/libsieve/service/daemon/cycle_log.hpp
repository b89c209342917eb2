// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What cycles did, in sentences: lines of the log for what is new, and one sentence on how things stand.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "libsieve/service/monitor/log.hpp"
#include "libsieve/service/reconcile/cycle.hpp"

namespace sieve::service {

class CycleLog {
  public:
    // When the sources of a set will be asked again; nothing: unknown.
    using NextOf = std::function<std::optional<std::chrono::milliseconds>(const std::string& set)>;

    CycleLog(Log& log, NextOf next_of) : log_(log), next_of_(std::move(next_of)) {}

    // Logs what the cycle changed, what failed, and what works again. What is as it was is not said again,
    // except for a set whose sources were asked and failed anew.
    void tell(const std::set<std::string>& asked, const CycleReport& report, std::chrono::milliseconds took);
    // Forgets what is not in the configuration any more.
    void follow(const Configuration& configuration);

    // For `systemctl status`: "2 sets in force on eth0; set bad: its list was refused". Of a set that is not
    // in force yet, why, and when its sources are asked again.
    [[nodiscard]] std::string standing() const;

  private:
    struct Set {
        SetOutcome outcome = SetOutcome::unchanged;
        std::string trouble{}; // of the last refresh; empty: none
        std::string accept{};  // SetReport::accept
        bool action_waits = false;
        std::uint64_t entries = 0;
    };
    struct Hook {
        std::string trouble{};             // empty: none
        std::vector<std::string> sets{};   // in force
        std::vector<WaitingSet> waiting{}; // not yet
        bool default_waits = false;
    };
    void tell_set(const SetReport& set, bool asked, std::chrono::milliseconds took);
    void tell_hook(const HookReport& hook);
    void tell_waiting(const std::string& name, const HookPlan& plan, const Hook& before,
                      const LogFields& fields);
    [[nodiscard]] std::string about_waiting(const WaitingSet& waiting) const;
    void tell_otherwise(const std::string& name, const HookPlan& plan, const LogFields& fields);
    void tell_gone(const CycleReport& report);
    void tell_missing(const CycleReport& report);
    void tell_away(const CycleReport& report);

    Log& log_;
    NextOf next_of_;
    std::map<std::string, Set> sets_;
    std::map<std::string, Hook> hooks_;            // by "eth0" or "eth0 ingress"
    std::map<std::string, std::string> otherwise_; // hooks that are attached otherwise than configured
    std::set<std::string> paused_;                 // hooks
    std::set<std::string> missing_;
    std::map<std::uint32_t, std::string> away_; // where programs were that are to be unloaded, by their ids
};

// "1.4 s", "35 min", "2 h": for people.
[[nodiscard]] std::string span_text(std::chrono::milliseconds span);

} // namespace sieve::service
