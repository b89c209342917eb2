// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Ends the probation of changes: keeps them, or takes them back before their time.
#pragma once

#include <chrono>
#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

enum class ProbationEnd {
    keep,
    take_back,
};

// Ends every probation at the hooks that the name covers, and returns these hooks. Error no if there is none,
// which says whether a change was taken back already because its time was over. After an error of kind
// unfinished some probation has ended all the same.
[[nodiscard]] Result<std::vector<kernel::Hook>> end_probation(Kernel& kernel, const HookName& name,
                                                              ProbationEnd end, const Observer& observer);

// Nothing if the table at the hook may be changed; error unconfirmed if a change is on probation there. The
// kernel's side refuses, too; this function does so before work is spent.
[[nodiscard]] Status refuse_on_probation(Kernel& kernel, const kernel::Hook& hook);

// "eth0: the last change ..." for that error.
[[nodiscard]] tl::unexpected<Error> on_probation(const kernel::Hook& hook, std::chrono::nanoseconds left);

} // namespace sieve::control
