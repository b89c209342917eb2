// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/exact_entries.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <sieve/exact.h>

#include "libsieve/keys/key_order.hpp"

namespace sieve::control {

Result<std::optional<kernel::KeyNote>> ExactEntries::find(const sieve_key& entry) {
    return exact_->find(marked_entry(entry));
}

Result<bool> ExactEntries::is_entry(const sieve_key& prefix) {
    SIEVE_ASSIGN(const std::optional<kernel::KeyNote> note, find(prefix));
    return note.has_value();
}

Result<bool> ExactEntries::put(const sieve_key& entry, const kernel::KeyNote& note) {
    SIEVE_ASSIGN(const bool known, is_entry(entry));
    SIEVE_ASSIGN(bool room, exact_->put(marked_entry(entry), note));
    // An entry that is in for certain has its stored keys.
    if (!room || (known && note.state == SIEVE_EXACT_IN)) return room;
    std::vector<sieve_key> keys;
    stored_.for_each(entry, [&](const sieve_key& key) { keys.push_back(key); });
    for (const sieve_key& key : keys) {
        SIEVE_ASSIGN(room, exact_->put(key, {.state = SIEVE_EXACT_IN}));
        if (room) continue;
        if (!known) SIEVE_TRY(erase(entry));
        return false;
    }
    return true;
}

Status ExactEntries::find_shared(const sieve_key& entry, const std::vector<sieve_key>& keys,
                                 std::vector<bool>& stays) {
    const std::uint32_t fields = stored_.fields();
    const EntryForm own = form_of(entry, fields), probe = form_of(keys.front(), fields);
    const std::uint64_t row = std::uint64_t{1} << (probe.destination - own.destination); // one source's keys
    // An entry that is in has all its stored keys in the map.
    const auto most_bits = static_cast<std::uint32_t>(std::bit_width(exact_->most()));
    for (const EntryForm& form : stored_.forms_under(keys.front(), most_bits)) {
        // The keys that an entry of this form shares with the given one: so many sources and destinations.
        const std::uint64_t sources = std::uint64_t{1} << (probe.source - std::max(own.source, form.source));
        const std::uint64_t destinations =
            std::uint64_t{1} << (probe.destination - std::max(own.destination, form.destination));
        for (std::uint64_t s = 0; s < keys.size() / row; s += sources)
            for (std::uint64_t d = 0; d < row; d += destinations) {
                const sieve_key other = cut_entry(keys[s * row + d], form, fields);
                if (same_key(other, entry)) continue;
                SIEVE_ASSIGN(const bool in, is_entry(other));
                if (!in) continue;
                for (std::uint64_t i = s; i < s + sources; i++)
                    for (std::uint64_t j = d; j < d + destinations; j++) stays[i * row + j] = true;
            }
    }
    return {};
}

Status ExactEntries::erase(const sieve_key& entry) {
    std::vector<sieve_key> keys;
    stored_.for_each(entry, [&](const sieve_key& key) { keys.push_back(key); });
    std::vector<bool> stays(keys.size());
    if (!keys.empty()) SIEVE_TRY(find_shared(entry, keys, stays));
    for (std::size_t i = 0; i < keys.size(); i++)
        if (!stays[i]) SIEVE_TRY(exact_->erase(keys[i]));
    return exact_->erase(marked_entry(entry));
}

Result<std::vector<kernel::NotedKey>> ExactEntries::all() {
    SIEVE_ASSIGN(const std::vector<kernel::NotedKey> keys, exact_->all());
    std::vector<kernel::NotedKey> entries;
    for (const kernel::NotedKey& one : keys)
        if (const std::optional<sieve_key> entry = entry_marked_by(one.key))
            entries.push_back({*entry, one.note});
    return entries;
}

Result<std::unique_ptr<RunningKeys>> open_exact_entries(Kernel& kernel, std::uint32_t exact_id,
                                                        const StoredKeys& stored) {
    SIEVE_ASSIGN(std::unique_ptr<RunningKeys> exact, kernel.open_exact(exact_id));
    if (!stored.of_prefixes()) return exact;
    return std::make_unique<ExactEntries>(std::move(exact), stored);
}

} // namespace sieve::control
