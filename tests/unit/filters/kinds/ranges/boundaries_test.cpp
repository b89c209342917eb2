// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/ranges/boundaries.hpp"

#include <gtest/gtest.h>

namespace sieve::ranges {
namespace {

uint128 v4(std::uint32_t address) {
    return sieve_v4_mapped(address);
}

SetBoundaries parts(std::vector<AddressRange> list) {
    return boundaries_of(address_set_of(std::move(list)));
}

TEST(RangesBoundaries, AreWhereMembershipFlips) {
    const SetBoundaries p = parts({{v4(10), v4(19)}, {v4(20), v4(29)}, {v4(40), v4(40)}});
    EXPECT_FALSE(p.ipv4.begins_inside);
    EXPECT_EQ(p.ipv4.at, (std::vector<std::uint32_t>{10, 30, 40, 41}));
    EXPECT_TRUE(p.ipv6.at.empty());
    EXPECT_TRUE(p.fine.at.empty());
}

TEST(RangesBoundaries, HaveNoneAtTheEndsOfTheSpace) {
    const SetBoundaries all = parts({{v4(0), v4(0xffffffff)}, {0, ~uint128{0}}});
    EXPECT_TRUE(all.ipv4.begins_inside);
    EXPECT_TRUE(all.ipv4.at.empty());
    EXPECT_TRUE(all.ipv6.begins_inside);
    EXPECT_TRUE(all.ipv6.at.empty());
    const SetBoundaries ends = parts({{v4(0), v4(0)}, {v4(0xffffffff), v4(0xffffffff)}});
    EXPECT_TRUE(ends.ipv4.begins_inside);
    EXPECT_EQ(ends.ipv4.at, (std::vector<std::uint32_t>{1, 0xffffffff}));
}

// A range that begins and ends within /64s, and whole /64s in between.
TEST(RangesBoundaries, CutIpv6IntoWholeAndFine) {
    const SetBoundaries p = parts({{address_number(5, 7), address_number(9, 3)}});
    EXPECT_EQ(p.ipv6.at, (std::vector<std::uint64_t>{6, 9}));
    EXPECT_EQ(p.fine.at, (std::vector<uint128>{address_number(5, 7), address_number(6, 0),
                                               address_number(9, 0), address_number(9, 4)}));
    const SetBoundaries whole = parts({{address_number(5, 0), address_number(5, ~0ULL)}});
    EXPECT_EQ(whole.ipv6.at, (std::vector<std::uint64_t>{5, 6}));
    EXPECT_TRUE(whole.fine.at.empty());
    const SetBoundaries within = parts({{address_number(5, 1), address_number(5, 1)}});
    EXPECT_TRUE(within.ipv6.at.empty());
    EXPECT_EQ(within.fine.at, (std::vector<uint128>{address_number(5, 1), address_number(5, 2)}));
}

// The end of one /64 and the beginning of the next are one piece of the fine part.
TEST(RangesBoundaries, JoinPiecesOfNeighbouringNetworks) {
    const SetBoundaries p = parts({{address_number(5, 7), address_number(6, 3)}});
    EXPECT_TRUE(p.ipv6.at.empty());
    EXPECT_EQ(p.fine.at, (std::vector<uint128>{address_number(5, 7), address_number(6, 4)}));
}

} // namespace
} // namespace sieve::ranges
