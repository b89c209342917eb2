// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The IPv6 part of a table (sieve/exact_table.h): whole addresses, four to a line, each in one of its two
// lines.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include <sieve/exact_table.h>

#include "libsieve/keys/address_range.hpp"

namespace sieve::exact {

/// The place of a line that holds no address.
inline constexpr uint128 no_address = static_cast<uint128>(SIEVE_V4_MAPPED);

/// `marks`: 1 in a table with marks; the address is then what it is without its mark.
[[nodiscard]] inline uint128 address_at(const sieve_line& line, int place, std::uint32_t marks = 0) {
    const std::uint64_t upper = line.word[place];
    return address_number(marks != 0 ? sieve_exact_unmarked(upper) : upper,
                          line.word[place + SIEVE_EXACT_IPV6_WAYS]);
}
/// Whether a table with marks can hold the address.
[[nodiscard]] inline bool can_be_marked(uint128 address) {
    const auto upper = static_cast<std::uint64_t>(address >> 64);
    return sieve_exact_unmarked(upper) == upper;
}
/// Whether the place's address is marked, in a table with marks.
[[nodiscard]] inline bool is_marked(const sieve_line& line, int place) {
    return sieve_exact_unmarked(line.word[place]) != line.word[place];
}
inline void put_address(sieve_line& line, int place, uint128 address) {
    line.word[place] = static_cast<std::uint64_t>(address >> 64);
    line.word[place + SIEVE_EXACT_IPV6_WAYS] = static_cast<std::uint64_t>(address);
}
[[nodiscard]] inline sieve_exact_lines lines_of(const sieve_exact_ipv6& part, uint128 address) {
    return sieve_exact_locate_ipv6(&part, static_cast<std::uint64_t>(address >> 64),
                                   static_cast<std::uint64_t>(address));
}

/// The value of a place, in the lines of values.
[[nodiscard]] inline std::uint32_t value_at(std::span<const sieve_line> values, std::uint32_t line,
                                            int place) {
    const std::uint64_t word = values[line / SIEVE_LINE_WORDS].word[sieve_exact_value_index(line)];
    return static_cast<std::uint16_t>(word >> (SIEVE_EXACT_MOST_VALUE_BITS * place));
}
[[nodiscard]] inline __u64& values_of(std::span<sieve_line> values, std::uint32_t line) {
    return values[line / SIEVE_LINE_WORDS].word[sieve_exact_value_index(line)];
}
[[nodiscard]] inline std::uint64_t with_value(std::uint64_t word, int place, std::uint32_t value) {
    const int shift = SIEVE_EXACT_MOST_VALUE_BITS * place;
    return (word & ~(std::uint64_t{0xffff} << shift)) | std::uint64_t{value} << shift;
}
inline void put_value(std::span<sieve_line> values, std::uint32_t line, int place, std::uint32_t value) {
    __u64& word = values_of(values, line);
    word = with_value(word, place, value);
}

/// The lines that so many addresses take; 0 for none.
[[nodiscard]] std::uint64_t ipv6_lines_for(std::uint64_t addresses);
/// The lines that the values of so many lines of addresses take.
[[nodiscard]] constexpr std::uint64_t value_lines_for(std::uint64_t lines, std::uint32_t value_bits) {
    return value_bits > 0 ? (lines + SIEVE_LINE_WORDS - 1) / SIEVE_LINE_WORDS : 0;
}

/// Draws the secrets of the IPv6 part.
void draw_secrets(sieve_exact_ipv6& part, std::mt19937_64& random);

/// Places all addresses, none of which is of IPv4, in the part's lines: those of the addresses, then those of
/// the values, if there are any. `values` has the value of each address; it is empty if all are 0. Adds the
/// addresses that were listed before, whose first value counts, to `repeated`. False: there is no room for
/// all.
[[nodiscard]] bool place_all(const sieve_exact_ipv6& part, std::span<sieve_line> lines,
                             std::span<const uint128> addresses, std::span<const std::uint16_t> values,
                             std::vector<uint128>& repeated);

} // namespace sieve::exact
