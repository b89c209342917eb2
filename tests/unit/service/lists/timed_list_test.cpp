// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/timed_list.hpp"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <tuple>

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

TEST(TimedList, EntriesThatComeAndGoTakeNoMemory) {
    const auto used = [] {
        const struct mallinfo2 info = ::mallinfo2();
        return info.uordblks + info.hblkhd;
    };
    TimedList list;
    const auto of_round = [&](std::uint64_t number, const auto& visit) {
        for (std::uint64_t i = 0; i < 1000; i++) {
            const uint128 address = (number * 1000 + i) % 7777;
            const std::uint64_t id = i % 3 == 0 ? i : decision_numbers - 1; // a small number, a large one
            const Time until = i % 3 == 1 ? at_second(20) : never;
            visit(TimedEntry{{all_ipv4.first + address}, id, until});
            visit(TimedEntry{{uint128{1} << 127 | address << 8, 120}, id, until});
        }
    };
    const auto come = [&](TimedEntry one) {
        list.add(one);
        if (one.until != never) one.until = at_second(30);
        list.add(one);
    };
    const auto go = [&](const TimedEntry& one) { list.remove(one.prefix, one.id); };
    of_round(0, come);
    std::size_t first = 0;
    for (std::uint64_t i = 0; i < 500; i++) {
        of_round(i, go);
        of_round(i + 1, come);
        if (i == 10) first = used(); // as many stale endings as there can be
    }
    EXPECT_EQ(list.timed_entries(), 2000U);
    EXPECT_LE(used(), first + 1000);
}

// A list, and what it must say. Prefixes of both families, with entries that differ in number, origin or end.
class Compared {
  public:
    explicit Compared(std::uint64_t seed) : random_(seed) {}

    void step(Time now) {
        const TimedEntry one = draw(now);
        const std::size_t before = count(one.prefix);
        if (random_() % 5 < 3) {
            ASSERT_EQ(list_.add(one), before == 0);
            model_[key_of(one)] = one.until;
        } else {
            const std::size_t gone = model_.erase(key_of(one));
            ASSERT_EQ(list_.remove(one.prefix, one.id), gone == 1 && before == 1);
        }
        const auto found = model_.find(key_of(one));
        const std::optional<TimedEntry> stored = list_.find(one.prefix, one.id);
        ASSERT_EQ(stored.has_value(), found != model_.end());
        if (stored) ASSERT_EQ(*stored, (TimedEntry{one.prefix, one.id, found->second}));
        ASSERT_EQ(list_.count(one.prefix), count(one.prefix));
        ASSERT_EQ(list_.contains(one.prefix), count(one.prefix) != 0);
    }

    // What has ended goes, but for some that gets its end again, as after a change that failed.
    void expire(Time now) {
        std::map<Key, Time> ended;
        for (const TimedEntry& one : list_.expired(now))
            ASSERT_TRUE(ended.emplace(key_of(one), one.until).second); // once
        std::map<Key, Time> due;
        for (const auto& [key, until] : model_)
            if (until <= now) due.emplace(key, until);
        ASSERT_EQ(ended, due);
        for (const auto& [key, until] : due) {
            const TimedEntry one = entry_of(key, until);
            if (random_() % 8 == 0) {
                ASSERT_FALSE(list_.add(one));
            } else {
                list_.remove(one.prefix, one.id);
                model_.erase(key);
            }
        }
    }

    void compare_all() {
        std::map<Key, Time> seen;
        list_.for_each(
            [&](const TimedEntry& one) { EXPECT_TRUE(seen.emplace(key_of(one), one.until).second); });
        ASSERT_EQ(seen, model_);
        std::map<std::pair<bool, int>, std::size_t> by_origin;
        std::map<std::pair<uint128, int>, std::size_t> prefixes;
        Time next = never;
        for (const auto& [key, until] : model_) {
            const TimedEntry one = entry_of(key, until);
            by_origin[{is_ipv4(one.prefix.address), origin_of(one.id)}]++;
            prefixes[{one.prefix.address, one.prefix.length}]++;
            next = std::min(next, until);
        }
        std::size_t visited = 0;
        list_.for_each_prefix([&](const Prefix& prefix) {
            visited += prefixes.contains({prefix.address, prefix.length}) ? 1U : 0U;
        });
        ASSERT_EQ(visited, prefixes.size());
        ASSERT_EQ(list_.prefixes(), prefixes.size());
        ASSERT_EQ(list_.timed_entries(), model_.size());
        for (const int origin : {0, 1, 255})
            for (const bool ipv4 : {false, true})
                ASSERT_EQ(list_.timed_entries(ipv4, static_cast<std::uint8_t>(origin)),
                          (by_origin[{ipv4, origin}]));
        ASSERT_EQ(list_.next_expiry(), next == never ? std::nullopt : std::optional(next));
    }

  private:
    using Key = std::tuple<uint128, int, std::uint64_t>;
    static Key key_of(const TimedEntry& one) { return {one.prefix.address, one.prefix.length, one.id}; }
    static TimedEntry entry_of(const Key& key, Time until) {
        const auto& [address, length, id] = key;
        return {{address, static_cast<std::uint8_t>(length)}, id, until};
    }

    TimedEntry draw(Time now) {
        constexpr std::uint64_t numbers[] = {0,        1,          (1U << 15) - 1,
                                             1U << 15, 0xffffffff, decision_numbers - 1};
        const uint128 number = random_() % 25;
        // Only bits that the shortest prefix has, so that addresses meet in several lengths.
        const bool ipv4 = random_() % 2 == 0;
        TimedEntry one;
        one.prefix.address = ipv4 ? all_ipv4.first | number << 8 : number << 99 | number << 40;
        one.prefix.length = static_cast<std::uint8_t>(random_() % 3 != 0 ? 128 : 120 + random_() % 8);
        one.id = entry_id(numbers[random_() % std::size(numbers)],
                          static_cast<std::uint8_t>(std::array{0, 0, 1, 255}[random_() % 4]));
        if (random_() % 2 == 0) one.until = now + std::chrono::milliseconds(random_() % 500);
        return one;
    }
    std::size_t count(const Prefix& prefix) const {
        const auto at = [&](int length) {
            return model_.lower_bound({prefix.address, length, std::uint64_t{0}});
        };
        return static_cast<std::size_t>(std::distance(at(prefix.length), at(prefix.length + 1)));
    }

    std::mt19937_64 random_;
    TimedList list_;
    std::map<Key, Time> model_;
};

TEST(TimedList, AgreesWithAMap) {
    Compared compared(7);
    for (int i = 0; i < 50'000; i++) {
        const Time now = Time(std::chrono::milliseconds(i / 40));
        ASSERT_NO_FATAL_FAILURE(compared.step(now));
        if (i % 100 == 99) ASSERT_NO_FATAL_FAILURE(compared.expire(now));
        if (i % 2500 == 2499) ASSERT_NO_FATAL_FAILURE(compared.compare_all());
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
