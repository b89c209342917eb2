// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/list_digest.hpp"

#include <set>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"

namespace sieve::service {
namespace {

std::string digest(const std::vector<std::string>& lines, std::uint32_t fields = SIEVE_FIELD_SRC) {
    const sieve::test::Files files;
    const auto list =
        read_feed({files.feed("list", lines)}, fields, {.ranges = true, .key_ranges = true, .threads = 1});
    if (!list) throw std::runtime_error(list.error().message);
    return digest_of_list(*list);
}

TEST(ListDigest, SaysWhetherTwoListsSayTheSame) {
    const std::string both = digest({"192.0.2.1", "192.0.2.2"});
    EXPECT_EQ(both.size(), 32U);
    EXPECT_EQ(digest({"# today", "192.0.2.2 ; seen twice", "", "::ffff:192.0.2.1"}), both);
    EXPECT_NE(digest({"192.0.2.1"}), both);
    EXPECT_NE(digest({"192.0.2.1", "192.0.2.3"}), both);
    EXPECT_NE(digest({"192.0.2.1", "192.0.2.2"}, SIEVE_FIELD_DST), both);
    // A range counts as a range, however it is written, and not as its addresses.
    const std::string range = digest({"192.0.2.0/31"});
    EXPECT_EQ(digest({"192.0.2.0-192.0.2.1"}), range);
    EXPECT_NE(digest({"192.0.2.0", "192.0.2.1"}), range);
    EXPECT_NE(digest({"192.0.2.0/30"}), range);
}

TEST(ListDigest, DependsOnEachPartOfARangeOfKeys) {
    constexpr std::uint32_t flow = SIEVE_FIELD_SRC | SIEVE_FIELD_DST | SIEVE_FIELD_DPORT;
    const std::vector<std::string> entries{"10.0.0.0/8 192.0.2.0/24 443",
                                           "10.0.0.0/9 192.0.2.0/24 443",
                                           "10.128.0.0/9 192.0.2.0/24 443",
                                           "10.0.0.0/8 192.0.2.0-192.0.2.9 443",
                                           "10.0.0.0/8 192.0.2.9/32 443",
                                           "10.0.0.0/8 192.0.2.0/24 444",
                                           "10.0.0.0/8 192.0.2.0/24 *",
                                           "10.0.0.0/8 * 443",
                                           "* 192.0.2.0/24 443",
                                           "* * 443",
                                           "* * 0",
                                           "* 192.0.2.0/24 *"};
    std::set<std::string> digests;
    for (const std::string& entry : entries) digests.insert(digest({"192.0.2.1 192.0.2.2 53", entry}, flow));
    EXPECT_EQ(digests.size(), entries.size());
    EXPECT_EQ(digest({"* * 443", "10.0.0.0/8 * *"}, flow),
              digest({"10.0.0.0-10.255.255.255 * *", "# as before", "* * 443"}, flow));
}

} // namespace
} // namespace sieve::service
