// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Data of countries and networks: what is refused, and why a code is not there.
// tests/unit/feeds/formats_test.cpp has what is read.
#include "libsieve/feeds/formats/geo.hpp"

#include <gtest/gtest.h>

#include "unit/control/files.hpp"

#include "libsieve/feeds/feed.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

Result<Feed> read(const std::string& text, const std::string& format, bool skip = false) {
    const test::Files files;
    return read_feed({files.feed("data", {text})}, SIEVE_FIELD_SRC,
                     {.format = parse_list_format(format).value(), .skip_invalid = skip, .ranges = true});
}

void refused(const std::string& text, const std::string& format) {
    expect_error(read(text, format), ErrorKind::bad_input);
}

TEST(Geo, WhatIsNoSuchDataIsRefused) {
    const struct {
        const char* text;
        const char* format;
    } cases[] = {
        {"192.0.2.0,192.0.2.255,DE", "geo"},
        {"ripencc|DE|ipv4|192.0.2.0|256|20010101|allocated", "auto"},
        // The third column is a continent.
        {"192.0.2.0,192.0.2.255,AS,AF,Kabul,Kabul,34.5,69.1", "geo:AF"},
        {"network,geoname_id,is_anonymous_proxy\n192.0.2.0/24,2921044,0", "geo:DE"},
        {"network,country,Country\n192.0.2.0/24,DE,FR", "geo:DE"},
        {"192.0.2.0,192.0.2.255,DE\n192.0.2.0,192.0.1.255,DE", "geo:DE"},
        {"192.0.2.0,192.0.2.255,DE\n198.51.100.0,198.51.100.9,DEU", "geo:DE"},
        {"192.0.2.0,192.0.2.255,DE\n\"192.0.2.0,192.0.1.255,DE", "geo:DE"},
        {"asn,network\n64500,192.0.2.1/24", "geo:AS64500"},
        {"network,prefix_length,asn\n192.0.2.0,24,64500", "geo:AS64500"},
        {"2|ripencc|1|1|1|20260102|0\nripencc|DE|ipv4|255.255.255.0|257|1|allocated", "geo:DE"},
        {"2|ripencc|1|1|1|20260102|0\nripencc|DE|ipv6|2001:db8::1|32|1|allocated", "geo:DE"},
        {"2|ripencc|1|1|1|20260102|0\nripencc|DE|ipv8|1|32|1|allocated", "geo:DE"},
        {"2|ripencc|1|1|1|20260102|0\nripencc|DE|ipv4|192.0.2.0||1|allocated", "geo:DE"},
        {"ripencc|DE|ipv4|192.0.2.0|128|20010101|allocated\nripencc|DE|ipv4|198.51.100.0|25", "geo:DE"},
        {"ripencc|DE|ipv4|192.0.2.0|128|20010101|allocated\nripencc|DE|asn|64500|1|20010101", "geo:DE"},
    };
    for (const auto& one : cases) refused(one.text, one.format);
}

// Their first lines say how many rows there are, whatever is in these.
TEST(Geo, DelegationsThatAreCutShortAreRefused) {
    const auto first = [](int rows) { return "2|ripencc|1|" + std::to_string(rows) + "|1|20260102|0\n"; };
    const std::string summaries = "ripencc|*|ipv4|*|2|summary\nripencc|*|ipv6|*|0|summary\n"
                                  "ripencc|*|asn|*|1|summary\n";
    const std::string row = "ripencc|DE|ipv4|192.0.2.0|128|19930901|allocated\n";
    const std::string others =
        "ripencc||ipv4|198.51.100.128|64||available|\nripencc|DE|asn|1|1|2|allocated\n";
    const std::string apnic = "2.3|apnic|1|1||20260102|+1000\napnic|AU|ipv4|203.0.113.0|8|1|assigned\n";
    const std::string whole = first(3) + summaries + row + others;
    for (const std::string& text :
         {whole, whole + apnic, apnic + whole, first(3) + row + others + apnic, row})
        EXPECT_TRUE(read(text, "geo:DE")) << text;
    for (const std::string& text :
         {first(3) + summaries + row, first(3) + summaries, first(4) + row + others, first(2) + row + others,
          first(4) + row + others + apnic, apnic + row, whole + row})
        refused(text, "geo:DE");
    // Malformed rows may be skipped; those that are missing may not.
    EXPECT_FALSE(read(first(3) + row + others.substr(0, 40), "geo:DE", true));
    EXPECT_TRUE(read(first(2) + row + others.substr(0, 40), "geo:DE", true));
}

// An unknown code is no empty list, and the message helps.
TEST(Geo, ACodeThatIsNotThereIsAnError) {
    const std::string rows = "192.0.2.0,192.0.2.0,GB\n192.0.2.1,192.0.2.1,DE\n192.0.2.2,192.0.2.2,ED\n"
                             "192.0.2.3,192.0.2.3,DK\n192.0.2.4,192.0.2.4,SE\n192.0.2.5,192.0.2.5,QQ";
    refused(rows, "geo:DE+UK");
    refused(rows, "geo:EE");
    refused(rows, "geo:ZX");
    refused(rows, "geo:AS64500");
    refused("192.0.2.0,192.0.2.0,64500", "geo:DE");
    refused("192.0.2.0,192.0.2.0,64500", "geo:AS1");
    refused("192.0.2.0,192.0.2.0,ZZ", "geo:DE");
}

} // namespace
} // namespace sieve
