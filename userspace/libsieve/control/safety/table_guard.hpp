// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Changes of an allowlist that are rarely meant: they let everybody in, or keep everybody out. They need
// force.
#pragma once

#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// Refuses a table that takes the place of an allowlist without being one (wants_force): the default of drop
// becomes pass, or a set whose matches pass now has the same name and drops. A caller that wants force for
// neither, because its operator named that very thing, does not ask.
[[nodiscard]] Status refuse_opening(const std::string& interface, const kernel::TableInForce& now,
                                    const kernel::WantedTable& wanted);

// Refuses a table whose default is drop and which lets nobody in, if packets pass at present: some set passes
// them, or the default does (wants_force).
[[nodiscard]] Status refuse_closing(const std::string& interface, const kernel::TableInForce& now,
                                    const kernel::WantedTable& wanted);

} // namespace sieve::control
