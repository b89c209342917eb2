// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Takes our program off a hook, and with it all of its sets: nothing is pinned, so nothing is left.
#pragma once

#include <cstdint>

#include "libsieve/control/in_force.hpp"
#include "libsieve/control/observer.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::control {

struct Unloaded {
    kernel::HookPoint point = kernel::HookPoint::xdp; // where the program ran
    std::uint32_t program_id = 0;                     // that it had
};

// Takes away a program of ours of any version. Error not_attached, also where somebody else's program runs.
[[nodiscard]] Result<Unloaded> unload(Kernel& kernel, const HookName& hook, const Observer& observer);

} // namespace sieve::control
