// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/prefixes/prefix_entries.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/keys/key_order.hpp"

namespace sieve {

namespace {

constexpr std::uint32_t v4_shift = 96; // an IPv4 address is the end of a v4-mapped one

void put_address(__u64* words, uint128 address) {
    words[0] = static_cast<std::uint64_t>(address >> 64);
    words[1] = static_cast<std::uint64_t>(address);
}

std::uint32_t pack(const EntryForm& form) {
    return sieve_pack_probe(form.source, form.destination, form.transport);
}

sieve_key entry_of(const sieve_key& key, std::uint32_t fields) {
    const bool one = sieve_is_one_address(fields) != 0;
    return cut_key(key,
                   {.source = one || (fields & SIEVE_FIELD_SRC) != 0 ? address_bits : 0,
                    .destination = !one && (fields & SIEVE_FIELD_DST) != 0 ? address_bits : 0,
                    .transport = fields & SIEVE_FIELD_TRANSPORT},
                   fields);
}

void sort_distinct(std::vector<sieve_key>& keys) {
    std::sort(keys.begin(), keys.end(), key_order);
    keys.erase(std::unique(keys.begin(), keys.end(), same_key), keys.end());
}

// Whether an entry of this form can be stored under the probe.
bool takes(const EntryForm& probe, const EntryForm& form, std::uint32_t fields) {
    return probe.source >= form.source && probe.destination >= form.destination &&
           (sieve_is_one_address(fields) || probe.fields() == form.fields());
}

std::uint32_t bits_between(const EntryForm& form, const EntryForm& probe) {
    return probe.source - form.source + probe.destination - form.destination;
}

} // namespace

EntryForm form_of(const sieve_key& entry, std::uint32_t fields) {
    const std::uint64_t word = entry.word[SIEVE_EXACT_LENGTH_WORD] & ~SIEVE_EXACT_ENTRY;
    if (sieve_is_one_address(fields)) return {.source = static_cast<std::uint32_t>(word)};
    const auto probe = static_cast<std::uint32_t>(word >> SIEVE_STORED_PROBE_SHIFT);
    return {.source = probe & 0xff, .destination = probe >> 8 & 0xff, .transport = probe >> 16};
}

std::optional<int> family_of(const sieve_key& entry, std::uint32_t fields) {
    const EntryForm form = form_of(entry, fields);
    if (sieve_is_one_address(fields) || form.source != 0) return sieve_family(entry.word[0], entry.word[1]);
    if (form.destination != 0) return sieve_family(entry.word[2], entry.word[3]);
    return std::nullopt;
}

sieve_key cut_entry(const sieve_key& entry, const EntryForm& form, std::uint32_t fields) {
    sieve_key cut;
    if (sieve_is_one_address(fields))
        sieve_exact_of_prefix(entry.word[0], entry.word[1], form.source, &cut);
    else
        sieve_store_key(&entry, pack(form), &cut);
    return cut;
}

sieve_key cut_key(const sieve_key& key, const EntryForm& form, std::uint32_t fields) {
    if (!sieve_is_one_address(fields)) return cut_entry(key, form, fields);
    sieve_key cut;
    sieve_exact_of_prefix(sieve_address_upper(&key, fields), sieve_address_lower(&key, fields), form.source,
                          &cut);
    return cut;
}

std::vector<sieve_key> entries_of(const Members& members, std::uint64_t* listed) {
    const std::uint32_t fields = members.fields();
    std::vector<sieve_key> entries;
    entries.reserve(members.size());
    for (std::size_t i = 0; i < members.keys.size(); i++)
        entries.push_back(entry_of(members.keys.at(i), fields));
    for (const AddressRange& range : members.ranges)
        split_into_prefixes(range, [&](uint128 first, std::uint32_t length) {
            sieve_key& entry = entries.emplace_back();
            put_address(entry.word, first);
            entry = cut_entry(entry, {.source = length}, fields);
        });
    for (const KeyRange& range : members.key_ranges)
        for_each_prefix(range, [&](const sieve_exception& prefix) {
            const auto& [source, destination, transport, reserved] = prefix.bits;
            entries.push_back(cut_key(prefix.key, {source, destination, transport}, fields));
        });
    if (listed != nullptr) *listed = entries.size();
    sort_distinct(entries);
    return entries;
}

sieve_exception prefix_of(const sieve_key& entry, std::uint32_t fields) {
    const EntryForm form = form_of(entry, fields);
    sieve_exception prefix{};
    if (sieve_is_one_address(fields)) {
        const int word = sieve_address_word(fields);
        prefix.key.word[word] = entry.word[0];
        prefix.key.word[word + 1] = entry.word[1];
        (word == 0 ? prefix.bits.source : prefix.bits.destination) = static_cast<__u8>(form.source);
        return prefix;
    }
    prefix.key = entry;
    prefix.key.word[4] &= sieve_transport_mask(form.transport);
    prefix.bits = as_probe(form);
    return prefix;
}

Members members_of_entries(std::span<const sieve_key> entries, std::uint32_t fields) {
    std::vector<sieve_exception> prefixes;
    prefixes.reserve(entries.size());
    for (const sieve_key& entry : entries) prefixes.push_back(prefix_of(entry, fields));
    return members_of(prefixes, fields);
}

std::vector<EntryForm> probes_of(const sieve_probes& probes, int family) {
    std::vector<EntryForm> forms;
    for (int i = 0; i < probes.count[family]; i++)
        forms.push_back(
            {probes.length[family][i], probes.destination[family][i], probes.transport[family][i]});
    return forms;
}

StoredKeys::StoredKeys(const sieve_lookup& lookup, const sieve_probes& probes) : lookup_(lookup) {
    for (int family = 0; family < SIEVE_FAMILIES; family++) probes_[family] = probes_of(probes, family);
}

std::optional<EntryForm> StoredKeys::probe_for(const EntryForm& form, std::optional<int> family) const {
    std::optional<EntryForm> best;
    for (const EntryForm& probe : probes_[family.value_or(0)])
        if (takes(probe, form, lookup_.fields) &&
            (!best || bits_between(form, probe) < bits_between(form, *best)))
            best = probe;
    // Packets of both families must ask for what names no address.
    if (!family && best && std::ranges::find(probes_[1], *best) == probes_[1].end()) return std::nullopt;
    return best;
}

std::optional<EntryForm> StoredKeys::probe_for(const sieve_key& entry) const {
    return probe_for(form_of(entry, lookup_.fields), family_of(entry, lookup_.fields));
}

double StoredKeys::count(const sieve_key& entry) const {
    if (!of_prefixes()) return 1;
    const std::optional<EntryForm> probe = probe_for(entry);
    if (!probe) return std::numeric_limits<double>::infinity();
    return std::exp2(static_cast<double>(bits_between(form_of(entry, lookup_.fields), *probe)));
}

sieve_key StoredKeys::stored_at(const sieve_key& entry, const EntryForm& probe, std::uint64_t source,
                                std::uint64_t destination) const {
    const auto moved = [](const __u64* words, std::uint64_t steps, std::uint32_t length) {
        const uint128 first = address_number(words[0], words[1]);
        return length == 0 ? first : first + (static_cast<uint128>(steps) << (address_bits - length));
    };
    sieve_key key = entry;
    put_address(key.word, moved(entry.word, source, probe.source));
    put_address(key.word + 2, moved(entry.word + 2, destination, probe.destination));
    return cut_entry(key, probe, lookup_.fields);
}

std::vector<EntryForm> StoredKeys::forms_under(const sieve_key& stored, std::uint32_t bits) const {
    const EntryForm probe = form_of(stored, lookup_.fields);
    const std::optional<int> family = family_of(stored, lookup_.fields);
    const bool one = sieve_is_one_address(lookup_.fields) != 0;
    // Among several fields, the length 0 is that of an open address.
    const std::uint32_t shortest = family == SIEVE_FAMILY_V4 ? v4_shift : one ? 0 : 1;
    const auto from = [&](std::uint32_t longest) {
        return longest == 0 ? 0 : std::max(shortest, longest - std::min(longest, bits));
    };
    std::vector<EntryForm> forms;
    for (std::uint32_t s = from(probe.source); s <= probe.source; s++)
        for (std::uint32_t d = from(probe.destination); d <= probe.destination; d++) {
            const EntryForm form{s, d, probe.transport};
            if (bits_between(form, probe) <= bits && probe_for(form, family) == probe) forms.push_back(form);
        }
    return forms;
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
