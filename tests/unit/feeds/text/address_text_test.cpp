// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/address_text.hpp"

#include <arpa/inet.h>
#include <endian.h>

#include <array>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

namespace sieve {
namespace {

struct Case {
    std::uint64_t upper;
    std::uint64_t lower;
    const char* text;
};

TEST(AddressText, WritesWhatRfc5952Asks) {
    for (const Case& c : {
             Case{0, 0, "::"},
             Case{0, 1, "::1"},
             Case{0, 0xffff'0102'0304, "1.2.3.4"},
             Case{0, 0xffff'0000'0000, "0.0.0.0"},
             Case{0, 0x0001'0102'0304, "::1:102:304"},
             Case{0, 0x0102'0304, "::102:304"},
             Case{1, 0xffff'0102'0304, "::1:0:ffff:102:304"},
             Case{0x2001'0db8'0000'0000, 0, "2001:db8::"},
             Case{0x2001'0db8'0000'0000, 0x0000'0000'0002'0001, "2001:db8::2:1"},
             Case{0x2001'0db8'0000'0001, 0x0001'0001'0001'0001, "2001:db8:0:1:1:1:1:1"}, // a lone zero stays
             Case{0x2001'0000'0000'0001, 0x0000'0000'0000'0001, "2001:0:0:1::1"},        // the longest run
             Case{0x2001'0db8'0000'0000, 0x0001'0000'0000'0001, "2001:db8::1:0:0:1"}, // the first of equals
             Case{0x0000'0000'0001'0002, 0x0003'0004'0005'0006, "::1:2:3:4:5:6"},
             Case{0x0001'0002'0003'0004, 0x0005'0006'0000'0000, "1:2:3:4:5:6::"},
             Case{0x0000'0001'0002'0003, 0x0004'0005'0006'0000, "0:1:2:3:4:5:6:0"},
             Case{0xffff'ffff'ffff'ffff, 0xffff'ffff'ffff'ffff, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
             Case{0x0abc'00bc'000c'0000, 0xabcd'0000'0000'0000, "abc:bc:c:0:abcd::"},
         })
        EXPECT_EQ(format_address(c.upper, c.lower), c.text);
}

// The C library writes the same text, except for the addresses of ::/96, which it writes as dotted quads.
TEST(AddressText, AgreesWithTheCLibrary) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 100'000; ++i) {
        std::array<std::uint16_t, 8> groups{};
        const std::uint64_t shape = random();
        for (int g = 0; g < 8; ++g) // half of the groups are zero, and the others of every length
            if (shape >> g & 1)
                groups[g] = static_cast<std::uint16_t>(random() >> (48 + (shape >> (8 + 4 * g) & 15)));
        std::uint64_t upper = 0;
        std::uint64_t lower = 0;
        for (int g = 0; g < 4; ++g) {
            upper = upper << 16 | groups[g];
            lower = lower << 16 | groups[4 + g];
        }
        if (upper == 0 && lower >> 32 == 0) continue;
        const std::array<std::uint64_t, 2> bytes{htobe64(upper), htobe64(lower)};
        char text[INET6_ADDRSTRLEN];
        if (upper == 0 && lower >> 32 == 0xffff)
            inet_ntop(AF_INET, reinterpret_cast<const char*>(bytes.data()) + 12, text, sizeof(text));
        else
            inet_ntop(AF_INET6, bytes.data(), text, sizeof(text));
        ASSERT_EQ(format_address(upper, lower), text);
    }
}

} // namespace
} // namespace sieve
