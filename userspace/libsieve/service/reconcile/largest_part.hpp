// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where a hook refuses a table, one set or the default is usually to blame, and the others shall not wait.
#pragma once

#include <functional>
#include <optional>

#include "libsieve/service/reconcile/reconcile.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Plans that hold back what the hook would not take, and nothing else that it would: the changes of the
// refused plan are added one by one, in the order of sets, and those of the table as a whole last. A set's
// range set changes with it, and sets that change together do. `plan` makes the plan that holds these back,
// and `try_out` asks the hook about it, without a change. Nothing: it takes none of them, or `why` is no
// reason to ask, since it would be the same for each.
[[nodiscard]] std::optional<HookPlan>
largest_part(const HookPlan& refused, const Error& why, const WantedVersions& wanted,
             const std::function<HookPlan(const HeldBack& held)>& plan,
             const std::function<Status(const HookPlan& plan)>& try_out);

} // namespace sieve::service
