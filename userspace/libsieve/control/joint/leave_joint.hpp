// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Takes a set out of its table's joint filter, which does not follow when keys come and go one by one.
#pragma once

#include <string>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// From now on the set is asked by its own filter, as after a swap. Call it before the set's keys change; the
// lock is held. Nothing happens if the set is not joined. Errors: those of Kernel::replace_table().
[[nodiscard]] Status leave_joint(Kernel& kernel, const kernel::Hook& hook, const std::string& set);

} // namespace sieve::control
