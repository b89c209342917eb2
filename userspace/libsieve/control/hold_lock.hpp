// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One controller at a time. Every change takes the lock before it reads what it will change.
#pragma once

#include <chrono>

#include "libsieve/control/kernel.hpp"
#include "libsieve/control/observer.hpp"

namespace sieve::control {

// Longer than any change takes, short enough for a person and for a timer's next run.
inline constexpr std::chrono::seconds lock_patience{10};

// Tells the observer which process holds the lock. Error busy, naming that process, if the wait is too long.
[[nodiscard]] inline Result<Held> hold_lock(Kernel& kernel, const Observer& observer) {
    return kernel.hold_lock(lock_patience, observer.waiting);
}

} // namespace sieve::control
