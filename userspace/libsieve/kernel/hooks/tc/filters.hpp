// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The filters at tc's hooks, as rtnetlink lists them, whoever added them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libsieve/kernel/hooks/hook.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel::tc {

// A queueing discipline without an egress hook, in the place of clsact. It takes filters for egress all the
// same, asks them about packets that arrive, and lists its filters for both hooks.
inline constexpr std::string_view only_ingress = "ingress";

// The kind of the queueing discipline that has the interface's hooks; an empty text if there is none. Returns
// 0 or an errno value.
[[nodiscard]] int read_discipline(const Interface& interface, std::string& kind);

// All filters, in the order in which they are asked; none if there is no such hook. Only the first chain is
// listed: packets reach other chains only if a filter sends them there.
[[nodiscard]] Result<std::vector<TcFilter>> list_filters(const Interface& interface, HookPoint point);

// What is at that hook now; ours is the first filter whose program is ours.
[[nodiscard]] Result<Hook> read_hook(const Interface& interface, HookPoint point);

} // namespace sieve::kernel::tc
