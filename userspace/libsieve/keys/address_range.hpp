// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Addresses as numbers, and ranges of them. A feed's prefixes and ranges have this form until they become
// keys.
#pragma once

#include <cstdint>

#include <sieve/key.h>

namespace sieve {

__extension__ using uint128 = unsigned __int128;

// A key's address as a 128-bit number (IPv4 in its v4-mapped form).
[[nodiscard]] constexpr uint128 address_number(std::uint64_t upper, std::uint64_t lower) {
    return static_cast<uint128>(upper) << 64 | lower;
}

// All addresses from `first` to `last`, inclusive. Both have the same family.
struct AddressRange {
    uint128 first = 0;
    uint128 last = 0;

    [[nodiscard]] friend constexpr bool operator==(const AddressRange&, const AddressRange&) = default;
};

// The range of all IPv4 addresses.
inline constexpr AddressRange all_ipv4{static_cast<uint128>(SIEVE_V4_MAPPED),
                                       static_cast<uint128>(SIEVE_V4_MAPPED) | 0xffffffff};

[[nodiscard]] constexpr bool is_ipv4(uint128 address) {
    return address >= all_ipv4.first && address <= all_ipv4.last;
}

} // namespace sieve
