// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Listening to matches as they happen: sampling is switched on, events are handed over, sampling is switched
// off.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/control/in_force.hpp"
#include "libsieve/control/kernel.hpp"
#include "libsieve/control/observer.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

// A sampled match. A set that left between the match and its arrival here has no name any more.
struct Event {
    std::uint64_t time = 0;                  // nanoseconds since 1970
    std::uint32_t verdict = 0;               // enum sieve_verdict
    std::optional<std::string> decided_by{}; // the deciding set; nothing if the default decided
    std::vector<std::string> sets{};         // that matched, in their order
    std::uint32_t length = 0;                // of the packet
    sieve_key key{};
    std::uint32_t have = 0;               // the fields that the packet has
    std::span<const std::uint8_t> head{}; // the packet's first bytes; valid during the call
};

struct ListenOptions {
    std::uint32_t sample = 1; // one match in so many, at random
    std::uint64_t most = 0;   // events, then listening ends; 0: it ends as the listener says
};

// Who listens.
struct Listener {
    std::function<void(const Event& event)> event;
    // Called before each wait, at least ten times a second. False ends the listening, and so does an error,
    // which listen() returns.
    std::function<Result<bool>()> go_on;
};

struct Heard {
    kernel::HookPoint point = kernel::HookPoint::xdp; // the hook that was found
    std::uint64_t events = 0;
    std::uint64_t lost = 0;  // samples that found no room
    bool taken_over = false; // another listener has replaced this one
};

// Listens at the one hook that the name covers. Takes the lock twice: to switch sampling on and off. Sampling
// is off when this returns, unless another listener has taken over or the lock could not be had.
[[nodiscard]] Result<Heard> listen(Kernel& kernel, const HookName& name, const ListenOptions& options,
                                   const Listener& listener, const Observer& observer);

} // namespace sieve::control
