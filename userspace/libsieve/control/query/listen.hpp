// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Listening to matches as they happen: switches sampling on, hands over the events, switches sampling off.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// A sampled packet. A set that left before the event arrived here has no name any more.
struct Event {
    std::uint64_t time = 0;                  // nanoseconds since 1970
    std::uint32_t verdict = 0;               // enum sieve_verdict
    std::optional<std::string> decided_by{}; // the deciding set; nothing if the default decided
    bool by_default = false;                 // no set decided
    bool reply = false;                      // it would have been dropped, but answers a flow of this host
    std::vector<std::string> sets{};         // the sets that matched, in their order
    std::vector<std::string> rejected{};     // the sets whose filter matched, and verification rejected it
    std::uint32_t length = 0;                // of the packet
    sieve_key key{};
    std::uint32_t have = 0;               // the fields that the packet has
    std::span<const std::uint8_t> head{}; // the packet's first bytes; valid only during the call
};

struct ListenOptions {
    kernel::Sampling sampling{};
    std::uint64_t most = 0; // ends listening after that many events; 0: the listener decides
};

// The callbacks of a listener.
struct Listener {
    std::function<void(const Event& event)> event;
    // Called before each wait, at least ten times a second. Listening ends if it returns false or an error.
    // listen() returns that error.
    std::function<Result<bool>()> go_on;
};

struct Heard {
    kernel::HookPoint point = kernel::HookPoint::xdp; // the hook where it listened
    std::uint64_t events = 0;
    std::uint64_t lost = 0;  // samples for which the ring had no room
    bool taken_over = false; // another listener has replaced this one
    bool gone = false;       // the hook no longer runs the program that was listened to
};

// Listens at the one hook that the name covers. Takes the lock twice: to switch sampling on, and to switch it
// off. Sampling is off when this returns, unless another listener has taken over or the lock was not to be
// had. Listening ends soon after the program has left the hook.
[[nodiscard]] Result<Heard> listen(Kernel& kernel, const HookName& name, const ListenOptions& options,
                                   const Listener& listener, const Observer& observer);

} // namespace sieve::control
