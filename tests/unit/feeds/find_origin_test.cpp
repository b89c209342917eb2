// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/find_origin.hpp"

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"

namespace sieve {
namespace {

using Texts = std::vector<std::string>;

Texts origin(const Texts& names, const std::string& address) {
    Texts paths;
    for (const std::string& name : names) paths.push_back("tests/data/formats/" + name);
    std::vector<Input> data = Input::of_all(paths).value();
    const sieve_key key = parse_key(address, SIEVE_FIELD_SRC).value();
    const auto found = find_origin(data, address_number(key.word[0], key.word[1]));
    return found ? *found : Texts{"error: " + found.error().message};
}

TEST(FindOrigin, SaysWhatEachOfTheDataSays) {
    const Texts mmdb{"countries.mmdb", "networks.mmdb"};
    EXPECT_EQ(origin(mmdb, "192.0.2.65"), (Texts{"DE", "AS64500 (Example, Inc.)"}));
    EXPECT_EQ(origin(mmdb, "192.0.2.97"), (Texts{"AT", "AS64500 (Example, Inc.)"}));
    EXPECT_EQ(origin(mmdb, "2001:db8::7"), (Texts{"DE", "AS64500 (Example, Inc.)"}));
    EXPECT_EQ(origin(mmdb, "2001:db8:8000::7"), (Texts{"AS64500 (Example, Inc.)"}));
    EXPECT_EQ(origin(mmdb, "198.51.100.9"), (Texts{"AS64501 (Other)"})) << "a continent is no country";
    EXPECT_EQ(origin(mmdb, "203.0.113.9"), Texts{});
    EXPECT_EQ(origin(mmdb, "2002:c000:0241::1"), Texts{}) << "IPv4 in IPv6 is not the holder's";
    const Texts text{"delegated.txt", "networks.csv"};
    EXPECT_EQ(origin(text, "198.51.100.7"), (Texts{"DE", "AS64501 (Other)"}));
    EXPECT_EQ(origin(text, "192.0.2.200"), (Texts{"AT"}));
    EXPECT_EQ(origin({"both.tsv"}, "192.0.2.1"), (Texts{"DE, AS64500 (EXAMPLE-AS Example, Inc.)"}));
    EXPECT_EQ(origin({"both.mmdb"}, "192.0.2.1"), (Texts{"DE, AS64500 (Example, Inc.)"}));
    EXPECT_EQ(origin({"hosts.txt"}, "192.0.2.1").at(0).substr(0, 40),
              "error: tests/data/formats/hosts.txt: fou");
}

} // namespace
} // namespace sieve
