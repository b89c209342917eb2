// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/keys/members.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include <sieve/prefix.h>

#include "libsieve/keys/address_key.hpp"
#include "libsieve/keys/address_ranges.hpp"

namespace sieve {

namespace {

uint128 source_of(const sieve_key& key) {
    return address_number(key.word[0], key.word[1]);
}

uint128 destination_of(const sieve_key& key) {
    return address_number(key.word[2], key.word[3]);
}

void set_address(__u64* words, uint128 address) {
    words[0] = static_cast<std::uint64_t>(address >> 64);
    words[1] = static_cast<std::uint64_t>(address);
}

// One key as a range of keys.
KeyRange range_of_key(const sieve_key& key, std::uint32_t fields) {
    return {.source = {source_of(key), source_of(key)},
            .destination = {destination_of(key), destination_of(key)},
            .transport = key.word[4],
            .fields = fields};
}

// Removes the keys for which `leaves` is true; tells how many.
template <class Leaves>
std::uint64_t remove_keys(KeySet& keys, const Leaves& leaves) {
    std::vector<std::size_t> leaving;
    for (std::size_t i = 0; i < keys.size(); i++)
        if (leaves(keys.at(i))) leaving.push_back(i);
    if (leaving.empty()) return 0;
    KeySet rest(keys.fields());
    rest.reserve(keys.size() - leaving.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < keys.size(); i++) {
        if (next < leaving.size() && leaving[next] == i)
            next++;
        else
            rest.add(keys.at(i));
    }
    keys = std::move(rest);
    return leaving.size();
}

// The addresses of a set of one address, by family and merged.
void collect_addresses(const Members& members, std::vector<AddressRange> (&by_family)[SIEVE_FAMILIES]) {
    for (const AddressRange& range : members.ranges) by_family[family_of(range)].push_back(range);
    for (std::size_t i = 0; i < members.keys.size(); i++) {
        const uint128 address = address_of_key(members.keys.at(i), members.fields());
        by_family[is_ipv4(address) ? SIEVE_FAMILY_V4 : SIEVE_FAMILY_V6].push_back({address, address});
    }
    for (auto& ranges : by_family) ranges = merge_ranges(std::move(ranges));
}

// A range of IPv6 around the v4-mapped addresses does not mean IPv4, and what is left of it does not either.
bool changes_family(const AddressRange& whole, const AddressRange& piece) {
    return family_of(piece) != family_of(whole);
}

Subtracted subtract_addresses(Members& list, const Members& taken) {
    std::vector<AddressRange> out[SIEVE_FAMILIES];
    collect_addresses(taken, out);
    Subtracted done;
    done.keys = remove_keys(list.keys, [&](const sieve_key& key) {
        const uint128 address = address_of_key(key, list.fields());
        return holds_address(out[is_ipv4(address) ? SIEVE_FAMILY_V4 : SIEVE_FAMILY_V6], address);
    });
    std::vector<AddressRange> rest;
    rest.reserve(list.ranges.size());
    for (const AddressRange& range : list.ranges) {
        const std::size_t before = rest.size();
        subtract_ranges(range, out[family_of(range)], [&](const AddressRange& piece) {
            if (changes_family(range, piece)) return;
            if (piece.first == piece.last)
                list.keys.add(key_of_address(piece.first, list.fields()));
            else
                rest.push_back(piece);
        });
        if (rest.size() != before + 1 || rest.back() != range) done.ranges++;
    }
    list.ranges = std::move(rest);
    return done;
}

bool overlap(const AddressRange& a, const AddressRange& b) {
    return family_of(a) == family_of(b) && a.first <= b.last && b.first <= a.last;
}

bool overlap(const KeyRange& a, const KeyRange& b) {
    const std::uint32_t both = a.fields & b.fields;
    return ((a.transport ^ b.transport) & sieve_transport_mask(both)) == 0 &&
           ((both & SIEVE_FIELD_SRC) == 0 || overlap(a.source, b.source)) &&
           ((both & SIEVE_FIELD_DST) == 0 || overlap(a.destination, b.destination));
}

// Adds to `rest` what remains of `range` without `taken`, which overlaps it and leaves open what `range`
// does.
void cut(const KeyRange& range, const KeyRange& taken, std::vector<KeyRange>& rest) {
    KeyRange middle = range;
    for (const auto& [field, part] : {std::pair{SIEVE_FIELD_SRC, &KeyRange::source},
                                      std::pair{SIEVE_FIELD_DST, &KeyRange::destination}}) {
        if ((taken.fields & static_cast<std::uint32_t>(field)) == 0) continue;
        AddressRange& at = middle.*part;
        const AddressRange& out = taken.*part;
        if (at.first < out.first) {
            KeyRange before = middle;
            (before.*part).last = out.first - 1;
            if (!changes_family(range.*part, before.*part)) rest.push_back(before);
            at.first = out.first;
        }
        if (at.last > out.last) {
            KeyRange behind = middle;
            (behind.*part).first = out.last + 1;
            if (!changes_family(range.*part, behind.*part)) rest.push_back(behind);
            at.last = out.last;
        }
    }
}

bool is_one_key(const KeyRange& range, std::uint32_t fields) {
    return range.fields == fields && range.source.first == range.source.last &&
           range.destination.first == range.destination.last;
}

sieve_key first_key_of(const KeyRange& range) {
    sieve_key key{};
    set_address(key.word, range.source.first);
    set_address(key.word + 2, range.destination.first);
    key.word[4] = range.transport;
    return key;
}

Result<Subtracted> subtract_keys(Members& list, const Members& taken) {
    const std::uint32_t fields = list.fields();
    std::vector<sieve_key> exact;
    std::vector<KeyRange> boxes = taken.key_ranges;
    for (std::size_t i = 0; i < taken.keys.size(); i++) exact.push_back(taken.keys.at(i));
    const auto less = [](const sieve_key& a, const sieve_key& b) {
        return std::lexicographical_compare(std::begin(a.word), std::end(a.word), std::begin(b.word),
                                            std::end(b.word));
    };
    std::sort(exact.begin(), exact.end(), less);
    Subtracted done;
    done.keys = remove_keys(list.keys, [&](const sieve_key& key) {
        if (std::binary_search(exact.begin(), exact.end(), key, less)) return true;
        const KeyRange one = range_of_key(key, fields);
        return std::any_of(taken.key_ranges.begin(), taken.key_ranges.end(),
                           [&](const KeyRange& range) { return overlap(one, range); });
    });
    for (const sieve_key& key : exact) boxes.push_back(range_of_key(key, fields));
    std::vector<KeyRange> kept;
    for (const KeyRange& range : list.key_ranges) {
        std::vector<KeyRange> pieces{range};
        for (const KeyRange& box : boxes) {
            if (!overlap(range, box)) continue;
            std::vector<KeyRange> rest;
            for (const KeyRange& piece : pieces) {
                if (!overlap(piece, box)) {
                    rest.push_back(piece);
                    continue;
                }
                if ((box.fields & ~piece.fields) != 0)
                    return bad_input("an exception names a field that an entry of the list leaves open with "
                                     "*; put such exceptions into a set of their own in front");
                cut(piece, box, rest);
            }
            pieces = std::move(rest);
        }
        if (pieces.size() != 1 || pieces.front() != range) done.ranges++;
        for (const KeyRange& piece : pieces) {
            if (is_one_key(piece, fields))
                list.keys.add(first_key_of(piece));
            else
                kept.push_back(piece);
        }
    }
    list.key_ranges = std::move(kept);
    return done;
}

bool less(const sieve_exception& a, const sieve_exception& b) {
    const auto words = [](const sieve_exception& e) {
        return std::tuple(e.key.word[0], e.key.word[1], e.key.word[2], e.key.word[3], e.key.word[4],
                          e.bits.source, e.bits.destination, e.bits.transport);
    };
    return words(a) < words(b);
}

bool equal(const sieve_exception& a, const sieve_exception& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// All addresses that begin with these bits of a number.
AddressRange range_of_prefix(uint128 first, std::uint32_t length) {
    if (length == 0) return {0, last_address};
    return {first, first | (length == address_bits ? 0 : last_address >> length)};
}

} // namespace

Result<Subtracted> subtract(Members& list, const Members& taken) {
    if (sieve_is_one_address(list.fields())) return subtract_addresses(list, taken);
    return subtract_keys(list, taken);
}

std::vector<sieve_exception> prefixes_of(const Members& members) {
    const std::uint32_t fields = members.fields();
    const auto transport = static_cast<__u8>(fields & SIEVE_FIELD_TRANSPORT);
    std::vector<sieve_exception> lines;
    if (sieve_is_one_address(fields)) {
        std::vector<AddressRange> by_family[SIEVE_FAMILIES];
        collect_addresses(members, by_family);
        const int word = sieve_address_word(fields);
        for (const auto& ranges : by_family)
            for (const AddressRange& range : ranges)
                split_into_prefixes(range, [&](uint128 first, std::uint32_t length) {
                    sieve_exception line{};
                    set_address(line.key.word + word, first);
                    (word == 0 ? line.bits.source : line.bits.destination) = static_cast<__u8>(length);
                    lines.push_back(line);
                });
    } else {
        for (std::size_t i = 0; i < members.keys.size(); i++) {
            sieve_exception line{};
            line.key = members.keys.at(i);
            line.bits.source = (fields & SIEVE_FIELD_SRC) != 0 ? address_bits : 0;
            line.bits.destination = (fields & SIEVE_FIELD_DST) != 0 ? address_bits : 0;
            line.bits.transport = transport;
            lines.push_back(line);
        }
        for (const KeyRange& range : members.key_ranges)
            for_each_prefix(range, [&](const auto& line) { lines.push_back(line); });
    }
    std::sort(lines.begin(), lines.end(), less);
    lines.erase(std::unique(lines.begin(), lines.end(), equal), lines.end());
    return lines;
}

void for_each_prefix(const KeyRange& range, const std::function<void(const sieve_exception&)>& visit) {
    sieve_exception line{};
    line.key.word[4] = range.transport;
    line.bits.transport = static_cast<__u8>(range.fields & SIEVE_FIELD_TRANSPORT);
    // Of all addresses of IPv6 the two halves, since the length 0 means any address.
    const auto split = [](const AddressRange& addresses, const auto& part) {
        constexpr uint128 half = uint128{1} << (address_bits - 1);
        if (addresses != AddressRange{0, last_address}) return split_into_prefixes(addresses, part);
        part(uint128{0}, 1U);
        part(half, 1U);
    };
    const auto of_source = [&](uint128 first, std::uint32_t length) {
        set_address(line.key.word, first);
        line.bits.source = static_cast<__u8>(length);
        if ((range.fields & SIEVE_FIELD_DST) == 0) return visit(line);
        split(range.destination, [&](uint128 at, std::uint32_t bits) {
            set_address(line.key.word + 2, at);
            line.bits.destination = static_cast<__u8>(bits);
            visit(line);
        });
    };
    if ((range.fields & SIEVE_FIELD_SRC) == 0)
        of_source(0, 0);
    else
        split(range.source, of_source);
}

Members members_of(std::span<const sieve_exception> prefixes, std::uint32_t fields) {
    Members members(fields);
    for (const sieve_exception& line : prefixes) {
        const AddressRange source = range_of_prefix(source_of(line.key), line.bits.source);
        const AddressRange destination = range_of_prefix(destination_of(line.key), line.bits.destination);
        if (sieve_is_one_address(fields))
            members.ranges.push_back(fields == SIEVE_FIELD_SRC ? source : destination);
        else
            members.key_ranges.push_back(
                {.source = source,
                 .destination = destination,
                 .transport = line.key.word[4],
                 .fields = line.bits.transport |
                           (line.bits.source != 0 ? std::uint32_t{SIEVE_FIELD_SRC} : 0) |
                           (line.bits.destination != 0 ? std::uint32_t{SIEVE_FIELD_DST} : 0)});
    }
    return members;
}

} // namespace sieve
