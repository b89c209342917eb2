// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/key_map.hpp"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>
#include <sieve/inserted.h>

#include "bpf/images.hpp"
#include "libsieve/kernel/maps/instance.hpp"
#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

sieve_key key_of(std::uint64_t number) {
    sieve_key key{};
    key.word[1] = number;
    return key;
}

TEST(KeyMap, HoldsKeysAndTheirNotes) {
    const UniqueFd fd = value_or_fail(create_inserted_map("set", 3));
    const KeyMap map = value_or_fail(KeyMap::open(value_or_fail(map_id(fd.get()))));
    EXPECT_TRUE(value_or_fail(map.all()).empty());
    EXPECT_FALSE(value_or_fail(map.find(key_of(1))));
    const KeyNote note{.end = 5'000'000'000'000, .state = SIEVE_INSERTED_COMING};
    EXPECT_TRUE(value_or_fail(map.put(key_of(1), note)));
    EXPECT_EQ(value_or_fail(map.find(key_of(1))), note);
    EXPECT_TRUE(value_or_fail(map.put(key_of(1), {.end = 7})));
    EXPECT_EQ(value_or_fail(map.find(key_of(1))), (KeyNote{.end = 7}));
    EXPECT_TRUE(value_or_fail(map.put(key_of(2), {})));
    EXPECT_TRUE(value_or_fail(map.put(key_of(3), {})));
    EXPECT_FALSE(value_or_fail(map.put(key_of(4), {}))) << "it is full";
    EXPECT_TRUE(value_or_fail(map.put(key_of(3), note))) << "a key that is there needs no room";
    ASSERT_TRUE(map.erase(key_of(2)));
    ASSERT_TRUE(map.erase(key_of(2)));
    EXPECT_EQ(value_or_fail(map.all()).size(), 2U);
    EXPECT_TRUE(value_or_fail(map.put(key_of(4), {})));
}

TEST(KeyMap, ALargerOneTakesOverTheKeys) {
    std::vector<NotedKey> before;
    for (std::uint64_t i = 1; i <= 3; i++)
        before.push_back({key_of(i), {.end = 100 + i, .state = SIEVE_INSERTED_COMING}});
    const UniqueFd fd = value_or_fail(create_inserted_map("set", 4, before));
    const KeyMap map = value_or_fail(KeyMap::open(value_or_fail(map_id(fd.get()))));
    EXPECT_EQ(map.most(), 4U);
    EXPECT_EQ(value_or_fail(map.all()).size(), 3U);
    for (const NotedKey& one : before) EXPECT_EQ(value_or_fail(map.find(one.key)), one.note);
    EXPECT_TRUE(value_or_fail(map.put(key_of(4), {})));
    EXPECT_FALSE(value_or_fail(map.put(key_of(5), {})));
    EXPECT_FALSE(create_inserted_map("set", 2, before)) << "too small for them";
}

// More keys than one system call takes, and full buckets.
TEST(KeyMap, ReadsEveryKeyOnce) {
    std::mt19937_64 random(3);
    std::map<std::uint64_t, int> wanted;
    std::vector<NotedKey> keys;
    while (wanted.size() < 50'000) wanted[random()] = 1;
    for (const auto& [number, once] : wanted) keys.push_back({key_of(number), {}});
    const UniqueFd fd = value_or_fail(create_inserted_map("set", 50'010, keys));
    const KeyMap map = value_or_fail(KeyMap::open(value_or_fail(map_id(fd.get()))));
    EXPECT_EQ(map.most(), 50'010U);
    for (const NotedKey& one : value_or_fail(map.all())) wanted[one.key.word[1]]--;
    EXPECT_TRUE(std::all_of(wanted.begin(), wanted.end(), [](const auto& one) { return one.second == 0; }));
    for (std::uint64_t i = 1; i <= 10; i++)
        EXPECT_TRUE(value_or_fail(map.put(key_of(i), {}))) << "room for ten";
}

TEST(KeyMap, OpensNoOtherMap) {
    const auto filter = map_of(image_of({"10.0.0.1"}));
    EXPECT_FALSE(KeyMap::open(filter.id()));
    EXPECT_FALSE(KeyMap::open(0));
}

// The program holds the map: it stays with its filter, through changes of other sets and its own action.
TEST(KeyMap, StaysWithItsFilter) {
    const Scratch scratch = value_or_fail(Scratch::load(false));
    const auto first = map_of(image_of({"10.0.0.1"})), second = map_of(image_of({"10.0.0.2"}));
    const auto exists = [](std::uint32_t id) { return open_map(id).has_value(); };
    WantedTable table{SIEVE_ACTION_PASS,
                      {{"set", SIEVE_ACTION_DROP, first.fd()}, {"other", SIEVE_ACTION_DROP, second.fd()}}};
    std::uint32_t id = 0;
    {
        const UniqueFd fd = value_or_fail(create_inserted_map("set", 3));
        id = value_or_fail(map_id(fd.get()));
        table.sets[0].inserted_fd = fd.get();
        ASSERT_TRUE(scratch.table().replace(table));
    }
    EXPECT_TRUE(exists(id));
    EXPECT_EQ(scratch.table().read().find("set")->inserted_id, id);
    EXPECT_EQ(scratch.table().read().find("other")->inserted_id, 0U);
    WantedTable again{SIEVE_ACTION_DROP, {{"other", SIEVE_ACTION_PASS}, {"set", SIEVE_ACTION_COUNT}}};
    again.sets[1].fresh_counters = true;
    ASSERT_TRUE(scratch.table().replace(again));
    EXPECT_TRUE(exists(id));
    EXPECT_EQ(scratch.table().read().find("set")->inserted_id, id);
    again.sets[1].map_fd = second.fd();
    again.sets[1].keep_inserted = true;
    ASSERT_TRUE(scratch.table().replace(again));
    EXPECT_EQ(scratch.table().read().find("set")->inserted_id, id) << "a larger filter of the same keys";
    again.sets[1].keep_inserted = false;
    again.sets[1].map_fd = first.fd();
    ASSERT_TRUE(scratch.table().replace(again));
    EXPECT_EQ(scratch.table().read().find("set")->inserted_id, 0U) << "another filter has other keys";
    EXPECT_FALSE(exists(id));
}

} // namespace
} // namespace sieve::kernel
