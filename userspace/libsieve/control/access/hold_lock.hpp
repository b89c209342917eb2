// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One controller at a time. Every change takes the lock before it reads what it will change.
#pragma once

#include <chrono>

#include "libsieve/control/access/hooks.hpp"
#include "libsieve/control/spec/observer.hpp"

namespace sieve::control {

// Longer than any change takes, and short enough for a person or a timer that waits.
inline constexpr std::chrono::seconds lock_patience{10};

// Takes the lock. While it waits, the observer is told which process holds the lock. If the wait is too long,
// the error is busy and names that process.
[[nodiscard]] inline Result<Held> hold_lock(Hooks& kernel, const Observer& observer) {
    return kernel.hold_lock(lock_patience, observer.waiting);
}

} // namespace sieve::control
