// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Arithmetic of address ranges: merge, subtract, split into prefixes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include <sieve/prefix.h>

#include "libsieve/keys/address_range.hpp"

namespace sieve {

inline constexpr std::uint32_t address_bits = 128;
inline constexpr uint128 last_address = ~uint128{0};

// SIEVE_FAMILY_V4 if all addresses of the range are IPv4. An IPv6 range that includes the v4-mapped addresses
// does not mean IPv4, since a packet is asked only as one of its own family.
[[nodiscard]] int family_of(const AddressRange& range);

// The same addresses as ascending ranges that neither overlap nor touch.
[[nodiscard]] std::vector<AddressRange> merge_ranges(std::vector<AddressRange> ranges);

// Calls visit(AddressRange) for each part of `range` outside `taken`, which merge_ranges() returned.
template <class Visit>
void subtract_ranges(const AddressRange& range, const std::vector<AddressRange>& taken, const Visit& visit) {
    uint128 at = range.first;
    auto cut = std::partition_point(taken.begin(), taken.end(),
                                    [&](const AddressRange& t) { return t.last < range.first; });
    for (; cut != taken.end() && cut->first <= range.last; ++cut) {
        if (cut->first > at) visit(AddressRange{at, cut->first - 1});
        if (cut->last >= range.last) return;
        at = cut->last + 1;
    }
    visit(AddressRange{at, range.last});
}

// Whether one of these ranges, which merge_ranges() returned, holds the address.
[[nodiscard]] bool holds_address(const std::vector<AddressRange>& merged, uint128 address);

// The number of zeros at the end of a number other than zero.
[[nodiscard]] constexpr std::uint32_t trailing_zeros(uint128 number) {
    const auto lower = static_cast<std::uint64_t>(number);
    if (lower != 0) return static_cast<std::uint32_t>(std::countr_zero(lower));
    return 64 + static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(number >> 64)));
}

// The fewest prefixes that make up a range, in ascending order: visit(first address, length). Of a range of
// IPv6, none has v4-mapped addresses alone: that would be a prefix of IPv4.
template <class Visit>
void split_into_prefixes(const AddressRange& range, const Visit& visit) {
    const bool ipv4 = family_of(range) == SIEVE_FAMILY_V4;
    for (uint128 at = range.first;;) {
        // The largest aligned prefix that starts here and does not go beyond the range.
        std::uint32_t host = at == 0 ? address_bits : trailing_zeros(at);
        while (host > 0 && (host == address_bits ? last_address : (uint128{1} << host) - 1) > range.last - at)
            host--;
        if (ipv4 || !is_ipv4(at)) visit(at, address_bits - host);
        const uint128 end = at + (host == address_bits ? last_address : (uint128{1} << host) - 1);
        if (end == range.last) return;
        at = end + 1;
    }
}

} // namespace sieve
