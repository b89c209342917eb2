// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/changeable_set.hpp"

#include <utility>

#include <fmt/core.h>

#include "libsieve/control/exact_entries.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::control {

Result<OpenSet> open_changeable(Kernel& kernel, const std::string& interface, const kernel::SetInForce& set) {
    SIEVE_ASSIGN(std::unique_ptr<RunningFilter> filter, kernel.open_filter(set.map_id));
    const sieve_lookup& lookup = filter->lookup();
    if (!kind_of(lookup).facts().changes_live)
        return failure(ErrorKind::fixed_keys,
                       fmt::format("set {} is of kind {}, whose keys cannot be changed one by one", set.name,
                                   kind_name(lookup.kind)),
                       {.interface = interface, .set = set.name});
    const StoredKeys stored(lookup, filter->probes());
    std::unique_ptr<RunningKeys> exact, inserted;
    if (set.exact_id != 0) {
        SIEVE_ASSIGN(exact, open_exact_entries(kernel, set.exact_id, stored));
    }
    if (set.inserted_id != 0) {
        SIEVE_ASSIGN(inserted, kernel.open_inserted(set.inserted_id));
    }
    return OpenSet{.filter = std::move(filter),
                   .stored = stored,
                   .notes = std::make_unique<KeyNotes>(std::move(exact), std::move(inserted))};
}

} // namespace sieve::control
