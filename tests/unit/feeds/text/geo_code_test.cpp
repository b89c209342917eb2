// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/geo_code.hpp"

#include <gtest/gtest.h>

#include "libsieve/feeds/text/list_format.hpp"

namespace sieve {
namespace {

TEST(GeoCode, IsALetterPairOrAnAutonomousSystem) {
    EXPECT_EQ(parse_geo_code("de").value(), "DE");
    EXPECT_EQ(parse_geo_code("AS").value(), "AS") << "American Samoa";
    EXPECT_EQ(parse_geo_code("as3320").value(), "AS3320");
    EXPECT_EQ(parse_geo_code("AS4294967295").value(), "AS4294967295");
    for (const char* wrong :
         {"", "D", "DEU", "D1", "3320", "AS0", "AS4294967296", "AS1x", "AS-1", "A1", "ASx"})
        EXPECT_FALSE(parse_geo_code(wrong)) << wrong;
}

TEST(GeoCode, OfSources) {
    EXPECT_EQ(geo_code_of_source("country:at").value(), "AT");
    EXPECT_EQ(geo_code_of_source("asn:AS3320").value(), "AS3320");
    EXPECT_EQ(geo_code_of_source("asn:3320").value(), "AS3320");
    for (const char* other : {"", "country", "/country:DE", "./asn:AS1", "countries:DE", "https://a/asn:1"})
        EXPECT_EQ(geo_code_of_source(other).value(), std::nullopt) << other;
    for (const char* wrong : {"country:", "country:AS3320", "asn:", "asn:DE", "asn:AS", "asn:0"})
        EXPECT_FALSE(geo_code_of_source(wrong)) << wrong;
}

TEST(GeoCode, IsAPartOfTheFormat) {
    const ListFormat format = parse_list_format("geo:de+as3320").value();
    EXPECT_EQ(format, (ListFormat{ListSyntax::geo, {"DE", "AS3320"}}));
    EXPECT_EQ(format_list_format(format), "geo:DE+AS3320");
    EXPECT_FALSE(parse_list_format("geo:DE+"));
    EXPECT_FALSE(parse_list_format("geo:Germany"));
}

} // namespace
} // namespace sieve
