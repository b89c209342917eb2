// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/timed_list.hpp"

#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "unit/service/live/live_world.hpp"

namespace sieve::service::live {
namespace {

using test::at_second;
using test::entry;
using test::prefix_of;

TEST(TimedList, KnowsTheFirstAndTheLastEntryOfAPrefix) {
    TimedList list;
    EXPECT_TRUE(list.add(entry("192.0.2.1", 1)));
    EXPECT_FALSE(list.add(entry("192.0.2.1", 2)));
    EXPECT_FALSE(list.add(entry("192.0.2.1", 2))); // again
    EXPECT_TRUE(list.add(entry("192.0.2.0/24", 1)));
    EXPECT_EQ(list.timed_entries(), 3U);
    EXPECT_EQ(list.prefixes(), 2U);
    EXPECT_EQ(list.count(prefix_of("192.0.2.1")), 2U);
    EXPECT_FALSE(list.remove(prefix_of("192.0.2.1"), 3));
    EXPECT_FALSE(list.remove(prefix_of("192.0.2.1"), 1));
    EXPECT_TRUE(list.remove(prefix_of("192.0.2.1"), 2));
    EXPECT_FALSE(list.contains(prefix_of("192.0.2.1")));
    EXPECT_TRUE(list.contains(prefix_of("192.0.2.0/24")));
}

TEST(TimedList, CountsByFamilyAndOrigin) {
    TimedList list;
    for (int i = 1; i <= 200; i++) list.add(entry("192.0.2." + std::to_string(i), entry_id(i, i % 2 + 1)));
    list.add(entry("2001:db8::1", entry_id(1, 2)));
    list.add(entry("2001:db8::1", entry_id(1, 2), at_second(7))); // prolonged
    EXPECT_EQ(list.timed_entries(true, 1), 100U);
    EXPECT_EQ(list.timed_entries(true, 2), 100U);
    EXPECT_EQ(list.timed_entries(false, 1), 0U);
    EXPECT_EQ(list.timed_entries(false, 2), 1U);
    list.remove(prefix_of("192.0.2.2"), entry_id(2, 1));
    list.remove(prefix_of("192.0.2.3"), entry_id(3, 1)); // it is another origin's
    list.remove(prefix_of("2001:db8::1"), entry_id(1, 2));
    EXPECT_EQ(list.timed_entries(true, 1), 99U);
    EXPECT_EQ(list.timed_entries(true, 2), 100U);
    EXPECT_EQ(list.timed_entries(false, 2), 0U);
}

TEST(TimedList, EndingsFollowTheirEntries) {
    TimedList list;
    list.add(entry("192.0.2.1", 1, at_second(10)));
    list.add(entry("192.0.2.2", 1, at_second(20)));
    list.add(entry("192.0.2.3", 1));
    list.add(entry("192.0.2.1", 1, at_second(30))); // prolonged
    EXPECT_EQ(list.next_expiry(), at_second(20));
    EXPECT_EQ(list.expired(at_second(19)).size(), 0U);
    const std::vector<TimedEntry> ended = list.expired(at_second(30));
    ASSERT_EQ(ended.size(), 2U);
    EXPECT_EQ(ended[0].prefix, prefix_of("192.0.2.2"));
    EXPECT_EQ(ended[1].prefix, prefix_of("192.0.2.1"));
    EXPECT_TRUE(list.contains(prefix_of("192.0.2.1"))); // until it is removed
    EXPECT_FALSE(list.next_expiry());
}

TEST(TimedList, ProlongingAgainAndAgainTakesNoMemory) {
    TimedList list;
    for (int i = 1; i < 100'000; i++) list.add(entry("192.0.2.1", 1, at_second(i)));
    EXPECT_EQ(list.expired(at_second(99'998)).size(), 0U);
    EXPECT_EQ(list.next_expiry(), at_second(99'999));
}

TEST(TimedList, AgreesWithAMap) {
    std::mt19937_64 random(7);
    TimedList list;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::int64_t> oracle;
    const auto prefix = [](std::uint64_t number) { return Prefix{uint128{number} << 64 | number}; };
    for (int i = 0; i < 200'000; i++) {
        const std::uint64_t address = random() % 3000;
        const std::uint64_t id = random() % 3;
        const auto first = oracle.lower_bound({address, 0});
        const auto next = oracle.lower_bound({address + 1, 0});
        if (random() % 5 < 3) {
            const auto until = static_cast<std::int64_t>(random() % 1000);
            ASSERT_EQ(list.add({prefix(address), id, at_second(until)}), first == next);
            oracle[{address, id}] = until;
        } else {
            const bool last = std::distance(first, next) == 1 && first->first.second == id;
            ASSERT_EQ(list.remove(prefix(address), id), last);
            oracle.erase({address, id});
        }
        if (i % 1000 != 0) continue;
        ASSERT_EQ(list.timed_entries(), oracle.size());
        std::set<std::uint64_t> addresses;
        std::size_t seen = 0;
        for (const auto& [one, until] : oracle) {
            ASSERT_EQ(list.find(prefix(one.first), one.second)->until, at_second(until));
            addresses.insert(one.first);
        }
        list.for_each([&](const TimedEntry& one) {
            seen++;
            ASSERT_TRUE(oracle.contains({static_cast<std::uint64_t>(one.prefix.address), one.id}));
        });
        ASSERT_EQ(seen, oracle.size());
        ASSERT_EQ(list.prefixes(), addresses.size());
        seen = 0;
        list.for_each_prefix([&](const Prefix&) { seen++; });
        ASSERT_EQ(seen, addresses.size());
    }
}

TEST(Prefix, IsWrittenAsItsFamilyIs) {
    EXPECT_EQ(prefix_text(prefix_of("192.0.2.1")), "192.0.2.1");
    EXPECT_EQ(prefix_text(prefix_of("192.0.2.0/24")), "192.0.2.0/24");
    EXPECT_EQ(prefix_text(prefix_of("2001:db8::/32")), "2001:db8::/32");
    EXPECT_EQ(prefix_of("192.0.2.0/24").range(),
              (AddressRange{prefix_of("192.0.2.0").address, prefix_of("192.0.2.255").address}));
}

} // namespace
} // namespace sieve::service::live
