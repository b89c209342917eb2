// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Replies: whether what answers a flow that this host, or a network behind it, began passes where a packet
// would be dropped. Switching that on and off takes more than a table: a memory of flows, and a program that
// notes what leaves the interface.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libsieve/control/access/in_force.hpp"
#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/access/ready_set.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/control/spec/table_spec.hpp"
#include "libsieve/control/spec/warning.hpp"
#include "libsieve/control/table/edit_table.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// How many flows may be asked for, in words for a message; and whether this is such a number.
[[nodiscard]] std::string flow_counts();
[[nodiscard]] bool is_flow_count(std::uint64_t flows);

// Whether replies may pass where a table says this of them and of its default. If not, nobody remembers
// flows, and their number is a mistake.
[[nodiscard]] bool may_let_replies_pass(std::optional<sieve_action> replies, sieve_action default_action,
                                        kernel::HookPoint point);
[[nodiscard]] Status check_flows(const WantedFlows& flows, bool replies_may_pass);

// Pass or drop, for a table that follows `now` (null: there is none of our version). If the spec does not
// say: drop for a default of pass, and where packets leave. With a default of drop it is pass, unless that
// default is in force already: then it is what is in force.
[[nodiscard]] sieve_action replies_of(const TableSpec& spec, const kernel::TableInForce* now);

// What an operator should know about the replies of a table in force: that nobody asked for them and they are
// on, that the default drops what answers this host, or that filters of tc hide flows from the noting
// program.
[[nodiscard]] std::vector<Warning> replies_warnings(Replies& kernel, const kernel::Hook& hook,
                                                    const kernel::WantedTable& table, bool asked);

// Puts a table in force where our program runs, with all that its replies need; takes away what nobody needs
// any more. `fresh`: the sets whose filters come, which keep their hit marks. The caller holds the lock.
// Nothing in the result: the table's replies are dropped. Errors: those of Kernel::ready_replies() and
// replace_table().
[[nodiscard]] Result<std::optional<RepliesMade>> replace_table(Kernel& kernel, const kernel::Hook& hook,
                                                               const kernel::WantedTable& table,
                                                               const WantedFlows& flows,
                                                               std::span<const ReadySet> fresh);

struct RepliesEdited {
    Edited table;
    sieve_action before = SIEVE_ACTION_DROP;
    std::optional<RepliesMade> made{};
};

// Switches replies on or off; everything else stays. What was taken off behind our back is put back. Errors
// as those of edit_default().
[[nodiscard]] Result<RepliesEdited> edit_replies(Kernel& kernel, const HookName& name, sieve_action action,
                                                 const WantedFlows& flows, const Observer& observer,
                                                 const Safety& safety = {});

} // namespace sieve::control
