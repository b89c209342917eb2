// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/list_change.hpp"

#include <gtest/gtest.h>

#include "unit/service/lists.hpp"

namespace sieve::service {
namespace {

using test::list_of;

TEST(ListChange, NothingChangesBetweenTheSameLists) {
    const std::vector<std::string> entries{"192.0.2.1", "2001:db8::/32", "192.0.2.0/24"};
    EXPECT_FALSE(compare_lists(list_of(entries), list_of(entries)).any());
    // Order and repetitions do not matter.
    EXPECT_FALSE(
        compare_lists(list_of({"192.0.2.1", "192.0.2.2"}), list_of({"192.0.2.2", "192.0.2.1", "192.0.2.2"}))
            .any());
}

TEST(ListChange, CountsRepetitionsOnce) {
    const ListChange change =
        compare_lists(list_of({}), list_of({"192.0.2.1", "192.0.2.1", "10.0.0.0/8", "10.0.0.0/8"}));
    EXPECT_EQ(change.added, 2U);
    EXPECT_EQ(change.first_added, (std::vector<std::string>{"192.0.2.1", "10.0.0.0/8"}));
}

TEST(ListChange, CountsAndNamesWhatCameAndWent) {
    const ListChange change =
        compare_lists(list_of({"192.0.2.1", "192.0.2.2", "10.0.0.0/8", "192.0.2.7-192.0.2.9"}),
                      list_of({"192.0.2.2", "192.0.2.3", "2001:db8::/32"}));
    EXPECT_EQ(change.added, 2U);
    EXPECT_EQ(change.gone, 3U);
    EXPECT_EQ(change.first_added, (std::vector<std::string>{"192.0.2.3", "2001:db8::/32"}));
    EXPECT_EQ(change.first_gone,
              (std::vector<std::string>{"192.0.2.1", "10.0.0.0/8", "192.0.2.7-192.0.2.9"}));
}

TEST(ListChange, NamesOnlyTheFirst) {
    std::vector<std::string> many;
    for (int i = 0; i < 200; i++) many.push_back("192.0.2." + std::to_string(i));
    const ListChange change = compare_lists(list_of({"203.0.113.1"}), list_of(many), 3);
    EXPECT_EQ(change.added, 200U);
    EXPECT_EQ(change.first_added, (std::vector<std::string>{"192.0.2.0", "192.0.2.1", "192.0.2.2"}));
    EXPECT_EQ(change.gone, 1U);
}

TEST(ListChange, ComparesKeysOfSeveralFields) {
    const std::uint32_t fields = SIEVE_FIELD_DST | SIEVE_FIELD_DPORT;
    const ListChange change = compare_lists(list_of({"192.0.2.1 443", "192.0.2.1 80"}, fields),
                                            list_of({"192.0.2.1 443", "192.0.2.1 8080"}, fields));
    EXPECT_EQ(change.first_added, std::vector<std::string>{"192.0.2.1 8080"});
    EXPECT_EQ(change.first_gone, std::vector<std::string>{"192.0.2.1 80"});
}

TEST(ListChange, ComparesRangesOfKeys) {
    const std::uint32_t fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO;
    const std::vector<std::string> before{"10.0.0.0/8 443 tcp", "* 22 tcp", "192.0.2.7 * udp",
                                          "192.0.2.1-192.0.2.9 53 *"};
    EXPECT_FALSE(compare_lists(list_of(before, fields),
                               list_of({before[3], before[1], before[0], before[2], before[1]}, fields))
                     .any());
    const ListChange change =
        compare_lists(list_of(before, fields), list_of({before[0], "* 23 tcp", "::/0 * *"}, fields));
    EXPECT_EQ(change.added, 2U);
    EXPECT_EQ(change.gone, 3U);
    EXPECT_EQ(change.first_added, (std::vector<std::string>{"* 23 tcp", "::/0 * *"}));
    EXPECT_EQ(change.first_gone,
              (std::vector<std::string>{"* 22 tcp", "192.0.2.1-192.0.2.9 53 *", "192.0.2.7 * udp"}));
}

} // namespace
} // namespace sieve::service
