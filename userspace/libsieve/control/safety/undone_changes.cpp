// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/safety/undone_changes.hpp"
#include "libsieve/util/text/counted.hpp"

#include <fmt/core.h>

namespace sieve::control {

std::vector<Warning> undone_changes(Filters& kernel, const kernel::TableInForce& before,
                                    const kernel::WantedTable& wanted) {
    std::vector<Warning> warnings;
    for (const kernel::WantedSet& set : wanted.sets) {
        const kernel::SetInForce* old = before.find(set.name);
        if (old == nullptr || set.map_fd < 0) continue;
        const Result<kernel::FilterHeader> filter = kernel.read_filter(old->map_id);
        if (!filter || filter->file.changes == 0) continue;
        warnings.push_back(
            {WarningKind::changes_undone,
             fmt::format(
                 "set {}: keys were inserted or deleted {} since its filter was built, and the new filter "
                 "does not have what changed",
                 set.name, counted(filter->file.changes, "time")),
             {.set = set.name}});
    }
    return warnings;
}

} // namespace sieve::control
