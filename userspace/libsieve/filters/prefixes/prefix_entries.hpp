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
// An entry and a stored key have the same form. In a set of one address: the address, cut, in the first two
// words, and the length (of 128 bits) in the last one (sieve_exact_of_prefix). In a set of several fields:
// the key, cut, and how much of it is given in the upper bits of the last word (sieve_store_key). In a set
// without prefixes both are the key itself.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sieve/exact.h>
#include <sieve/image.h>
#include <sieve/prefix.h>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// The most stored keys that an entry may expand to when it is inserted into a set in force.
inline constexpr std::uint64_t most_stored_keys = 65536;

// How much of a key an entry names, or a stored key: the lengths of its addresses (of 128 bits; 0 among
// several fields: any address) and which of the other fields. In a set of one address, `source` is its
// length, whichever field it is, and the others are 0.
struct EntryForm {
    std::uint32_t source = 0;
    std::uint32_t destination = 0;
    std::uint32_t transport = 0; // enum sieve_field bits

    [[nodiscard]] friend constexpr auto operator<=>(const EntryForm&, const EntryForm&) = default;

    // In a set of several fields: the fields of which anything is given.
    [[nodiscard]] constexpr std::uint32_t fields() const {
        return transport | (source != 0 ? std::uint32_t{SIEVE_FIELD_SRC} : 0) |
               (destination != 0 ? std::uint32_t{SIEVE_FIELD_DST} : 0);
    }
};

// The same as a header states it.
[[nodiscard]] constexpr sieve_probe as_probe(const EntryForm& form) {
    return {static_cast<__u8>(form.source), static_cast<__u8>(form.destination),
            static_cast<__u8>(form.transport), 0};
}

// Of a prefix set with these fields.
[[nodiscard]] EntryForm form_of(const sieve_key& entry, std::uint32_t fields);

// The family of an entry's addresses. Nothing if it leaves all addresses open: packets of both families ask
// for such an entry.
[[nodiscard]] std::optional<int> family_of(const sieve_key& entry, std::uint32_t fields);

// The same entry cut to a form that names no more. And what is left of a packet's key.
[[nodiscard]] sieve_key cut_entry(const sieve_key& entry, const EntryForm& form, std::uint32_t fields);
[[nodiscard]] sieve_key cut_key(const sieve_key& key, const EntryForm& form, std::uint32_t fields);

// The entries of a list of keys, prefixes and ranges: distinct, in key_order. A range counts as the fewest
// prefixes that make it up. `listed`: how many there are with repetitions.
[[nodiscard]] std::vector<sieve_key> entries_of(const Members& members, std::uint64_t* listed = nullptr);

// The entry as a prefix of keys, and the members that these entries are: the reverse of entries_of().
[[nodiscard]] sieve_exception prefix_of(const sieve_key& entry, std::uint32_t fields);
[[nodiscard]] Members members_of_entries(std::span<const sieve_key> entries, std::uint32_t fields);

// The probes of a family.
[[nodiscard]] std::vector<EntryForm> probes_of(const sieve_probes& probes, int family);

// What a filter with this header stores.
class StoredKeys {
  public:
    StoredKeys(const sieve_lookup& lookup, const sieve_probes& probes);

    // The set holds prefixes; otherwise each entry is one key.
    [[nodiscard]] bool of_prefixes() const { return lookup_.probes != 0; }
    [[nodiscard]] std::uint32_t fields() const { return lookup_.fields; }

    // The probe that takes the entry: of those that compare the same fields, the one that makes the fewest
    // stored keys. Nothing if there is none.
    [[nodiscard]] std::optional<EntryForm> probe_for(const sieve_key& entry) const;

    // How many keys are stored for the entry; infinity if no probe takes it.
    [[nodiscard]] double count(const sieve_key& entry) const;

    // Calls visit(const sieve_key&) for each stored key of the entry, in ascending order.
    template <class Visit>
    void for_each(const sieve_key& entry, const Visit& visit) const;

    // The forms of the entries that expand to this stored key, each to at most 2^`bits` keys.
    [[nodiscard]] std::vector<EntryForm> forms_under(const sieve_key& stored, std::uint32_t bits) const;

    [[nodiscard]] sieve_hash hash(const sieve_key& stored) const {
        if (!of_prefixes()) return sieve_hash_key(&stored, lookup_.hash_key, lookup_.fields);
        if (!sieve_is_one_address(lookup_.fields)) return sieve_hash_stored(&stored, lookup_.hash_key);
        return sieve_hash_prefix(stored.word[0], stored.word[1], form_of(stored, lookup_.fields).source,
                                 lookup_.hash_key);
    }

  private:
    [[nodiscard]] std::optional<EntryForm> probe_for(const EntryForm& form, std::optional<int> family) const;
    // The stored key that is so many steps behind the entry's first one, in each address.
    [[nodiscard]] sieve_key stored_at(const sieve_key& entry, const EntryForm& probe, std::uint64_t source,
                                      std::uint64_t destination) const;

    sieve_lookup lookup_;
    std::vector<EntryForm> probes_[SIEVE_FAMILIES];
};

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
    const EntryForm form = form_of(entry, lookup_.fields);
    const std::optional<EntryForm> probe = probe_for(entry);
    if (!probe) return;
    for (std::uint64_t s = 0; s < std::uint64_t{1} << (probe->source - form.source); s++)
        for (std::uint64_t d = 0; d < std::uint64_t{1} << (probe->destination - form.destination); d++)
            visit(stored_at(entry, *probe, s, d));
}

} // namespace sieve
