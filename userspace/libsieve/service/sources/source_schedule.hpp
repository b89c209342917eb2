// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// When a source of a live set is asked (CrowdSec's local API, the ledger of bans, the lists beside them), for
// what, and what an answer or a failure leads to. Pure logic: the caller has the clock and does the asking. A
// source that can only say its whole list says that each time.
//
//     whole list   at the start, after a failure, after an answer that was not taken, after restart(); every
//                  hour
//     difference   otherwise, every poll interval
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/service/sources/backoff.hpp"

namespace sieve::service::live {

class SourceSchedule {
  public:
    enum class Fetch : std::uint8_t {
        whole_list, // startup=true
        difference,
    };

    // A neighbour, whose first failures are short ones, such as a restart.
    explicit SourceSchedule(std::chrono::milliseconds poll);
    // As of any other set: so that many hosts do not ask at once, up to a tenth of `refresh` is added or
    // taken away, and a failure is followed by another question within it and within an hour.
    [[nodiscard]] static SourceSchedule of_lists(std::chrono::milliseconds refresh);

    // What to ask for when next_poll() has come.
    [[nodiscard]] Fetch next_fetch(Time now) const;
    [[nodiscard]] Time next_poll() const { return next_; }

    // The answer was taken: what it says is on the list. `chance` in [0, 1) spreads the questions of many
    // hosts.
    void taken(Fetch fetch, Time now, double chance = 0.5);
    // The source could not be asked, its answer was none, or it was refused. `chance` spreads the retries.
    void failed(Time now, double chance, std::optional<std::chrono::seconds> retry_after = {});

    // What is known may be out of step: the whole list is asked for, at once.
    void restart(Time now);

    [[nodiscard]] unsigned failures() const { return failures_; } // in a row
    // The list is that of the source, as of the last poll.
    [[nodiscard]] bool in_step() const { return in_step_; }

  private:
    std::chrono::milliseconds poll_;
    BackoffLimits limits_;
    double spread_ = 0; // share of the interval that chance adds or takes away
    Time next_{};       // at once
    Time whole_list_due_{};
    bool in_step_ = false;
    unsigned failures_ = 0;
};

} // namespace sieve::service::live
