// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Takes a set out of its table's joint filter, which does not follow when keys come and go one by one.
#pragma once

#include <cstdint>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// From now on the set with this filter is asked by it, as after a swap. While a change is on probation, this
// holds for the table that may come back, too, which may have the same filter. Call it before the set's keys
// change; the lock is held. Nothing happens if the set is not joined. Errors: those of
// Kernel::replace_table(), or of Kernel::leave_joint_on_probation().
[[nodiscard]] Status leave_joint(Kernel& kernel, const kernel::Hook& hook, std::uint32_t map_id);

} // namespace sieve::control
