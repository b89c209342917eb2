// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Replaces the filter of one set in force; its name, action, place in the order and counters stay.
#pragma once

#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/control/spec/warning.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

struct Swapped {
    kernel::HookPoint point = kernel::HookPoint::xdp; // the hook that has the set
    ReadySet set;
    double milliseconds = 0; // of the change itself, without building and testing
    std::vector<Warning> warnings{};
};

// A verified set stays verified, unless its new filter is of an exact kind, which has nothing to verify; and
// a set of an exact kind may become a verified filter. Another unverified set stays unverified. Errors:
// not_attached, no_such_set; unconfirmed; lockout; invalid_request for an action or a condition, or for
// verification that the set in force does not have; changed_meanwhile if somebody loaded the set anew while
// the new filter was made and so switched its verification on or off. A feed is read for the key in force,
// unless its key was chosen; a remark tells that packets are asked for another one.
[[nodiscard]] Result<Swapped> swap(Kernel& kernel, const HookName& hook, SetSpec spec,
                                   const Observer& observer, const Safety& safety = {});

} // namespace sieve::control
