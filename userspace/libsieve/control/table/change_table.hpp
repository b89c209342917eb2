// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Changes the table of a program that runs already. Sets are added, removed and reordered, and get new
// actions and filters, all in one step. Filters that stay are not touched.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/spec/observer.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/control/spec/table_spec.hpp"
#include "libsieve/control/spec/warning.hpp"
#include "libsieve/control/table/prepare.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// The maps of a set in force that keeps its filter. The exact set stays with its filter.
struct KeptFilter {
    std::uint32_t map_id = 0;
    std::uint32_t exact_id = 0; // 0: matches are not verified

    [[nodiscard]] friend bool operator==(const KeptFilter&, const KeptFilter&) = default;
};

struct NextTable {
    TableSpec table;                             // the wanted table; mode, rank and force are ignored
    std::vector<std::optional<KeptFilter>> kept; // for each set; nothing: its filter comes from its sources
    std::vector<SetAction> actions;              // for each set: takes the place of the table's
};

struct TableChanged {
    kernel::Hook hook;
    std::vector<Warning> warnings{};      // of the table
    std::vector<ReadySet> brought_in{};   // the sets that got a filter, in order
    std::optional<RepliesMade> replies{}; // if the table lets them pass
    double milliseconds = 0;              // of the change itself, without building and testing
};

// A change in three parts. A caller that changes the tables of several hooks together prepares all of them,
// takes the lock, checks all of them, and commits all of them. Sets are matched by name: one that was there
// before keeps its counters, unless it gets another action. Errors: those of check_targets() and
// control::prepare(); not_attached; other_version; unconfirmed; lockout; changed_meanwhile if a filter to be
// kept is no longer in force. After any of these errors, nothing was changed.
class PreparedTable {
  public:
    // Builds and tests the filters. Changes nothing. `kernel` and what `safety` points to outlive the result.
    [[nodiscard]] static Result<PreparedTable> prepare(Kernel& kernel, NextTable change,
                                                       const Observer& observer, Safety safety);
    // Compares with what is in force now. The caller holds the lock until after commit().
    [[nodiscard]] Status check();
    // Puts the table in force. Called once, after check() has found nothing.
    [[nodiscard]] Result<TableChanged> commit();

  private:
    PreparedTable(Kernel& kernel, NextTable change, Safety safety)
        : kernel_(&kernel), change_(std::move(change)), safety_(std::move(safety)) {}

    Kernel* kernel_;
    NextTable change_;
    Safety safety_;
    PreparedSets prepared_{};
    kernel::WantedTable wanted_{};
    kernel::Hook hook_{};
};

} // namespace sieve::control
