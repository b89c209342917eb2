// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which sets are to be refreshed, and which cycle is to run, next, and when: triggers and timers to Refresh
// and CycleOptions. Pure arithmetic: the caller has the clock and the dice.
//
// A set is refreshed beside the cycles (refreshes.hpp), and then a cycle takes what has become of it.
//
// A trigger is held back for a moment, because changes come in bursts: an editor's save is several events,
// and a folder that is synchronised is hundreds. A trigger that comes while a cycle runs leads to another
// cycle, since take() removes only the triggers that were there when that cycle began.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/sources/backoff.hpp"

namespace sieve::service {

// A list of more entries takes so long to read and build that shorter ones must not wait for it.
inline constexpr std::uint64_t long_list = 100'000;

// Sets that are refreshed as one.
struct Refresh {
    std::set<std::string> sets{};
    bool far = false;        // a source is not on this machine
    bool failing = false;    // the last refresh failed, as those of servers that hang do
    bool is_long = false;    // a list is long, or not known yet
    bool files_only = false; // only files have changed, and servers and commands are asked at their time
};

// Which refreshes have room beside those that are at work.
struct RefreshRoom {
    bool far = false;
    bool failing = false; // and far
    bool near = false;
    bool near_long = false;
};

class Schedule {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Chance = std::function<double()>; // evenly in [0, 1)

    explicit Schedule(Chance chance, BackoffLimits backoff = {});

    // Goes by the sets of this configuration from now on. Sets that it had already keep their times.
    void follow(const Configuration& configuration, Time now);

    // At this time, if it is not due before: what runs is compared with what is wanted, without asking a
    // source.
    void compare(Time at);
    // At once: the sources of every set are asked. If a comparison is due too, it comes first.
    void ask_all(Time now);

    // Something has happened where the lists of these sets are.
    void lists_changed(const std::set<std::string>& sets, Time now);
    // An interface of the configuration came, went or was renamed.
    void interfaces_changed(Time now);

    // When take() has something; nothing if nothing is planned.
    [[nodiscard]] std::optional<Time> next() const;
    // The same of take_refresh().
    [[nodiscard]] std::optional<Time> next_refresh(RefreshRoom room) const;

    // The cycle that is due, if one is: a comparison, or for all sets that have been refreshed.
    [[nodiscard]] std::optional<CycleOptions> take(Time now);
    // The refresh that is due: of all sets on this machine that are due and have no long list, or of the set
    // that has been due for the longest time. It is at work until refreshed(), failed() or called_off().
    [[nodiscard]] std::optional<Refresh> take_refresh(Time now, RefreshRoom room);
    // These sets are refreshed as one with a set that was taken. False: one of them is at work already.
    [[nodiscard]] bool join(const std::set<std::string>& sets);
    // The next cycle is about these sets as well.
    void refreshed(const std::set<std::string>& sets);

    // What became of a cycle that was taken: it ran, it could not run, or it was called off and its sets are
    // due again. The same of a refresh, by a cycle of its sets.
    void done(const CycleOptions& cycle, const CycleReport& report, Time now);
    void failed(const CycleOptions& cycle, Time now);
    void called_off(const CycleOptions& cycle, Time now);

    // When the sources of the set are asked at the latest.
    [[nodiscard]] std::optional<Time> next_of(const std::string& set) const;
    // Whether the set's last refresh failed.
    [[nodiscard]] bool fails(const std::string& set) const;
    // Failures in a row of comparing.
    [[nodiscard]] unsigned failures() const { return failures_; }

  private:
    // Holds triggers back until they have settled.
    class Settling {
      public:
        void trigger(Time now);
        [[nodiscard]] std::optional<Time> due() const { return due_; }
        void clear() { *this = {}; }

      private:
        std::optional<Time> first_;
        std::optional<Time> due_;
    };
    enum class Phase : std::uint8_t {
        waits,     // for its time
        at_work,   // it is refreshed
        refreshed, // a cycle is to follow
        in_cycle,  // that cycle is at work
    };
    struct Entry {
        std::chrono::milliseconds interval{0};
        bool far = false;     // a source is not on this machine
        bool is_long = false; // its last good list is
        Phase phase = Phase::waits;
        bool bare = true; // it has no last good image, as far as is known
        Time timer{};     // when to ask without any trigger
        Settling changed;
        unsigned failures = 0;
        bool refused = false; // the last list was, and what servers said for it is kept nowhere
        bool asks = true;     // the refresh at work asks servers and commands, too

        [[nodiscard]] Time due() const;
        [[nodiscard]] bool has_room(RefreshRoom room) const;
    };

    void schedule(Entry& entry, Time now);
    void back_off(Entry& entry, Time now, std::optional<std::chrono::seconds> retry_after = {});
    void back_off_comparing(unsigned& failures, Time now);

    Chance chance_;
    BackoffLimits backoff_;
    std::map<std::string, Entry> sets_;
    std::optional<Time> compare_; // at once, or after a failure
    Settling interfaces_;
    unsigned failures_ = 0; // of comparing, in a row
    unsigned looks_ = 0;    // in a row, that found a program away which is to be unloaded
};

} // namespace sieve::service
