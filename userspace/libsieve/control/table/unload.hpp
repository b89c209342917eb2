// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Detaches our program from a hook. All of its sets go with it: nothing is pinned, so nothing is left.
#pragma once

#include <cstdint>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

struct Unloaded {
    kernel::HookPoint point = kernel::HookPoint::xdp; // where the program ran
    std::uint32_t program_id = 0;                     // the id that the program had
};

// Detaches our program, whatever its version. Error not_attached, even if somebody else's program runs there.
[[nodiscard]] Result<Unloaded> unload(Kernel& kernel, const HookName& hook, const Observer& observer);

} // namespace sieve::control
