// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/values/listen_address.hpp"

#include <gtest/gtest.h>

namespace sieve::service {
namespace {

TEST(ListenAddress, HasAddressAndPort) {
    EXPECT_EQ(parse_listen_address("127.0.0.1:19273"), (ListenAddress{"127.0.0.1", 19273}));
    EXPECT_EQ(parse_listen_address("0.0.0.0:65535"), (ListenAddress{"0.0.0.0", 65535}));
    EXPECT_EQ(parse_listen_address("[::1]:1"), (ListenAddress{"::1", 1}));
    EXPECT_EQ(parse_listen_address("[2001:db8::2]:80"), (ListenAddress{"2001:db8::2", 80}));
}

TEST(ListenAddress, IsNothingElse) {
    using namespace std::string_view_literals;
    for (const std::string_view text : {""sv,
                                        ":"sv,
                                        "19273"sv,
                                        ":19273"sv,
                                        "127.0.0.1"sv,
                                        "127.0.0.1:"sv,
                                        "127.0.0.1:0"sv,
                                        "127.0.0.1:65536"sv,
                                        "127.0.0.1:-1"sv,
                                        "127.0.0.1:+1"sv,
                                        "127.0.0.1: 1"sv,
                                        "127.0.0.1:1 "sv,
                                        "127.1:80"sv,
                                        "*:80"sv,
                                        "localhost:80"sv,
                                        "::1:80"sv,
                                        "[::1]"sv,
                                        "[127.0.0.1]:80"sv,
                                        "[]:80"sv,
                                        "[::1]80"sv,
                                        "[::1\0]:80"sv,
                                        "127.0.0.1\0:80"sv,
                                        "[fe80::1%eth0]:80"sv})
        EXPECT_FALSE(parse_listen_address(text)) << text;
}

} // namespace
} // namespace sieve::service
