// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// When CrowdSec's local API is asked, for what, and what an answer or a failure leads to. Pure logic: the
// caller has the clock and does the asking (fetch_decisions.hpp).
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

class CrowdsecStream {
  public:
    enum class Fetch : std::uint8_t {
        whole_list, // startup=true
        difference,
    };

    explicit CrowdsecStream(std::chrono::milliseconds poll) : poll_(poll) {}

    // What to ask for when next_poll() has come.
    [[nodiscard]] Fetch next_fetch(Time now) const;
    [[nodiscard]] Time next_poll() const { return next_; }

    // The answer was taken: what it says is on the list.
    void taken(Fetch fetch, Time now);
    // The API could not be asked, its answer was none, or it was refused. `chance` in [0, 1) spreads the
    // retries of many hosts.
    void failed(Time now, double chance, std::optional<std::chrono::seconds> retry_after = {});

    // What is known may be out of step: the whole list is asked for, at once.
    void restart(Time now);

    [[nodiscard]] unsigned failures() const { return failures_; } // in a row
    // The list is that of the API, as of the last poll.
    [[nodiscard]] bool in_step() const { return in_step_; }

  private:
    std::chrono::milliseconds poll_;
    Time next_{}; // at once
    Time whole_list_due_{};
    bool in_step_ = false;
    unsigned failures_ = 0;
};

} // namespace sieve::service::live
