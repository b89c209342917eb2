// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What programs report about packets: counters, heavy keys, sampled matches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <sieve/event.h>

#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/maps/sampling.hpp"
#include "libsieve/kernel/maps/sketch.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// What the program reports about packets, besides counting them.
struct Watching {
    std::uint32_t sample = 0; // one packet in `sample` is sampled for a listener; 0: none
    bool counts_keys = false; // matches are counted by key
};

// The path of sampled matches from the program to this listener. The hook that it was started at must outlive
// the stream.
class EventStream {
  public:
    virtual ~EventStream() = default;
    // Hands over the events that are there, or waits up to `milliseconds` for some. See kernel::EventRing.
    [[nodiscard]] virtual Status poll(int milliseconds) = 0;
    [[nodiscard]] virtual bool in_place() const = 0; // false once another listener has taken over
    [[nodiscard]] virtual Status stop() = 0;         // the caller holds the lock
    [[nodiscard]] virtual Result<std::uint64_t> lost() const = 0;
};

class Observation {
  public:
    virtual ~Observation() = default;

    [[nodiscard]] virtual Result<kernel::Stats> read_stats(const kernel::Hook& hook) = 0;
    [[nodiscard]] virtual Watching watching(const kernel::Hook& hook) = 0;
    [[nodiscard]] virtual Result<kernel::Tally> read_tally(const kernel::Hook& hook, std::size_t most) = 0;

    // The caller holds the lock. See kernel/maps/sketch.hpp and kernel/maps/event_ring.hpp.
    [[nodiscard]] virtual Status start_tally(const kernel::Hook& hook) = 0;
    [[nodiscard]] virtual Status stop_tally(const kernel::Hook& hook) = 0;
    using VisitEvent = std::function<bool(const sieve_event& event)>; // false ends the poll
    [[nodiscard]] virtual Result<std::unique_ptr<EventStream>>
    start_events(const kernel::Hook& hook, const kernel::Sampling& sampling, VisitEvent visit) = 0;
};

} // namespace sieve::control
