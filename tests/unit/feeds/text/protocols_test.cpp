// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/protocols.hpp"

#include <string>

#include <gtest/gtest.h>

namespace sieve {
namespace {

// The numbers are written out here, not taken from the header that the table is made from.
TEST(Protocols, CommonNamesHaveTheirNumbers) {
    struct {
        const char* name;
        int number;
    } const cases[] = {{"icmp", 1},   {"igmp", 2},      {"tcp", 6},    {"udp", 17},    {"dccp", 33},
                       {"gre", 47},   {"esp", 50},      {"ah", 51},    {"icmpv6", 58}, {"ospf", 89},
                       {"sctp", 132}, {"udplite", 136}, {"vrrp", 112}, {"l2tp", 115}};
    for (const auto& c : cases) {
        EXPECT_EQ(protocol_number(c.name), c.number) << c.name;
        EXPECT_EQ(protocol_name(static_cast<std::uint8_t>(c.number)), c.name);
    }
}

TEST(Protocols, CaseDoesNotMatterAndAliasesAreUnderstood) {
    EXPECT_EQ(protocol_number("TCP"), 6);
    EXPECT_EQ(protocol_number("IcmpV6"), 58);
    EXPECT_EQ(protocol_number("ipv6-icmp"), 58);
    EXPECT_EQ(protocol_number("icmp6"), 58);
}

TEST(Protocols, NonMembersHaveNeitherNameNorNumber) {
    EXPECT_EQ(protocol_number(""), -1);
    EXPECT_EQ(protocol_number("tc"), -1);
    EXPECT_EQ(protocol_number("tcpp"), -1);
    EXPECT_EQ(protocol_number("6"), -1);
    EXPECT_EQ(protocol_name(253), "");
}

TEST(Protocols, EveryNameThatIsPrintedIsReadBack) {
    int named = 0;
    for (int number = 0; number < 256; ++number) {
        const std::string_view name = protocol_name(static_cast<std::uint8_t>(number));
        if (name.empty()) continue;
        ++named;
        EXPECT_EQ(protocol_number(name), number) << name;
    }
    EXPECT_GE(named, 30);
}

} // namespace
} // namespace sieve
