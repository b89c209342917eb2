// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/prefix_entries.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/keys/key_order.hpp"

namespace sieve {

namespace {

sieve_key entry_of(uint128 first, std::uint32_t length) {
    sieve_key entry;
    sieve_exact_of_prefix(static_cast<std::uint64_t>(first >> 64), static_cast<std::uint64_t>(first), length,
                          &entry);
    return entry;
}

void sort_distinct(std::vector<sieve_key>& keys) {
    std::sort(keys.begin(), keys.end(), key_order);
    keys.erase(std::unique(keys.begin(), keys.end(), same_key), keys.end());
}

} // namespace

std::vector<sieve_key> entries_of(const Members& members, std::uint64_t* listed) {
    const int word = sieve_address_word(members.fields());
    std::vector<sieve_key> entries;
    entries.reserve(members.size());
    for (std::size_t i = 0; i < members.keys.size(); i++) {
        const sieve_key key = members.keys.at(i);
        entries.push_back(entry_of(address_number(key.word[word], key.word[word + 1]), address_bits));
    }
    for (const AddressRange& range : members.ranges)
        split_into_prefixes(
            range, [&](uint128 first, std::uint32_t length) { entries.push_back(entry_of(first, length)); });
    if (listed != nullptr) *listed = entries.size();
    sort_distinct(entries);
    return entries;
}

Members members_of_entries(std::span<const sieve_key> entries, std::uint32_t fields) {
    Members members(fields);
    members.ranges.reserve(entries.size());
    for (const sieve_key& entry : entries) {
        const uint128 first = address_number(entry.word[0], entry.word[1]);
        const std::uint32_t length = StoredKeys::length_of(entry);
        members.ranges.push_back({first, length == address_bits ? first : first | last_address >> length});
    }
    return members;
}

Result<sieve_probes> choose_probes(std::span<const sieve_key> entries, const PrefixLimits& wanted) {
    PrefixLimits limits = wanted;
    LengthCounts counts[SIEVE_FAMILIES] = {};
    for (const sieve_key& entry : entries)
        counts[StoredKeys::family_of(entry)][StoredKeys::length_of(entry)]++;
    for (auto& lengths : limits.lengths) {
        lengths.push_back(address_bits);
        std::sort(lengths.begin(), lengths.end());
        lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    }
    const auto worth = [](double keys, std::size_t probes) {
        return std::ldexp(keys, static_cast<int>(probes));
    };
    SIEVE_ASSIGN(const ChosenProbes chosen,
                 choose_probes(counts, limits, [&](const std::vector<double>& keys) {
                     std::size_t best = 0;
                     for (std::size_t k = 1; k < keys.size(); k++)
                         if (worth(keys[k], k) < worth(keys[best], best)) best = k;
                     return best;
                 }));
    return chosen.probes;
}

std::optional<std::uint32_t> StoredKeys::probe_for(int family, std::uint32_t length) const {
    const auto* first = probes_.length[family];
    const auto* last = first + probes_.count[family];
    const auto* found = std::lower_bound(first, last, length);
    if (found == last) return std::nullopt;
    return *found;
}

double StoredKeys::count(const sieve_key& entry) const {
    if (!of_prefixes()) return 1;
    const std::uint32_t length = length_of(entry);
    const std::optional<std::uint32_t> probe = probe_for(family_of(entry), length);
    return probe ? std::exp2(static_cast<double>(*probe - length)) : std::numeric_limits<double>::infinity();
}

std::uint32_t StoredKeys::least_length(const sieve_key& stored) const {
    const int family = family_of(stored);
    const auto* first = probes_.length[family];
    const auto* probe = std::lower_bound(first, first + probes_.count[family], length_of(stored));
    if (probe != first) return probe[-1] + 1U;
    return family == SIEVE_FAMILY_V4 ? 96 : 0;
}

std::vector<sieve_key> exact_of_entries(std::span<const sieve_key> entries, const StoredKeys& stored) {
    std::vector<sieve_key> exact;
    for (const sieve_key& entry : entries) {
        exact.push_back(marked_entry(entry));
        stored.for_each(entry, [&](const sieve_key& key) { exact.push_back(key); });
    }
    sort_distinct(exact);
    return exact;
}

} // namespace sieve
