// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The entries of a prefix set that changes while it is in force, and what its filter stores for each of them.
//
// Other prefix sets merge their prefixes when they are built: a prefix inside another one leaves no trace. A
// set that changes must not do that, since deleting the outer prefix has to leave the inner one. So each
// entry is expanded on its own to the shortest probe length that is not below its own, and the filter, which
// counts, holds a stored key once for each entry that expands to it:
//
//     probes /24, /32        10.0.0.0/23  -->  10.0.0.0/24, 10.0.1.0/24
//                            10.0.0.0/24  -->  10.0.0.0/24                   counted twice
//                            10.0.0.7     -->  10.0.0.7/32
//
// An entry and a stored key have the same form: the address, cut, in the first two words, and the length (of
// 128 bits) in the last one (sieve_exact_of_prefix). In a set without prefixes both are the key itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sieve/exact.h>
#include <sieve/image.h>

#include "libsieve/filters/prefix_expansion.hpp"
#include "libsieve/keys/address_range.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

// The most stored keys that an entry may expand to when it is inserted into a set in force.
inline constexpr std::uint64_t most_stored_keys = 65536;

// The entries of a list of addresses, prefixes and ranges: distinct, in key_order. A range counts as the
// fewest prefixes that make it up. `listed`: how many there are with repetitions.
[[nodiscard]] std::vector<sieve_key> entries_of(const Members& members, std::uint64_t* listed = nullptr);

// The addresses of these entries: the reverse of entries_of().
[[nodiscard]] Members members_of_entries(std::span<const sieve_key> entries, std::uint32_t fields);

// Probes for a set of these entries. Each family gets a probe of single addresses, so that every address can
// be inserted later, and the lengths that the limits name. Each further probe, up to limits.max_probes,
// more than halves the number of stored keys: a probe costs every packet, but stored keys take the room that
// later entries need. Errors as for plan_prefixes().
[[nodiscard]] Result<sieve_probes> choose_probes(std::span<const sieve_key> entries,
                                                 const PrefixLimits& limits);

// What a filter with this header stores.
class StoredKeys {
  public:
    StoredKeys(const sieve_lookup& lookup, const sieve_probes& probes) : lookup_(lookup), probes_(probes) {}

    // The set holds prefixes; otherwise each entry is one key.
    [[nodiscard]] bool of_prefixes() const { return lookup_.probes != 0; }

    // The probe length that takes an entry of this length; nothing if it is longer than all of them.
    [[nodiscard]] std::optional<std::uint32_t> probe_for(int family, std::uint32_t length) const;

    // How many keys are stored for the entry; infinity if no probe takes it.
    [[nodiscard]] double count(const sieve_key& entry) const;

    // Calls visit(const sieve_key&) for each stored key of the entry, in ascending order.
    template <class Visit>
    void for_each(const sieve_key& entry, const Visit& visit) const;

    // The entries shorter than a stored key that expand to it have at least this length.
    [[nodiscard]] std::uint32_t least_length(const sieve_key& stored) const;

    [[nodiscard]] sieve_hash hash(const sieve_key& stored) const {
        return of_prefixes()
                   ? sieve_hash_prefix(stored.word[0], stored.word[1], length_of(stored), lookup_.hash_key)
                   : sieve_hash_key(&stored, lookup_.hash_key, lookup_.fields);
    }

    static std::uint32_t length_of(const sieve_key& entry) {
        return static_cast<std::uint32_t>(entry.word[SIEVE_EXACT_LENGTH_WORD]);
    }
    static int family_of(const sieve_key& entry) { return sieve_family(entry.word[0], entry.word[1]); }

  private:
    sieve_lookup lookup_;
    sieve_probes probes_;
};

// The same entry cut to a shorter length.
[[nodiscard]] inline sieve_key cut_entry(const sieve_key& entry, std::uint32_t length) {
    sieve_key cut;
    sieve_exact_of_prefix(entry.word[0], entry.word[1], length, &cut);
    return cut;
}

// The entry as an exact set marks it, beside the stored keys that packets ask for (sieve/exact.h); and the
// entry that such a key marks, if it marks one.
[[nodiscard]] inline sieve_key marked_entry(sieve_key entry) {
    entry.word[SIEVE_EXACT_LENGTH_WORD] |= SIEVE_EXACT_ENTRY;
    return entry;
}
[[nodiscard]] inline std::optional<sieve_key> entry_marked_by(sieve_key exact) {
    if ((exact.word[SIEVE_EXACT_LENGTH_WORD] & SIEVE_EXACT_ENTRY) == 0) return std::nullopt;
    exact.word[SIEVE_EXACT_LENGTH_WORD] &= ~SIEVE_EXACT_ENTRY;
    return exact;
}

// The keys of an exact set of these entries: the marked entries and what is stored for them. Distinct, in
// key_order. Each entry must have a probe.
[[nodiscard]] std::vector<sieve_key> exact_of_entries(std::span<const sieve_key> entries,
                                                      const StoredKeys& stored);

template <class Visit>
void StoredKeys::for_each(const sieve_key& entry, const Visit& visit) const {
    if (!of_prefixes()) {
        visit(entry);
        return;
    }
    const std::uint32_t length = length_of(entry);
    const std::optional<std::uint32_t> probe = probe_for(family_of(entry), length);
    if (!probe) return;
    const uint128 first = address_number(entry.word[0], entry.word[1]);
    const uint128 step = *probe == 0 ? 0 : uint128{1} << (128 - *probe);
    for (std::uint64_t i = 0; i < std::uint64_t{1} << (*probe - length); i++) {
        const uint128 address = first + i * step;
        sieve_key stored;
        sieve_exact_of_prefix(static_cast<std::uint64_t>(address >> 64), static_cast<std::uint64_t>(address),
                              *probe, &stored);
        visit(stored);
    }
}

} // namespace sieve
