// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/routing_table.hpp"

#include <array>
#include <random>

namespace sieve::bench {

namespace {

// Prefixes of each length for 10,000 of the table. docs/prefixes.md says where the shares come from.
struct Share {
    std::uint32_t length;
    double of_10000;
};
constexpr std::array<Share, 17> ipv4_shares = {{{8, 0.2},
                                                {9, 0.1},
                                                {10, 0.4},
                                                {11, 1},
                                                {12, 3},
                                                {13, 6},
                                                {14, 12},
                                                {15, 21},
                                                {16, 140},
                                                {17, 86},
                                                {18, 145},
                                                {19, 265},
                                                {20, 470},
                                                {21, 560},
                                                {22, 1150},
                                                {23, 1040},
                                                {24, 6100}}};
constexpr std::array<Share, 12> ipv6_shares = {{{20, 2},
                                                {28, 30},
                                                {29, 250},
                                                {32, 1100},
                                                {33, 150},
                                                {34, 150},
                                                {36, 450},
                                                {40, 1200},
                                                {42, 150},
                                                {44, 1200},
                                                {46, 300},
                                                {48, 5018}}};
// The first 16 bits of the blocks from which the registries allocate.
constexpr std::array<std::uint64_t, 14> ipv6_blocks = {0x2001, 0x2400, 0x2402, 0x2404, 0x2406,
                                                       0x2600, 0x2602, 0x2604, 0x2804, 0x2a00,
                                                       0x2a02, 0x2a06, 0x2a0e, 0x2c0f};

template <std::size_t N>
std::uint32_t draw_length(const std::array<Share, N>& shares, std::mt19937_64& random) {
    double sum = 0;
    for (const Share& share : shares) sum += share.of_10000;
    double left = sum * static_cast<double>(random() >> 11) * 0x1p-53;
    for (const Share& share : shares)
        if ((left -= share.of_10000) < 0) return share.length;
    return shares.back().length;
}

} // namespace

std::vector<AddressRange> routing_table_ipv4(std::uint64_t count) {
    std::mt19937_64 random(count);
    std::vector<AddressRange> prefixes;
    for (std::uint64_t i = 0; i < count; i++) {
        const std::uint32_t host = ~std::uint32_t{0} >> draw_length(ipv4_shares, random);
        // 1.0.0.0 to 223.255.255.255
        const auto address = static_cast<std::uint32_t>((1U << 24) + random() % (std::uint64_t{223} << 24));
        prefixes.push_back({sieve_v4_mapped(address & ~host), sieve_v4_mapped(address | host)});
    }
    return prefixes;
}

std::vector<AddressRange> routing_table_ipv6(std::uint64_t count) {
    std::mt19937_64 random(count);
    std::vector<AddressRange> prefixes;
    for (std::uint64_t i = 0; i < count; i++) {
        const uint128 host = ~uint128{0} >> draw_length(ipv6_shares, random);
        const std::uint64_t block = ipv6_blocks[random() % ipv6_blocks.size()];
        // Blocks of 12 bits; those that begin with 2001 and 2c0f are of 16.
        const std::uint64_t below = block == 0x2001 || block == 0x2c0f ? 16 : 15;
        const std::uint64_t upper = block << 48 | (random() >> below);
        const uint128 address = address_number(upper, random());
        prefixes.push_back({address & ~host, address | host});
    }
    return prefixes;
}

} // namespace sieve::bench
