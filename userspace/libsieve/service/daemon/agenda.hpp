// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which cycle is to run next, and when: triggers and timers to CycleOptions. Pure arithmetic: the caller has
// the clock and the dice.
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

#include "libsieve/service/config/configuration.hpp"
#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/sources/backoff.hpp"

namespace sieve::service {

struct AgendaLimits {
    std::chrono::milliseconds quiet{10};    // without a further trigger, before a trigger counts
    std::chrono::milliseconds longest{250}; // that a trigger is held back, however many follow it
    BackoffLimits backoff{};
};

// Whether one more set can be asked whose source is far away.
struct FarRoom {
    bool any = false;
    bool failing = false; // one that failed last time, as servers that hang do
};

class Agenda {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Chance = std::function<double()>; // evenly in [0, 1)

    explicit Agenda(Chance chance, AgendaLimits limits = {});

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
    // The same of take_far().
    [[nodiscard]] std::optional<Time> next_far(FarRoom room) const;

    // The cycle that is due, if one is: for all sets whose sources are near and due, and those far away whose
    // sources have been asked.
    [[nodiscard]] std::optional<CycleOptions> take(Time now);
    // The set with a source far away that has been due for the longest time. Its sources are then asked
    // beside the cycles, until answered() or called_off().
    [[nodiscard]] std::optional<std::string> take_far(Time now, FarRoom room);
    // The sources of a set have been asked: the next cycle is about it as well.
    void answered(const std::string& set);

    // What became of a cycle that was taken: it ran, it could not run, or it was called off and is due again.
    // The same of sets whose sources were asked beside the cycles, by a cycle of these sets.
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
        void trigger(Time now, const AgendaLimits& limits);
        [[nodiscard]] std::optional<Time> due() const { return due_; }
        void clear() { *this = {}; }

      private:
        std::optional<Time> first_;
        std::optional<Time> due_;
    };
    enum class Turn : std::uint8_t {
        waits,    // for its time
        asked,    // its sources are asked, beside the cycles
        answered, // they have been, and a cycle is to follow
    };
    struct Entry {
        std::chrono::milliseconds interval{0};
        bool far = false; // a source is not on this machine
        Turn turn = Turn::waits;
        bool bare = true; // it has no last good image, as far as is known
        Time timer{};     // when to ask without any trigger
        Settling changed;
        unsigned failures = 0;

        [[nodiscard]] Time due() const;
        [[nodiscard]] bool has_room(FarRoom room) const { return failures == 0 ? room.any : room.failing; }
    };

    void schedule(Entry& entry, Time now);
    void back_off(Entry& entry, Time now);
    void back_off_comparing(Time now);

    Chance chance_;
    AgendaLimits limits_;
    std::map<std::string, Entry> sets_;
    std::optional<Time> compare_; // at once, or after a failure
    Settling interfaces_;
    unsigned failures_ = 0; // of comparing, in a row
};

} // namespace sieve::service
