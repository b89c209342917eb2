// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The BPF filters at tc's hooks, as rtnetlink lists them, whoever added them.
#pragma once

#include <vector>

#include "libsieve/kernel/hooks/hook.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel::tc {

// All filters, in the order in which they are asked; none if there is no clsact. Only the first chain is
// listed: packets reach other chains only if a filter sends them there.
[[nodiscard]] Result<std::vector<TcFilter>> list_filters(const Interface& interface, HookPoint point);

// What is at that hook now; ours is the first filter whose program is ours.
[[nodiscard]] Result<Hook> read_hook(const Interface& interface, HookPoint point);

} // namespace sieve::kernel::tc
