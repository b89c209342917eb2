// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/keys/members.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/keys/address_ranges.hpp"

namespace sieve {
namespace {

// A small world: addresses 10.0.0.0 to 10.0.0.15, ports 0 to 3. Every key of it can be tried.
constexpr std::uint32_t world = 0x0a000000;
constexpr std::uint32_t fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DST | SIEVE_FIELD_DPORT;

uint128 address(std::uint32_t i) {
    return sieve_v4_mapped(world + i);
}

bool holds(const KeyRange& range, std::uint32_t source, std::uint32_t destination, std::uint32_t port) {
    const auto inside = [](const AddressRange& r, std::uint32_t i) {
        return address(i) >= r.first && address(i) <= r.last;
    };
    return ((range.fields & SIEVE_FIELD_SRC) == 0 || inside(range.source, source)) &&
           ((range.fields & SIEVE_FIELD_DST) == 0 || inside(range.destination, destination)) &&
           ((range.fields & SIEVE_FIELD_DPORT) == 0 || range.transport == std::uint64_t{port} << 8);
}

bool holds(const Members& members, std::uint32_t source, std::uint32_t destination, std::uint32_t port) {
    for (std::size_t i = 0; i < members.keys.size(); i++) {
        const sieve_key key = members.keys.at(i);
        if (key.word[1] == address(source) && key.word[3] == address(destination) &&
            key.word[4] == std::uint64_t{port} << 8)
            return true;
    }
    return std::any_of(members.key_ranges.begin(), members.key_ranges.end(),
                       [&](const KeyRange& range) { return holds(range, source, destination, port); });
}

AddressRange random_range(std::mt19937& random) {
    const std::uint32_t a = random() % 16;
    const std::uint32_t b = random() % 16;
    return {address(std::min(a, b)), address(std::max(a, b))};
}

Members random_members(std::mt19937& random, bool open_port) {
    Members members(fields);
    for (std::uint32_t i = random() % 20; i > 0; i--) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(world + random() % 16);
        key.word[3] = sieve_v4_mapped(world + random() % 16);
        key.word[4] = std::uint64_t{random() % 4} << 8;
        members.keys.add(key);
    }
    for (std::uint32_t i = 1 + random() % 5; i > 0; i--) {
        KeyRange range{.source = random_range(random), .destination = random_range(random), .fields = fields};
        range.transport = std::uint64_t{random() % 4} << 8;
        if (open_port) {
            range.fields &= ~std::uint32_t{SIEVE_FIELD_DPORT};
            range.transport = 0;
        }
        members.key_ranges.push_back(range);
    }
    return members;
}

// Subtraction leaves exactly the keys that are in the one list and not in the other.
TEST(Members, SubtractLeavesTheOthers) {
    std::mt19937 random(1);
    for (int round = 0; round < 200; round++) {
        const Members before = random_members(random, round % 3 == 0);
        Members taken = random_members(random, round % 3 == 0 || round % 2 == 0);
        if (round % 3 == 0) taken.keys.clear(); // a key names the port, which the ranges leave open
        Members after = before;
        ASSERT_TRUE(subtract(after, taken));
        for (std::uint32_t s = 0; s < 16; s++)
            for (std::uint32_t d = 0; d < 16; d++)
                for (std::uint32_t p = 0; p < 4; p++)
                    ASSERT_EQ(holds(after, s, d, p), holds(before, s, d, p) && !holds(taken, s, d, p))
                        << s << ' ' << d << ' ' << p;
    }
}

TEST(Members, SubtractRefusesToSplitAnOpenField) {
    Members list(fields);
    list.key_ranges.push_back({.source = {address(0), address(3)},
                               .destination = {address(0), address(0)},
                               .fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DST});
    Members taken(fields);
    taken.keys.add(parse_key("10.0.0.1 10.0.0.0 443", fields).value());
    EXPECT_FALSE(subtract(list, taken));
    Members elsewhere(fields);
    elsewhere.keys.add(parse_key("10.0.0.4 10.0.0.0 443", fields).value());
    EXPECT_TRUE(subtract(list, elsewhere));
}

// An IPv6 range around the v4-mapped addresses means none of them.
TEST(Members, SubtractKeepsFamiliesApart) {
    const auto members = [](const std::vector<std::string>& texts) {
        Members list(fields);
        for (const std::string& text : texts) add_member(parse_member(text, fields).value(), list);
        return list;
    };
    const std::vector<std::string> ipv4{"10.0.0.0/8 * 443", "10.0.0.1 10.0.0.2 443"};
    const std::vector<std::string> ipv6{"::/0 * 443", "::1 ::2 443"};
    for (const auto& [one, other] : {std::pair(ipv4, ipv6), std::pair(ipv6, ipv4)}) {
        Members list = members(one);
        const auto taken = subtract(list, members({other[0]}));
        ASSERT_TRUE(taken) << taken.error().message;
        EXPECT_EQ(taken->keys + taken->ranges, 0U);
        EXPECT_EQ(list.key_ranges, members(one).key_ranges);
        EXPECT_TRUE(subtract(list, members({one[0]})));
        EXPECT_TRUE(list.empty());
    }
}

// What is left of such a range may be just the v4-mapped addresses, which it never meant.
TEST(Members, SubtractMakesNoIPv4OfIPv6) {
    const std::vector<std::string> around{"::/33", "::fffe:0:0/96", "::1:0:0:0/80"};
    Members addresses(SIEVE_FIELD_SRC);
    addresses.ranges.push_back(parse_member("::/80", SIEVE_FIELD_SRC).value().range.value());
    Members taken(SIEVE_FIELD_SRC);
    for (const char* text : {"::/97", "::8000:0:0/97", "::fffe:0:0/96"})
        add_member(parse_member(text, SIEVE_FIELD_SRC).value(), taken);
    ASSERT_TRUE(subtract(addresses, taken));
    for (const AddressRange& range : addresses.ranges) EXPECT_EQ(family_of(range), SIEVE_FAMILY_V6);
    constexpr std::uint32_t flow = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    Members flows(flow);
    add_member(parse_member("::/80 443", flow).value(), flows);
    Members out(flow);
    for (const char* text : {"::/81 443", "::fffe:0:0/96 443"})
        add_member(parse_member(text, flow).value(), out);
    ASSERT_TRUE(subtract(flows, out));
    for (const KeyRange& range : flows.key_ranges) EXPECT_EQ(family_of(range.source), SIEVE_FAMILY_V6);
}

// A range of which one key is left is that key.
TEST(Members, SubtractMakesKeysOfSingleAddresses) {
    Members list(SIEVE_FIELD_SRC);
    add_member(parse_member("203.0.112.0/23", SIEVE_FIELD_SRC).value(), list);
    Members taken(SIEVE_FIELD_SRC);
    add_member(parse_member("203.0.112.1", SIEVE_FIELD_SRC).value(), taken);
    ASSERT_TRUE(subtract(list, taken));
    ASSERT_EQ(list.keys.size(), 1U);
    EXPECT_EQ(format_key(list.keys.at(0), SIEVE_FIELD_SRC), "203.0.112.0");
    ASSERT_EQ(list.ranges.size(), 1U);
    EXPECT_LT(list.ranges[0].first, list.ranges[0].last);

    Members flows(fields);
    add_member(parse_member("10.0.0.0/31 10.0.0.1 443", fields).value(), flows);
    Members out(fields);
    add_member(parse_member("10.0.0.1 10.0.0.1 443", fields).value(), out);
    ASSERT_TRUE(subtract(flows, out));
    ASSERT_EQ(flows.keys.size(), 1U);
    EXPECT_EQ(format_key(flows.keys.at(0), fields), "10.0.0.0 10.0.0.1 443");
    EXPECT_TRUE(flows.key_ranges.empty());
}

// Prefixes and back: the same keys.
TEST(Members, PrefixesHoldTheSameKeys) {
    std::mt19937 random(2);
    for (int round = 0; round < 100; round++) {
        const Members before = random_members(random, round % 2 == 0);
        const Members after = members_of(prefixes_of(before), fields);
        for (std::uint32_t s = 0; s < 16; s++)
            for (std::uint32_t d = 0; d < 16; d++)
                for (std::uint32_t p = 0; p < 4; p++)
                    ASSERT_EQ(holds(after, s, d, p), holds(before, s, d, p));
    }
}

} // namespace
} // namespace sieve
