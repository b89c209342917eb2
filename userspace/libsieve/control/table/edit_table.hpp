// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Changes one thing of the table in force: a set's action or place in the order, one set more, or the
// default. Everything else stays: filters with the keys inserted into them, exact sets, other sets' counters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/access/ready_set.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/control/spec/warning.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// A place in the order in which sets are asked.
struct Position {
    enum class Where : std::uint8_t { first, last, before, after };
    Where where = Where::last;
    std::string other{}; // of before and after: the set next to it
};

struct SetEdit {
    std::optional<WantedAction> action{};
    std::optional<Position> position{};
    std::optional<bool> keeps_replies_out{}; // see SetAction
    ConditionEdit condition{};               // likewise
    bool keep_counters = false;              // else another action starts the set's counters at zero
    bool force = false;                      // also if no packet with a key passes afterwards
};

struct Edited {
    kernel::HookPoint point = kernel::HookPoint::xdp; // the hook whose table was changed
    bool changed = false;                             // false: the table was like this already
    std::vector<std::string> order{};                 // the sets' names
    std::vector<Warning> warnings{};
    double milliseconds = 0; // of the change itself
};

struct SetEdited {
    Edited table;
    SetAction before; // what a match did
    SetAction now;    // what it does
};

// Errors of all these: not_attached, several_hooks, other_version; no_such_set for a set that is not in
// force; invalid_request; wants_force; those of check_targets() for a redirecting action. After any error but
// `unfinished`, nothing was changed.

// Gives a set another action, another condition or another place in the order, or several of them, in one
// step.
[[nodiscard]] Result<SetEdited> edit_set(Kernel& kernel, const HookName& hook, const std::string& set,
                                         const SetEdit& edit, const Observer& observer,
                                         const Safety& safety = {});

struct SetAdded {
    Edited table;
    ReadySet set;
    SetAction action;
};

// Puts one more set in force. The set is built and tested before. Further errors: those of prepare(); and
// invalid_request if a set of that name is in force.
[[nodiscard]] Result<SetAdded> add_set(Kernel& kernel, const HookName& hook, const SetSpec& spec,
                                       const Position& position, bool force, const Observer& observer,
                                       const Safety& safety = {});

struct DefaultEdited {
    Edited table;
    sieve_action before = SIEVE_ACTION_PASS;
};

// Changes what becomes of packets that no set decides: pass or drop.
[[nodiscard]] Result<DefaultEdited> edit_default(Kernel& kernel, const HookName& hook, sieve_action action,
                                                 bool force, const Observer& observer,
                                                 const Safety& safety = {});

} // namespace sieve::control
