// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Turns wanted sets into sets that are in the kernel and have answered correctly there. None of them is in
// force yet, so nothing has to be undone if a set fails.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/access/ready_set.hpp"
#include "libsieve/control/safety/lockout.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/control/spec/source.hpp"
#include "libsieve/control/spec/table_spec.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// Refuses what no table can hold: too many sets, a repeated name, an invalid name.
[[nodiscard]] Status check_names(std::span<const SetSpec> sets);

// Reads or builds every set from its inputs and loads it into the kernel, untested. A filter that is built is
// spared false positives of `host`, the packets that this host lives by (lockout.hpp), if that takes few
// tries. Images do not ask for `host`.
[[nodiscard]] Result<std::vector<ReadySet>> bring_in(Kernel& kernel, std::span<const SetSpec> sets,
                                                     std::vector<SetInputs> inputs, const Observer& observer,
                                                     const FindQuestions& host = {});

// Sets that were tested, and the trial that tested them: set i is in slot i.
struct PreparedSets {
    std::vector<ReadySet> sets;
    std::unique_ptr<Trial> trial;
};

// Loads every set into the kernel and tests it there. `frags`: see Kernel::start_trial(); `host`: see
// bring_in().
[[nodiscard]] Result<PreparedSets> prepare(Kernel& kernel, kernel::HookPoint point, bool frags,
                                           std::span<const SetSpec> sets, const Observer& observer,
                                           const FindQuestions& host = {});

// Has the filters that come brought up to date where their specs can (SetSpec::catch_up). The caller holds
// the lock until the table with them is in force.
void catch_up(std::span<const SetSpec> specs, std::span<const ReadySet> sets);

// What a match with each set does, with its target looked up.
[[nodiscard]] Result<std::vector<SetAction>> find_actions(Kernel& kernel, std::span<const SetSpec> sets,
                                                          sieve_action default_action);

// A set of a table, with all that its action says. Without maps it keeps those that it has in force.
[[nodiscard]] kernel::WantedSet wanted_set(const std::string& name, const SetAction& action,
                                           const SetMaps& maps = {});

// The table of these sets, in this order, with everything else that the spec asks for.
[[nodiscard]] kernel::WantedTable wanted_table(const std::vector<ReadySet>& sets,
                                               const std::vector<SetAction>& actions, const TableSpec& spec);

} // namespace sieve::control
