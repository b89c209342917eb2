// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Single keys that were inserted or deleted are changes of a filter in force. Another filter in its place
// does not have them.
#pragma once

#include <vector>

#include "libsieve/control/access/filters.hpp"
#include "libsieve/control/spec/warning.hpp"
#include "libsieve/kernel/maps/set_table.hpp"

namespace sieve::control {

// Warns of each set in force that had such changes and gets another filter. Reads the filters in force, so
// the caller asks before it puts the table in force.
[[nodiscard]] std::vector<Warning> undone_changes(Filters& kernel, const kernel::TableInForce& before,
                                                  const kernel::WantedTable& wanted);

} // namespace sieve::control
