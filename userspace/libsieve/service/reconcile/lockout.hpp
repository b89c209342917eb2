// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A table that drops by default must not lock out the administrators who are connected right now.
#pragma once

#include <vector>

#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/reconcile/reconcile.hpp"
#include "libsieve/service/state/state_directory.hpp"

namespace sieve::service {

// Gives an obstacle to each hook of the plan that would drop an administrator's packets: it judges packets
// that arrive and drops by default, something changes there, a session of an administrator comes in through
// its interface, and no set of source addresses that passes holds where that session comes from. An entry
// with protect-host = false is left alone.
void refuse_lockouts(ReconcilePlan& plan, const std::vector<SetSurvey>& surveys, const StateDirectory& state);

// What a person reads of control's refusal of this plan (ErrorKind::lockout): what to change in the
// configuration, if it is meant.
[[nodiscard]] Error lockout_refusal(const Error& refused, const HookPlan& plan);

} // namespace sieve::service
