// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Takes one set out of force; the others stay as they are.
#pragma once

#include <cstddef>
#include <string>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

struct Removed {
    kernel::HookPoint point = kernel::HookPoint::xdp; // the hook that had the set
    std::size_t left = 0;                             // sets
};

// Errors: not_attached, no_such_set, unconfirmed, lockout; wants_force, unless `force` is set, for the last
// set that lets packets in under a default of drop.
[[nodiscard]] Result<Removed> remove(Kernel& kernel, const HookName& hook, const std::string& set,
                                     const Observer& observer, const Safety& safety = {}, bool force = false);

} // namespace sieve::control
