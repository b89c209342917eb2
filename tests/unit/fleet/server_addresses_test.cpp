// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/node/server_addresses.hpp"

#include <gtest/gtest.h>

namespace sieve::fleet {
namespace {

TEST(ServerAddressesTest, AreThoseOfUrlsWithTheirPorts) {
    ServerAddresses servers({"http://192.0.2.7:2379", "https://[2001:db8::1]/blobs", "https://[2001:db8::1]",
                             "http://127.0.0.1:8080", "http://[::1]:8080", "nonsense"});
    const std::vector<ServerAddress> expected = {
        {static_cast<uint128>(SIEVE_V4_MAPPED) | 0xc0000207, 2379},
        {address_number(0x20010db800000000, 1), 443},
    };
    EXPECT_EQ(servers.look_up(), expected);
}

} // namespace
} // namespace sieve::fleet
