// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/changeable_set.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/control/keys/exact_entries.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::control {

namespace {

// The size of a map for so many keys with an end. It has room for more, since each growth costs a flip.
std::uint32_t room_for(std::uint64_t keys) {
    constexpr std::uint64_t least = std::uint64_t{1} << 16, most = std::uint64_t{1} << 31; // 1 MiB, empty
    return static_cast<std::uint32_t>(std::bit_ceil(std::clamp(keys + keys / 4, least, most)));
}

} // namespace

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

Result<TableWithSet> with_room_for_ends(Kernel& kernel, const kernel::Hook& hook, TableWithSet now,
                                        std::uint64_t more) {
    std::vector<kernel::NotedKey> noted;
    if (now.set.inserted_id != 0) {
        SIEVE_ASSIGN(const std::unique_ptr<RunningKeys> inserted, kernel.open_inserted(now.set.inserted_id));
        SIEVE_ASSIGN(noted, inserted->all());
        if (noted.size() + more <= inserted->most()) return now;
    }
    SIEVE_ASSIGN(const UniqueFd map,
                 kernel.make_inserted(now.set.name, room_for(noted.size() + more), noted));
    now.table.sets[now.index].inserted_fd = map.get();
    SIEVE_TRY(kernel.replace_table(hook, now.table));
    return table_with(kernel, hook, now.set.name);
}

} // namespace sieve::control
