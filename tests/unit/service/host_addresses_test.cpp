// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/host_addresses.hpp"

#include <gtest/gtest.h>

#include "libsieve/feeds/address_text.hpp"
#include "libsieve/feeds/key_text.hpp"

namespace sieve::service {
namespace {

std::vector<std::string> texts(const std::vector<HostAddress>& addresses) {
    std::vector<std::string> all;
    for (const HostAddress& address : addresses)
        all.push_back(format_address(static_cast<std::uint64_t>(address.address >> 64),
                                     static_cast<std::uint64_t>(address.address)));
    return all;
}

using Texts = std::vector<std::string>;

// The texts come from Linux 6.1 on a little-endian machine.
TEST(HostAddresses, GatewaysOfIpv4Routes) {
    const auto found = gateways_of_ipv4_routes(
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "eth0\t00000000\t0102A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "eth0\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n");
    EXPECT_EQ(texts(found), Texts{"192.168.2.1"});
    EXPECT_EQ(found[0].what, "a gateway of eth0");
}

TEST(HostAddresses, GatewaysOfIpv6Routes) {
    const auto found = gateways_of_ipv6_routes(
        "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
        "fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n"
        "20010db8000000000000000000000000 20 00000000000000000000000000000000 00 "
        "00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n");
    EXPECT_EQ(texts(found), Texts{"fe80::1"});
}

TEST(HostAddresses, Resolvers) {
    EXPECT_EQ(
        texts(resolvers_of("# comment\nsearch example\nnameserver 192.0.2.53\n nameserver fe80::1%eth0\n"
                           "nameserver\nnameserver nonsense\n")),
        (Texts{"192.0.2.53", "fe80::1"}));
}

TEST(HostAddresses, Administrators) {
    // Established to port 22; listening on port 22; established to port 80; our own connection to a port 22
    // elsewhere.
    const auto found = administrators_of(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 010200C0:0016 07006FCB:D431 01 00000000:00000000 02:000A7214 00000000     0        0 1 4\n"
        "   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1\n"
        "   2: 010200C0:0050 08006FCB:D431 01 00000000:00000000 02:000A7214 00000000     0        0 3 4\n"
        "   3: 010200C0:D431 09006FCB:0016 01 00000000:00000000 02:000A7214 00000000     0        0 4 4\n");
    EXPECT_EQ(texts(found), Texts{"203.111.0.7"});
    EXPECT_EQ(found[0].session_through, "") << "no address of this host is known";
    const auto local = parse_key("192.0.2.1", SIEVE_FIELD_SRC).value();
    const auto known =
        administrators_of("  sl header\n   0: 010200C0:0016 07006FCB:D431 01 0:0 2:0 0 0 0 1 4\n",
                          {{address_number(local.word[0], local.word[1]), "eth7"}});
    ASSERT_EQ(known.size(), 1U);
    EXPECT_EQ(known[0].session_through, "eth7");
    const auto six = administrators_of("   0: B80D0120000000000000000001000000:0016 "
                                       "B80D0120000000000000000002000000:8F1C 01 00000000:00000000 "
                                       "02:0009 00000000 0 0 5 2\n"
                                       "   1: 0000000000000000FFFF0000010200C0:0016 "
                                       "0000000000000000FFFF000007006FCB:8F1C 01 00000000:00000000 "
                                       "02:0009 00000000 0 0 6 2\n");
    EXPECT_EQ(texts(six), (Texts{"2001:db8::2", "203.111.0.7"}));
}

TEST(HostAddresses, WhatCannotBeUnderstoodIsLeftOut) {
    for (const char* text : {"", "\n\n", "a b c", "0: x y 01", "0: 1:0016 zz:1 01", "eth0 00000000 123"}) {
        EXPECT_TRUE(gateways_of_ipv4_routes(text).empty()) << text;
        EXPECT_TRUE(gateways_of_ipv6_routes(text).empty()) << text;
        EXPECT_TRUE(administrators_of(text).empty()) << text;
        EXPECT_TRUE(resolvers_of(text).empty()) << text;
    }
}

TEST(HostAddresses, ThisHostsCanBeRead) {
    EXPECT_TRUE(RealHostAddresses().read());
}

} // namespace
} // namespace sieve::service
