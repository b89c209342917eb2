// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Starts the counters of a hook at zero, while packets go on being counted.
#pragma once

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/query/sample.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// Starts all counters of the one hook that the name covers at zero, those of the sets and those of the table.
// The result is what they had counted: each packet is either in it or counted from now on. The program's
// counters themselves only grow, so other readers, such as the service, miss nothing. Errors: not_attached,
// several_hooks, other_version.
[[nodiscard]] Result<Sample> reset_counters(Kernel& kernel, const HookName& hook, const Observer& observer);

} // namespace sieve::control
