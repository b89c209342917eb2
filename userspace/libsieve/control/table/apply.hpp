// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Puts a whole table of sets in force on a hook and replaces the table that was there.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/joint/join.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/control/spec/table_spec.hpp"
#include "libsieve/control/spec/warning.hpp"
#include "libsieve/control/table/prepare.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

struct Applied {
    kernel::Hook hook;                // as it is now
    bool attached_now = false;        // our program was not there before
    std::vector<std::string> remarks; // from attaching
    bool place_ignored = false;       // a priority or chain was given, but the program is alone
    std::vector<Warning> warnings{};  // of the table
    std::vector<ReadySet> sets{};
    kernel::WantedTable table;
    std::optional<RepliesMade> replies{}; // if the table lets them pass
    std::optional<Joined> joined{};       // the joint filter, if the spec asked for one and there is one
};

// Attaches the program first if the hook does not have it. Whatever can be refused without work is refused
// before the work, and checked again under the lock, since minutes may lie between. Errors: those of
// check_targets(), prepare() and Kernel::ready_replies(); foreign_program, other_version, attached_otherwise,
// wants_force; unconfirmed; lockout; invalid_request for probation if a program would have to come back that
// is not this one. After any of these errors, nothing was changed. A first table that is taken back leaves
// the program attached, and it passes all packets.
[[nodiscard]] Result<Applied> apply(Kernel& kernel, const TableSpec& spec, const Observer& observer,
                                    const Safety& safety = {});

// The same in three parts; see PreparedTable.
class PreparedApply {
  public:
    [[nodiscard]] static Result<PreparedApply> prepare(Kernel& kernel, TableSpec spec,
                                                       const Observer& observer, Safety safety);
    [[nodiscard]] Status check();
    [[nodiscard]] Result<Applied> commit();

  private:
    PreparedApply(Kernel& kernel, TableSpec spec, Safety safety)
        : kernel_(&kernel), spec_(std::move(spec)), safety_(std::move(safety)) {}

    Kernel* kernel_;
    TableSpec spec_;
    Safety safety_;
    kernel::Interface interface_{};
    std::vector<SetAction> actions_{};
    PreparedSets prepared_{};
    Applied applied_{};
};

} // namespace sieve::control
