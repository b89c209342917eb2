// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/safety/allowlist.hpp"

#include <fmt/core.h>

#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::control {

std::vector<Warning> allowlist_warnings(std::span<const ReadySet> sets, const kernel::WantedTable& table) {
    std::vector<Warning> warnings;
    if (table.default_action != SIEVE_ACTION_DROP) return warnings;
    for (const ReadySet& set : sets) {
        const sieve_lookup& lookup = set.image.lookup();
        if (lookup.probes == 0 || set.maps.verified() || kind_of(lookup).exact() != nullptr) continue;
        for (const kernel::WantedSet& wanted : table.sets)
            if (wanted.name == set.name && wanted.action == SIEVE_ACTION_PASS)
                warnings.push_back(
                    {WarningKind::prefix_allowlist,
                     fmt::format(
                         "set {} lets prefixes in, and its matches are not verified: a false positive "
                         "opens a whole prefix, so the neighbours of one that was found pass far more "
                         "often than the promised rate says",
                         set.name),
                     {.set = set.name}});
    }
    return warnings;
}

} // namespace sieve::control
