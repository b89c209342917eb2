// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/find_keys.hpp"

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "unit/control/files.hpp"

namespace sieve {
namespace {

using Texts = std::vector<std::string>;

Texts places(const Texts& paths, const Texts& texts, const std::string& fields = "src",
             std::size_t block = 0) {
    KeySet keys(parse_fields(fields).value());
    for (const std::string& text : texts) keys.add(parse_key(text, keys.fields()).value());
    auto inputs = Input::of_all(paths);
    const auto found = find_keys(inputs.value(), keys,
                                 {.format = {}, .ranges = true, .key_ranges = true, .block_bytes = block});
    EXPECT_TRUE(found) << found.error().message;
    return *found;
}

TEST(FindKeys, TellsFileAndLineOfTheFirstEntry) {
    const test::Files files;
    const std::string a = files.feed("a", {"# comment", "192.0.2.1", "10.0.0.0/8", "192.0.2.1"});
    const std::string b = files.feed("b", {"2001:db8::1", "10.1.0.0-10.1.0.9"});
    EXPECT_EQ(places({a, b}, {"192.0.2.1", "10.1.0.5", "2001:db8::1", "192.0.2.2"}),
              (Texts{a + ":2", a + ":3", b + ":1", ""}));
}

// The number of a line counts the blocks before it.
TEST(FindKeys, CountsLinesOverBlocks) {
    const test::Files files;
    Texts lines;
    for (int i = 0; i < 20'000; i++)
        lines.push_back("10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256));
    const std::string a = files.feed("a", lines);
    EXPECT_EQ(places({a}, {"10.0.0.0", "10.0.70.7"}, "src", 16 << 10),
              (Texts{a + ":1", a + ":" + std::to_string(70 * 256 + 7 + 1)}));
}

TEST(FindKeys, OfSeveralFieldsKnowsPrefixesAndOpenFields) {
    const test::Files files;
    const std::string a = files.feed("a", {"192.0.2.1 443 tcp", "10.0.0.0/24 443 tcp", "10.0.1.1 * udp"});
    EXPECT_EQ(places({a}, {"192.0.2.1 443 tcp", "10.0.0.77 443 tcp", "10.0.1.1 9 udp", "10.0.1.1 9 tcp"},
                     "dst,dport,proto"),
              (Texts{a + ":1", a + ":2", a + ":3", ""}));
}

TEST(FindKeys, ReadsOtherFormats) {
    const test::Files files;
    const std::string a =
        files.feed("a", {"192.0.2.0\t192.0.2.255\t24\t1\tX", "198.51.100.0\t198.51.100.255\t24\t2\tY"});
    EXPECT_EQ(places({a}, {"198.51.100.9"}), Texts{a + ":2"});
}

} // namespace
} // namespace sieve
