// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/spec/compare_lists.hpp"

#include <gtest/gtest.h>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using Lines = std::vector<std::string>;

Members members(const test::Files& files, const Lines& lines, const std::string& fields = "src") {
    auto feed = read_feed({files.feed("list", lines)}, parse_fields(fields).value(),
                          {.ranges = true, .key_ranges = true, .threads = 1});
    EXPECT_TRUE(feed) << feed.error().message;
    return members_of(std::move(*feed));
}

TEST(CompareLists, NamesWhatCameAndWent) {
    const test::Files files;
    const auto difference =
        compare_lists(members(files, {"192.0.2.9", "192.0.2.1", "10.0.0.0/24", "192.0.2.9"}),
                      members(files, {"192.0.2.1", "10.0.0.0/25", "2001:db8::1"}));
    ASSERT_TRUE(difference);
    EXPECT_EQ(difference->gone, (Lines{"192.0.2.9", "10.0.0.128/25"}));
    EXPECT_EQ(difference->added, Lines{"2001:db8::1"});
}

TEST(CompareLists, ComparesMembersAndNotEntries) {
    const test::Files files;
    const auto same = compare_lists(members(files, {"10.0.0.0/24"}),
                                    members(files, {"10.0.0.128/25", "10.0.0.0-10.0.0.127"}));
    ASSERT_TRUE(same);
    EXPECT_FALSE(same->any());
}

// As a list has them.
TEST(CompareLists, NamesDefaultRoutes) {
    const test::Files files;
    const auto difference = compare_lists(members(files, {"::/0"}), members(files, {"0.0.0.0/0"}));
    ASSERT_TRUE(difference);
    EXPECT_EQ(difference->gone, Lines{"::/0"});
    EXPECT_EQ(difference->added, Lines{"0.0.0.0/0"});
}

TEST(CompareLists, OfSeveralFields) {
    const test::Files files;
    const auto difference = compare_lists(
        members(files, {"10.0.0.0/24 443 tcp", "192.0.2.1 53 udp", "10.9.0.1 * udp"}, "dst,dport,proto"),
        members(files, {"10.0.0.0/25 443 tcp", "192.0.2.1 53 udp"}, "dst,dport,proto"));
    ASSERT_TRUE(difference) << difference.error().message;
    EXPECT_EQ(difference->gone, (Lines{"10.0.0.128/25 443 tcp", "10.9.0.1 * udp"}));
    EXPECT_TRUE(difference->added.empty());
    expect_error(compare_lists(members(files, {"* 443 tcp"}, "dst,dport,proto"),
                               members(files, {"192.0.2.1 443 tcp"}, "dst,dport,proto")),
                 ErrorKind::bad_input);
}

} // namespace
} // namespace sieve::control
