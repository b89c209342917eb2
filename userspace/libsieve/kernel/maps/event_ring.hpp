// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Listening to sampled matches (sieve/event.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <sieve/event.h>

#include "libsieve/kernel/maps/instance.hpp"
#include "libsieve/kernel/maps/sampling.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

struct ring_buffer;

namespace sieve::kernel {

// The listener supplies the ring buffer and switches sampling on and off. Without a listener sampling takes
// no memory and no time. There is one listener at a time: a new one replaces the old one. The caller of
// start() and stop() holds the Lock.
class EventRing {
  public:
    // Called with each event; false ends the poll.
    using Visit = std::function<bool(const sieve_event& event)>;

    // From now on, these packets are kept until they are polled. `bytes` is a power of two and whole pages.
    static Result<EventRing> start(const Instance& instance, const Sampling& sampling, Visit visit,
                                   std::uint32_t bytes = 1U << 20);

    // Visits the waiting events. If there are none, waits up to `milliseconds` for some. An interrupt or the
    // visitor may end the call early.
    [[nodiscard]] Status poll(int milliseconds);

    // False once another listener has taken over.
    [[nodiscard]] bool in_place() const;

    // Switches sampling off and removes the ring, unless another listener has taken over.
    [[nodiscard]] Status stop();

    // Samples that found no room since the start.
    [[nodiscard]] Result<std::uint64_t> lost() const;

  private:
    struct Free {
        void operator()(ring_buffer* ring) const;
    };
    EventRing(const Instance& instance, UniqueFd fd, std::uint32_t id, std::unique_ptr<Visit> visit)
        : instance_(&instance), fd_(std::move(fd)), id_(id), visit_(std::move(visit)) {}

    const Instance* instance_;
    UniqueFd fd_;
    std::uint32_t id_;
    std::unique_ptr<Visit> visit_; // on the heap: libbpf keeps its address
    std::unique_ptr<ring_buffer, Free> ring_;
    std::uint64_t lost_before_ = 0;
};

// Converts an event's time to nanoseconds since 1970.
[[nodiscard]] std::uint64_t wall_clock(std::uint64_t monotonic);

} // namespace sieve::kernel
