// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/exact_entries.hpp"

#include <utility>
#include <vector>

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

Result<bool> ExactEntries::is_covered(const sieve_key& stored, std::uint32_t first, std::uint32_t last,
                                      const sieve_key& but) {
    for (std::uint32_t length = first; length <= last; length++) {
        const sieve_key prefix = cut_entry(stored, length);
        if (same_key(prefix, but)) continue;
        SIEVE_ASSIGN(const bool covers, is_entry(prefix));
        if (covers) return true;
    }
    return false;
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

Status ExactEntries::erase(const sieve_key& entry) {
    std::vector<sieve_key> keys;
    stored_.for_each(entry, [&](const sieve_key& key) { keys.push_back(key); });
    const std::uint32_t length = StoredKeys::length_of(entry);
    // A prefix around the entry keeps all of them.
    bool all_stay = keys.empty();
    if (!all_stay) {
        SIEVE_ASSIGN(all_stay, is_covered(keys.front(), stored_.least_length(keys.front()), length, entry));
    }
    if (!all_stay)
        for (const sieve_key& key : keys) {
            SIEVE_ASSIGN(const bool stays, is_covered(key, length, StoredKeys::length_of(key), entry));
            if (!stays) SIEVE_TRY(exact_->erase(key));
        }
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
