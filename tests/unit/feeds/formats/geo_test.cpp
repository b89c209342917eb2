// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Data of countries and networks: what is refused, and why a code is not there.
// tests/unit/feeds/formats_test.cpp has what is read.
#include "libsieve/feeds/formats/geo.hpp"

#include <gtest/gtest.h>

#include "unit/control/files.hpp"

#include "libsieve/feeds/feed.hpp"

namespace sieve {
namespace {

std::string error_of(const std::string& text, const std::string& format) {
    const test::Files files;
    const std::string path = files.feed("data", {text});
    const auto feed =
        read_feed({path}, SIEVE_FIELD_SRC, {.format = parse_list_format(format).value(), .ranges = true});
    if (feed) return "none";
    return feed.error().message.substr(std::min(feed.error().message.find("data"), std::size_t{1000}));
}

TEST(Geo, WhatIsNoSuchDataIsRefused) {
    const struct {
        const char* text;
        const char* format;
        const char* message; // its beginning
    } cases[] = {
        {"192.0.2.0,192.0.2.255,DE", "geo", "data: has the addresses of many countries or networks"},
        {"ripencc|DE|ipv4|192.0.2.0|256|20010101|allocated", "auto",
         "data: has the addresses of many countries"},
        // The third column is a continent.
        {"192.0.2.0,192.0.2.255,AS,AF,Kabul,Kabul,34.5,69.1", "geo:AF", "data: found \"192.0.2.0,"},
        {"network,geoname_id,is_anonymous_proxy\n192.0.2.0/24,2921044,0", "geo:DE", "data: found \"network,"},
        {"192.0.2.0,192.0.2.255,DE\n192.0.2.0,192.0.1.255,DE", "geo:DE", "data:2: found \"192.0.2.0,192.0.1"},
        {"192.0.2.0,192.0.2.255,DE\n198.51.100.0,198.51.100.9,DEU", "geo:DE", "data:2: found"},
        {"192.0.2.0,192.0.2.255,DE\n\"192.0.2.0,192.0.1.255,DE", "geo:DE", "data:2: found"},
        {"asn,network\n64500,192.0.2.1/24", "geo:AS64500", "data:2: found \"64500,192.0.2.1/24\""},
        {"2|ripencc|1|1|1|20260102|0\nripencc|DE|ipv4|255.255.255.0|257|1|allocated", "geo:DE",
         "data:2: found"},
        {"2|ripencc|1|1|1|20260102|0\nripencc|DE|ipv6|2001:db8::1|32|1|allocated", "geo:DE", "data:2: found"},
        {"2|ripencc|1|1|1|20260102|0\nripencc|DE|ipv8|1|32|1|allocated", "geo:DE", "data:2: found"},
        {"2|ripencc|1|1|1|20260102|0\nripencc|DE|ipv4|192.0.2.0||1|allocated", "geo:DE", "data:2: found"},
    };
    for (const auto& one : cases)
        EXPECT_EQ(error_of(one.text, one.format).substr(0, std::string(one.message).size()), one.message)
            << error_of(one.text, one.format);
}

// An unknown code is no empty list, and the message helps.
TEST(Geo, ACodeThatIsNotThereIsAnError) {
    const std::string rows = "192.0.2.0,192.0.2.0,GB\n192.0.2.1,192.0.2.1,DE\n192.0.2.2,192.0.2.2,ED\n"
                             "192.0.2.3,192.0.2.3,DK\n192.0.2.4,192.0.2.4,SE\n192.0.2.5,192.0.2.5,QQ";
    EXPECT_EQ(error_of(rows, "geo:DE+UK"), "data: the United Kingdom is GB");
    EXPECT_EQ(error_of(rows, "geo:EE"), "data: the nearest of its 6 countries: ED, DE, SE");
    EXPECT_EQ(error_of(rows, "geo:ZX"), "data: it has 6 other countries");
    EXPECT_EQ(error_of(rows, "geo:AS64500"), "data: it names countries, and no networks");
    EXPECT_EQ(error_of("192.0.2.0,192.0.2.0,64500", "geo:DE"), "data: it names networks, and no countries");
    EXPECT_EQ(error_of("192.0.2.0,192.0.2.0,64500", "geo:AS1"), "data: it has other networks only");
    EXPECT_EQ(error_of("192.0.2.0,192.0.2.0,ZZ", "geo:DE"), "data: it names neither countries nor networks");
}

} // namespace
} // namespace sieve
