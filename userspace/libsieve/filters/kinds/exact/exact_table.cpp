// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_table.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include <fmt/core.h>

#include "libsieve/filters/kinds/exact/exact_geometry.hpp"
#include "libsieve/filters/kinds/exact/exact_ipv4.hpp"
#include "libsieve/filters/kinds/exact/exact_ipv6.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve::exact {

namespace {

// Draws before the table grows, and how often it does. One draw in a hundred fails for the smallest tables,
// hardly any for larger ones.
constexpr int draws_of_a_size = 8;
constexpr int most_sizes = 64;

// All secrets of a build, from as many bits as a build draws.
std::mt19937_64 secrets_of(std::span<const __u64, SIEVE_HASH_KEY_WORDS> secret) {
    std::array<std::uint32_t, 2 * SIEVE_HASH_KEY_WORDS> halves{};
    for (std::size_t i = 0; i < secret.size(); i++) {
        halves[2 * i] = static_cast<std::uint32_t>(secret[i]);
        halves[2 * i + 1] = static_cast<std::uint32_t>(secret[i] >> 32);
    }
    std::seed_seq seed(halves.begin(), halves.end());
    return std::mt19937_64(seed);
}

template <class Address>
uint128 number_of(Address address) {
    if constexpr (sizeof(Address) == sizeof(std::uint32_t))
        return sieve_v4_mapped(address);
    else
        return address;
}

template <class Address>
HashSum sum_of_list(const sieve_lookup& lookup, std::span<const Address> addresses) {
    constexpr std::size_t portion = 1U << 14;
    std::vector<HashSum> sums((addresses.size() + portion - 1) / portion);
    for_each_index(sums.size(), [&](std::size_t i) {
        const std::size_t last = std::min(addresses.size(), (i + 1) * portion);
        HashSum sum;
        for (std::size_t at = i * portion; at < last; at++)
            sum += sum_of_key(lookup, number_of(addresses[at]));
        sums[i] = sum;
    });
    HashSum all;
    for (const HashSum& sum : sums) all += sum;
    return all;
}

// Calls attempt(lines), which draws secrets and says whether all addresses found room, for as many lines as
// it takes.
template <class Attempt>
Status find_room(std::uint64_t lines, const Attempt& attempt) {
    for (int size = 0; size < most_sizes; size++, lines += 1 + lines / 128)
        for (int draw = 0; draw < draws_of_a_size; draw++)
            if (attempt(lines)) return {};
    return bad_input(fmt::format("no room for the keys in {} lines under {} draws of secrets, which has "
                                 "practically no chance; report it if it happens twice",
                                 lines, most_sizes * draws_of_a_size));
}

// Calls build(keys) with the number of addresses. If so many of them turn out to be repeated that the table
// is noticeably too large, calls it once more, with the number of those that are not.
template <class Address, class Build, class LinesFor>
Status build_for_distinct(std::size_t addresses, const std::vector<Address>& repeated,
                          const LinesFor& lines_of, const Build& build) {
    SIEVE_TRY(build(addresses));
    const std::uint64_t distinct = addresses - repeated.size();
    if (lines_of(distinct) + lines_of(addresses) / 64 >= lines_of(addresses)) return {};
    return build(distinct);
}

struct Ipv4Part {
    sieve_exact geometry{};
    HugeArray<sieve_line> lines{};
    std::vector<std::uint32_t> repeated{};
};

Result<Ipv4Part> build_ipv4(const Addresses& all, std::uint32_t value_bits, std::mt19937_64& random) {
    Ipv4Part part;
    const std::span<const std::uint32_t> addresses = all.ipv4;
    const std::uint32_t other_bits = value_bits + all.marks;
    const auto shape_of = [&](std::uint64_t keys) { return best_shape(keys + all.ipv4_room, other_bits); };
    const auto lines_of = [&](std::uint64_t keys) {
        return lines_for(shape_of(keys), keys + all.ipv4_room, other_bits);
    };
    SIEVE_TRY(build_for_distinct(addresses.size(), part.repeated, lines_of, [&](std::uint64_t keys) {
        return find_room(lines_of(keys), [&](std::uint64_t lines) {
            part.repeated.clear();
            part.geometry = geometry_of(shape_of(keys), lines, value_bits, all.marks);
            draw_secrets(part.geometry, random);
            part.lines = HugeArray<sieve_line>(lines);
            const std::span<__u64> words(part.lines[0].word, lines * SIEVE_LINE_WORDS);
            std::fill(words.begin(), words.end(), Lanes(part.geometry).empty_word());
            return place_all(part.geometry, words, addresses, all.ipv4_values, part.repeated);
        });
    }));
    return part;
}

struct Ipv6Part {
    sieve_exact_ipv6 header{};
    HugeArray<sieve_line> lines{};
    std::vector<uint128> repeated{};
};

Result<Ipv6Part> build_ipv6(std::span<const uint128> addresses, std::span<const std::uint16_t> values,
                            std::uint64_t room, std::uint32_t value_bits, std::mt19937_64& random) {
    Ipv6Part part;
    if (addresses.empty()) return part;
    const auto lines_of = [room](std::uint64_t keys) { return ipv6_lines_for(keys + room); };
    SIEVE_TRY(build_for_distinct(addresses.size(), part.repeated, lines_of, [&](std::uint64_t keys) {
        return find_room(lines_of(keys), [&](std::uint64_t lines) {
            part.repeated.clear();
            part.header.lines = static_cast<__u32>(lines);
            draw_secrets(part.header, random);
            const std::uint64_t all = lines + value_lines_for(lines, value_bits);
            part.lines = HugeArray<sieve_line>(all);
            return place_all(part.header, {part.lines.data(), all}, addresses, values, part.repeated);
        });
    }));
    return part;
}

} // namespace

std::uint64_t table_lines(std::uint64_t ipv4, std::uint64_t ipv6, std::uint32_t value_bits,
                          std::uint32_t marks) {
    const std::uint64_t ipv6_lines = ipv6_lines_for(ipv6);
    const std::uint32_t other_bits = value_bits + marks;
    return SIEVE_EXACT_IPV4_LINE + lines_for(best_shape(ipv4, other_bits), ipv4, other_bits) + ipv6_lines +
           value_lines_for(ipv6_lines, value_bits);
}

HashSum sum_of_key(const sieve_lookup& lookup, uint128 address) {
    sieve_key key{};
    const int word = sieve_address_word(lookup.fields);
    key.word[word] = static_cast<std::uint64_t>(address >> 64);
    key.word[word + 1] = static_cast<std::uint64_t>(address);
    const sieve_hash hash = sieve_hash_key(&key, lookup.hash_key, lookup.fields);
    return {.locate = hash.locate, .test = hash.test};
}

Result<Table> build_table(const Addresses& addresses, std::uint32_t fields,
                          std::span<const __u64, SIEVE_HASH_KEY_WORDS> secret, const Values& values) {
    constexpr std::uint64_t most_lines = std::numeric_limits<std::uint32_t>::max() / SIEVE_LINE_WORDS;
    const std::uint64_t ipv4_most = addresses.ipv4.size() + addresses.ipv4_room;
    const std::uint64_t ipv6_most = addresses.ipv6.size() + addresses.ipv6_room;
    if (table_lines(ipv4_most, ipv6_most, values.bits, addresses.marks) > most_lines)
        return invalid_request(fmt::format("{} addresses are more than a filter of kind exact holds",
                                           addresses.ipv4.size() + addresses.ipv6.size()));
    std::mt19937_64 random = secrets_of(secret);
    SIEVE_ASSIGN(const Ipv4Part ipv4, build_ipv4(addresses, values.bits, random));
    SIEVE_ASSIGN(const Ipv6Part ipv6,
                 build_ipv6(addresses.ipv6, addresses.ipv6_values, addresses.ipv6_room, values.bits, random));

    Table table;
    const std::uint64_t lines = SIEVE_EXACT_IPV4_LINE + ipv4.lines.size() + ipv6.lines.size();
    table.geometry = ipv4.geometry;
    table.geometry.kind = SIEVE_KIND_EXACT;
    table.geometry.fields = static_cast<__u8>(fields);
    table.geometry.lines = static_cast<__u32>(lines);
    table.lines = HugeArray<sieve_line>(lines);
    auto& line = reinterpret_cast<sieve_exact_ipv6&>(table.lines[0]);
    line = ipv6.header;
    line.meaning = static_cast<__u8>(values.meaning);
    line.unit = static_cast<__u8>(values.unit);
    line.base = values.base;
    line.sets = static_cast<__u8>(values.sets);
    sieve_line* at = std::copy(ipv4.lines.begin(), ipv4.lines.end(), &table.lines[SIEVE_EXACT_IPV4_LINE]);
    std::copy(ipv6.lines.begin(), ipv6.lines.end(), at);

    table.keys = addresses.ipv4.size() - ipv4.repeated.size() + addresses.ipv6.size() - ipv6.repeated.size();
    const auto& lookup = reinterpret_cast<const sieve_lookup&>(table.geometry);
    table.sum = sum_of_list(lookup, addresses.ipv4);
    table.sum += sum_of_list(lookup, addresses.ipv6);
    table.sum -= sum_of_list(lookup, std::span(ipv4.repeated));
    table.sum -= sum_of_list(lookup, std::span(ipv6.repeated));
    return table;
}

} // namespace sieve::exact
