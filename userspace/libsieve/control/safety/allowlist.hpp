// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Warns of allowlists of prefixes whose false positives nothing rejects.
#pragma once

#include <span>
#include <vector>

#include "libsieve/control/access/ready_set.hpp"
#include "libsieve/control/spec/warning.hpp"
#include "libsieve/kernel/maps/set_table.hpp"

namespace sieve::control {

// Returns a warning for each of `sets` that is a prefix set without verification, if its matches pass while
// the table drops the rest. The promised rate is about prefixes: a probe that matches by mistake matches for
// every address of its prefix. So whoever finds one false positive has found its neighbours, too
// (docs/security.md). `table` holds the sets by name.
[[nodiscard]] std::vector<Warning> allowlist_warnings(std::span<const ReadySet> sets,
                                                      const kernel::WantedTable& table);

} // namespace sieve::control
