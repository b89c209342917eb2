// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/range_part.hpp"

#include <gtest/gtest.h>

namespace sieve::entry {
namespace {

TEST(RangePart, NamesOfLengthsMasksAndLastAddresses) {
    for (
        const char* name :
        {"length",       "len",   "prefix",  "prefixlen",   "prefix_len", "Prefix-Length", "ip_prefix_length",
         "prefixLength", "mask",  "netMask", "subnet mask", "masklen",    "CIDR",          "end",
         "end_ip",       "ipEnd", "endip",   "range-end",   "last",       "lastAddress",   "to",
         "ip_to",        "IPTo"})
        EXPECT_TRUE(names_range_part(name)) << name;
    for (const char* name : {"", "ip", "address", "network", "start", "first", "from", "content_length",
                             "vendor", "port", "total", "tor", "blast", "prefixes", "cidrs", "mass"})
        EXPECT_FALSE(names_range_part(name)) << name;
}

TEST(RangePart, WidensWhatIsSingle) {
    const struct {
        std::string_view name;
        std::string_view value;
        std::string_view address;
        bool widens;
    } cases[] = {
        {"len", "31", "192.0.2.0", true},
        {"len", "32", "192.0.2.0", false},
        {"len", "0", "192.0.2.0", true},
        {"len", "/24", "192.0.2.0", true},
        {"len", "64", "2001:db8::", true},
        {"len", "128", "2001:db8::", false},
        {"len", "4000000000000", "192.0.2.0", false},
        {"len", "24", "192.0.2.0/24", false},
        {"len", "24", "192.0.2.0-192.0.2.9", false},
        {"len", "24", "", false},
        {"len", "24", "a.example", false},
        {"len", "", "192.0.2.0", false},
        {"len", "2.4", "192.0.2.0", false},
        {"mask", "255.255.255.0", "192.0.2.0", true},
        {"mask", "0.0.0.0", "0.0.0.0", true},
        {"mask", "255.255.255.255", "192.0.2.0", false},
        {"mask", "255.0.255.0", "192.0.2.0", false},
        {"end", "192.0.2.9", "192.0.2.0", true},
        {"end", "192.0.2.9", "192.0.2.9", false},
        {"end", "2001:db8::9", "2001:db8::", true},
        {"end", {}, "192.0.2.0", false},
        {"end", "192.0.2.0", {}, false},
        {"end", "24", "192.0.2.0", false},
        {"end", "2026-11-22", "192.0.2.0", false},
        {"note", "192.0.2.9", "192.0.2.0", false},
        {"note", "24", "192.0.2.0", false},
    };
    for (const auto& one : cases)
        EXPECT_EQ(widens(one.name, one.value, one.address), one.widens)
            << one.name << " " << one.value << " " << one.address;
}

} // namespace
} // namespace sieve::entry
