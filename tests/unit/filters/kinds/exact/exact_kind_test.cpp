// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `exact` against its list, and against the model of its format.
#include "libsieve/filters/kinds/exact/exact_kind.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <sieve/exact_table.h>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/kinds/exact/exact_geometry.hpp"
#include "libsieve/filters/kinds/exact/exact_ipv4.hpp"
#include "libsieve/filters/kinds/exact/exact_ipv6.hpp"
#include "libsieve/filters/kinds/exact/exact_lanes.hpp"
#include "libsieve/filters/kinds/exact/exact_table.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "model/image_model.hpp"
#include "sieve-lab/analysis/cuckoo.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

using List = std::vector<std::uint32_t>;
using Secret = std::array<__u64, SIEVE_HASH_KEY_WORDS>;

Secret secret_of(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Secret secret{};
    for (auto& word : secret) word = random();
    return secret;
}

sieve_key key_of(uint128 address, std::uint32_t fields = SIEVE_FIELD_SRC) {
    sieve_key key{};
    key.word[fields == SIEVE_FIELD_SRC ? 0 : 2] = static_cast<std::uint64_t>(address >> 64);
    key.word[fields == SIEVE_FIELD_SRC ? 1 : 3] = static_cast<std::uint64_t>(address);
    return key;
}

uint128 v4(std::uint32_t address) {
    return sieve_v4_mapped(address);
}

/// Distinct, in random order.
List random_list(std::size_t count, std::mt19937_64& random) {
    List list;
    while (list.size() < count) {
        while (list.size() < count + count / 8 + 8) list.push_back(static_cast<std::uint32_t>(random()));
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    std::shuffle(list.begin(), list.end(), random);
    list.resize(count);
    return list;
}

exact::Table table_of(std::span<const std::uint32_t> list, std::uint64_t seed = 1,
                      std::span<const uint128> ipv6 = {}, std::uint32_t marks = 0) {
    auto table =
        exact::build_table({.ipv4 = list, .ipv6 = ipv6, .marks = marks}, SIEVE_FIELD_SRC, secret_of(seed));
    if (!table) {
        ADD_FAILURE() << table.error().message;
        std::abort();
    }
    return std::move(*table);
}

const sieve_lookup& lookup_of(const exact::Table& table) {
    return reinterpret_cast<const sieve_lookup&>(table.geometry);
}

std::span<const sieve_line> lines_of(const exact::Table& table) {
    return {table.lines.data(), table.lines.size()};
}

bool holds(const exact::Table& table, uint128 address) {
    return exact_kind.holds_key(lookup_of(table), key_of(address), lines_of(table));
}

Image image_of(const KeySet& keys, bool hits = false) {
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_EXACT;
    options.seed = 1;
    options.spare.hits = hits;
    auto built = build_set(keys, options, {});
    if (!built) {
        ADD_FAILURE() << built.error().message;
        std::abort();
    }
    EXPECT_EQ(built->report.expected_fpr, 0);
    EXPECT_EQ(built->report.measured_hits, 0U);
    return std::move(built->image);
}

/// Members, their neighbours and strangers: no answer is wrong. The oracle is the sorted list.
void answers_like(const exact::Table& table, List list, std::mt19937_64& random) {
    if (!std::is_sorted(list.begin(), list.end())) std::sort(list.begin(), list.end());
    const auto ask = [&](std::uint32_t address) {
        ASSERT_EQ(holds(table, v4(address)), std::binary_search(list.begin(), list.end(), address))
            << fmt::format("{:08x} in a table of {} keys", address, list.size());
    };
    // Every member; of long lists, neighbours and strangers of some.
    const std::size_t step = 1 + list.size() / 200'000;
    for (std::size_t i = 0; i < list.size(); i++) {
        const std::uint32_t member = list[i];
        if (i % step != 0) {
            ASSERT_TRUE(holds(table, v4(member))) << fmt::format("{:08x}", member);
            continue;
        }
        ask(member);
        ask(member + 1);
        ask(member ^ (1U << (random() % 32)));
        ask(static_cast<std::uint32_t>(random()));
        if (testing::Test::HasFatalFailure()) return;
    }
    for (int i = 0; i < 10'000; i++) ask(static_cast<std::uint32_t>(random()));
    for (const std::uint32_t edge : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xfffffffeU, 0xffffffffU}) ask(edge);
}

class ExactSizes : public testing::TestWithParam<std::size_t> {};

TEST_P(ExactSizes, HoldWhatIsListedAndNothingElse) {
    std::mt19937_64 random(GetParam());
    const List list = random_list(GetParam(), random);
    const exact::Table table = table_of(list);
    EXPECT_EQ(geometry_fault(lookup_of(table)), "");
    EXPECT_EQ(table.keys, list.size());
    EXPECT_EQ(table.lines.size(), exact::table_lines(list.size(), 0)) << "it had to grow";
    // Sorting ten million addresses takes longer than all else here.
    List sorted = list;
    std::sort(sorted.begin(), sorted.end());
    answers_like(table, sorted, random);

    const auto own = exact_kind.list(lookup_of(table), lines_of(table));
    ASSERT_TRUE(own) << own.error().message;
    const List in_order_of_table(own->addresses().begin(), own->addresses().end());
    List listed = in_order_of_table;
    std::sort(listed.begin(), listed.end());
    EXPECT_EQ(listed, sorted);
    List visited;
    ASSERT_TRUE(exact_kind.for_each_range(lookup_of(table), lines_of(table), [&](const AddressRange& range) {
        EXPECT_TRUE(is_ipv4(range.first) && range.first == range.last);
        visited.push_back(static_cast<std::uint32_t>(range.first));
    }));
    EXPECT_EQ(visited, in_order_of_table);
    const auto sum = exact_kind.add_up(lookup_of(table), lines_of(table));
    ASSERT_TRUE(sum) << sum.error().message;
    EXPECT_EQ(sum->keys, list.size());
    EXPECT_EQ(sum->sum, table.sum);
}

INSTANTIATE_TEST_SUITE_P(From0To1e7, ExactSizes,
                         testing::Values(0, 1, 2, 3, 10, 13, 14, 50, 100, 1'000, 10'000, 100'000, 327'680,
                                         1'000'000, 3'000'000, 10'000'000));

/// No number of keys is special: all small ones, and those on both sides of each change of the shape.
TEST(Exact, TakesEveryNumberOfKeys) {
    std::vector<std::size_t> sizes;
    for (std::size_t keys = 0; keys <= 500; keys++) sizes.push_back(keys);
    std::set<std::uint32_t> lanes;
    constexpr std::size_t most = 20'000'000;
    for (std::size_t keys = 1; keys < most; keys += 1 + keys / 1'000) {
        std::size_t low = keys;
        std::size_t high = keys + 1 + keys / 1'000;
        lanes.insert(exact::best_shape(low).lanes);
        if (exact::best_shape(low).lanes == exact::best_shape(high).lanes) continue;
        while (high - low > 1) {
            const std::size_t middle = low + (high - low) / 2;
            (exact::best_shape(middle).lanes == exact::best_shape(low).lanes ? low : high) = middle;
        }
        sizes.insert(sizes.end(), {low, high});
    }
    EXPECT_EQ(lanes, (std::set<std::uint32_t>{2, 3, 4, 5}));
    std::mt19937_64 random(21);
    for (const std::size_t keys : sizes) {
        if (keys > 3'000'000) continue; // seconds each; one such size is in From0To1e7
        const List list = random_list(keys, random);
        const exact::Table table = table_of(list, keys);
        ASSERT_EQ(geometry_fault(lookup_of(table)), "") << keys;
        ASSERT_EQ(table.keys, keys);
        for (const std::uint32_t member : list) ASSERT_TRUE(holds(table, v4(member))) << keys;
        const auto sum = exact_kind.add_up(lookup_of(table), lines_of(table));
        ASSERT_TRUE(sum) << keys << ": " << sum.error().message;
        ASSERT_EQ(sum->keys, keys);
        ASSERT_EQ(sum->sum, table.sum) << keys;
    }
}

/// Bits a key follow from the shape, which changes with the number of keys; beside the least that any exact
/// set takes, log2 C(2^32, n) / n.
TEST(Exact, TakesTheBitsOfItsShape) {
    const struct {
        std::uint64_t keys;
        std::uint32_t lanes;
        double bits;
        double most_of_limit;
    } cases[] = {{10'000, 3, 26.3, 1.35},     {100'000, 3, 22.6, 1.35},    {1'000'000, 4, 16.6, 1.25},
                 {10'000'000, 5, 13.5, 1.35}, {40'000'000, 5, 13.1, 1.65}, {100'000'000, 7, 10.8, 1.6}};
    for (const auto& c : cases) {
        const exact::Shape& shape = exact::best_shape(c.keys);
        EXPECT_EQ(shape.lanes, c.lanes) << c.keys;
        const double bits = static_cast<double>(exact::lines_for(shape, c.keys)) * SIEVE_LINE_BITS /
                            static_cast<double>(c.keys);
        EXPECT_NEAR(bits, c.bits, 0.15) << c.keys;
        const double limit = analysis::least_exact_bits(c.keys);
        EXPECT_LT(bits, c.most_of_limit * limit) << c.keys << ", limit " << limit;
    }
}

TEST(Exact, ShapesGoTogether) {
    for (const exact::Shape& shape : exact::shapes()) {
        EXPECT_EQ(shape.lanes, 64 / shape.width);
        for (const std::uint64_t keys : {0ULL, 1ULL, 1000ULL, 123'456ULL, 100'000'000ULL}) {
            const std::uint64_t lines = exact::lines_for(shape, keys);
            sieve_exact exact = exact::geometry_of(shape, lines);
            std::mt19937_64 random(keys);
            exact::draw_secrets(exact, random);
            exact.fields = SIEVE_FIELD_DST;
            exact.lines = static_cast<__u32>(lines + SIEVE_EXACT_IPV4_LINE);
            EXPECT_EQ(exact::fault(exact), "") << shape.lanes << " lanes, " << keys << " keys";
        }
    }
}

/// The bijection, its inverse, and the key that a place stands for.
TEST(Exact, PlacesDetermineTheAddress) {
    std::mt19937_64 random(7);
    for (const exact::Shape& shape : exact::shapes())
        for (const std::uint64_t more : {0, 1, 77}) {
            sieve_exact exact = exact::geometry_of(shape, exact::lines_for(shape, 0) + more);
            exact::draw_secrets(exact, random);
            const exact::Inverse inverse(exact);
            const exact::Lanes lanes(exact);
            for (int i = 0; i < 20'000; i++) {
                const auto address =
                    i < 4 ? static_cast<std::uint32_t>(i - 2) : static_cast<std::uint32_t>(random());
                const std::uint32_t permuted = sieve_exact_permute(&exact, address);
                ASSERT_EQ(inverse.address_of(permuted), address);
                const sieve_exact_place at = sieve_exact_locate(&exact, permuted);
                ASSERT_LT(at.first, exact.words);
                ASSERT_LT(at.second, exact.words);
                ASSERT_NE(at.first, at.second);
                ASSERT_LT(at.rest, exact.range);
                ASSERT_EQ(exact::permuted_of(exact, {at.first, at.rest}), permuted);
                const exact::Key key = lanes.key_of(at.second, lanes.in_second(at.rest));
                ASSERT_EQ(key.first, at.first);
                ASSERT_EQ(key.rest, at.rest);
                ASSERT_EQ(lanes.other_word(at.first, lanes.in_first(at.rest)), at.second);
                ASSERT_EQ(lanes.other_word(at.second, lanes.in_second(at.rest)), at.first);
            }
        }
}

/// A lane is found wherever it is, whatever is in the others. The oracle takes the word apart.
TEST(Exact, TestsEachLaneByItself) {
    std::mt19937_64 random(8);
    for (const exact::Shape& shape : exact::shapes()) {
        sieve_exact exact = exact::geometry_of(shape, exact::lines_for(shape, 0));
        const exact::Lanes lanes(exact);
        for (int i = 0; i < 20'000; i++) {
            const auto rest = static_cast<std::uint32_t>(random() % exact.range);
            const auto any_word = [&] {
                std::uint64_t word = lanes.empty_word();
                for (std::uint32_t lane = 0; lane < lanes.count(); lane++) {
                    std::uint64_t content = random() % (2 * std::uint64_t{exact.range});
                    if (random() % 3 == 0) content = lanes.none();
                    if (random() % 8 == 0) content = rest + random() % 2 * exact.range; // here or as if there
                    if (random() % 8 == 0) content = rest ^ 1U;
                    word = lanes.with(word, lane, content);
                }
                return word;
            };
            const std::uint64_t first = any_word();
            const std::uint64_t second = any_word();
            bool expected = false;
            std::uint64_t free = 0;
            for (std::uint32_t lane = 0; lane < shape.lanes; lane++) {
                const auto content = [&](std::uint64_t word) {
                    return word >> (lane * shape.width) & ((std::uint64_t{1} << shape.width) - 1);
                };
                expected |= content(first) == rest || content(second) == std::uint64_t{exact.range} + rest;
                if (content(first) == (std::uint64_t{1} << shape.width) - 1)
                    free |= std::uint64_t{1} << (lane * shape.width + shape.width - 1);
            }
            ASSERT_EQ(sieve_exact_test(&exact, first, second, rest) != 0, expected)
                << fmt::format("{:x} {:x} {:x}", first, second, rest);
            ASSERT_EQ(lanes.free(first), free) << fmt::format("{:x}", first);
            ASSERT_EQ(lanes.how_many(free), std::popcount(free)) << fmt::format("{:x}", first);
        }
    }
}

TEST(Exact, RefusesWeakMultipliers) {
    for (const std::uint32_t weak : {1U, 3U, 5U, 0x00010001U, 0xffffffffU, 0x80000001U, 0x7fffffffU,
                                     0x01000193U, 0x00ffffffU, 0x00123457U, 0xff123457U})
        EXPECT_TRUE(exact::is_weak(weak)) << fmt::format("{:08x}", weak);
    for (const std::uint32_t strong : {0x9e3779b1U, 0x85ebca6bU, 0xc2b2ae35U, 0x2c1b3c6dU})
        EXPECT_FALSE(exact::is_weak(strong)) << fmt::format("{:08x}", strong);
    std::mt19937_64 random(9);
    int weak = 0;
    sieve_exact exact{};
    for (int i = 0; i < 20'000; i++) {
        weak += exact::is_weak(static_cast<std::uint32_t>(random()) | 1) ? 1 : 0;
        exact::draw_secrets(exact, random);
        for (const std::uint32_t factor :
             {exact.multiply[0], exact.multiply[1], exact.multiply[2], exact.spread})
            ASSERT_TRUE(factor % 2 == 1 && !exact::is_weak(factor));
    }
    EXPECT_GT(weak, 0);
    EXPECT_LT(weak, 20'000 / 50);
}

/// Single draws fail now and then for small sets; builds never do, and do not grow.
TEST(Exact, DrawsAgainWhenThereIsNoRoom) {
    std::mt19937_64 random(10);
    int failed = 0;
    for (int round = 0; round < 1'000; round++) {
        const List list = random_list(200, random);
        const exact::Shape& shape = exact::best_shape(list.size());
        const std::uint64_t lines = exact::lines_for(shape, list.size());
        sieve_exact exact = exact::geometry_of(shape, lines);
        exact::draw_secrets(exact, random);
        std::vector<__u64> words(lines * SIEVE_LINE_WORDS, exact::Lanes(exact).empty_word());
        std::vector<std::uint32_t> repeated;
        failed += exact::place_all(exact, words, list, {}, repeated) ? 0 : 1;
        EXPECT_EQ(table_of(list, random()).lines.size(), SIEVE_EXACT_IPV4_LINE + lines);
    }
    EXPECT_GT(failed, 0);
    EXPECT_LT(failed, 100);
}

/// A table of two words of which all keys are asked to share a few: no draw helps, and the builder says so
/// instead of going on for ever. Here the keys find no room since the words hold too few lanes for them.
TEST(Exact, LeavesTheTableAsItWasWithoutRoom) {
    const exact::Shape& shape = exact::best_shape(1);
    sieve_exact exact = exact::geometry_of(shape, 1);
    std::mt19937_64 random(11);
    exact::draw_secrets(exact, random);
    const exact::Lanes lanes(exact);
    std::vector<__u64> words(SIEVE_LINE_WORDS, lanes.empty_word());
    exact::RoomSearch search;
    std::set<std::uint32_t> members;
    while (members.size() < 16) {
        const auto address = static_cast<std::uint32_t>(random());
        const std::vector<__u64> before = words;
        const auto at = sieve_exact_locate(&exact, sieve_exact_permute(&exact, address));
        const exact::Placed placed = exact::place(lanes, words, at, 0, {0, exact.words}, search);
        if (placed == exact::Placed::now) members.insert(address);
        if (placed == exact::Placed::nowhere) {
            ASSERT_EQ(words, before);
        }
    }
    const auto at = sieve_exact_locate(&exact, sieve_exact_permute(&exact, 1));
    EXPECT_EQ(exact::place(lanes, words, at, 0, {0, exact.words}, search), exact::Placed::nowhere);
}

/// Lists that an attacker might choose are no worse than random ones.
TEST(Exact, TakesHostileListsAtTheSameSize) {
    std::mt19937_64 random(12);
    constexpr std::uint32_t count = 1U << 14;
    const auto listed = [&](const std::function<std::uint32_t(std::uint32_t)>& address) {
        List list;
        for (std::uint32_t i = 0; i < count; i++) list.push_back(address(i));
        return list;
    };
    std::uint32_t basis[14];
    for (auto& vector : basis) vector = static_cast<std::uint32_t>(random());
    const std::pair<const char*, List> lists[] = {
        {"a dense range", listed([](std::uint32_t i) { return 0xc0a80000 + i; })},
        {"equal lower bits", listed([](std::uint32_t i) { return i << 18 | 0x2a; })},
        {"a stride of 256", listed([](std::uint32_t i) { return 256 * i; })},
        {"a stride of 65537", listed([](std::uint32_t i) { return 65537 * i; })},
        {"a stride of FNV's prime", listed([](std::uint32_t i) { return 0x01000193 * i; })},
        {"whole /24s",
         listed([](std::uint32_t i) { return (sieve_mix(i >> 8) & 0xffffff) << 8 | (i & 255); })},
        {"middle octets", listed([](std::uint32_t i) { return i << 8; })},
        {"even bits", listed([](std::uint32_t i) {
             std::uint32_t spread = 0;
             for (std::uint32_t bit = 0; bit < 14; bit++) spread |= (i >> bit & 1) << (2 * bit);
             return spread;
         })},
        {"a subspace over GF(2)", listed([&](std::uint32_t i) {
             std::uint32_t sum = 0;
             for (std::uint32_t bit = 0; bit < 14; bit++)
                 if ((i >> bit & 1) != 0) sum ^= basis[bit];
             return sum;
         })},
        {"runs in each /16", listed([](std::uint32_t i) { return (i >> 4) << 22 | (i & 15); })},
    };
    for (const auto& [name, list] : lists) {
        const std::set<std::uint32_t> distinct(list.begin(), list.end());
        ASSERT_EQ(distinct.size(), count) << name;
        int draws_failed = 0;
        for (int round = 0; round < 20; round++) {
            const exact::Shape& shape = exact::best_shape(count);
            sieve_exact exact = exact::geometry_of(shape, exact::lines_for(shape, count));
            exact::draw_secrets(exact, random);
            std::vector<__u64> words(exact.words, exact::Lanes(exact).empty_word());
            std::vector<std::uint32_t> repeated;
            draws_failed += exact::place_all(exact, words, list, {}, repeated) ? 0 : 1;
        }
        EXPECT_EQ(draws_failed, 0) << name;
        answers_like(table_of(list), list, random);
    }
}

/// Large tables are built by shards, on as many threads as there are.
TEST(Exact, DoesNotDependOnThreads) {
    std::mt19937_64 random(13);
    List list;
    for (int i = 0; i < 4'200'000; i++) list.push_back(static_cast<std::uint32_t>(random()));
    const auto with = [&](std::size_t threads) {
        const ThreadLimit limit(threads);
        return table_of(list);
    };
    const exact::Table one = with(1);
    ASSERT_GT(one.geometry.words, 1U << 20) << "no shards";
    ASSERT_LT(one.geometry.reach, one.geometry.words / 8);
    for (const std::size_t threads : {2, 5}) {
        const exact::Table other = with(threads);
        ASSERT_EQ(other.lines.size(), one.lines.size());
        EXPECT_EQ(std::memcmp(other.lines.data(), one.lines.data(), one.lines.size() * sizeof(sieve_line)),
                  0);
        EXPECT_EQ(std::memcmp(&other.geometry, &one.geometry, sizeof(one.geometry)), 0);
        EXPECT_EQ(other.sum, one.sum);
    }
    for (const std::uint32_t member : list) ASSERT_TRUE(holds(one, v4(member)));
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    EXPECT_EQ(one.keys, list.size()) << "repeated addresses are counted once";
    int strangers = 0;
    for (int i = 0; i < 1'000'000; i++) {
        const auto address = static_cast<std::uint32_t>(random());
        const bool member = std::binary_search(list.begin(), list.end(), address);
        ASSERT_EQ(holds(one, v4(address)), member);
        strangers += member ? 0 : 1;
    }
    EXPECT_GT(strangers, 900'000);
}

TEST(Exact, CountsRepeatedAddressesOnce) {
    std::mt19937_64 random(14);
    const List list = random_list(5'000, random);
    List thrice = list;
    for (int copy = 0; copy < 2; copy++) thrice.insert(thrice.end(), list.begin(), list.end());
    std::shuffle(thrice.begin(), thrice.end(), random);
    const exact::Table once = table_of(list);
    const exact::Table table = table_of(thrice);
    EXPECT_EQ(table.keys, list.size());
    EXPECT_EQ(table.lines.size(), once.lines.size()) << "room for addresses that are no others";
    answers_like(table, list, random);

    const uint128 six = address_number(0x20010db800000000, 1);
    const exact::Table mixed = table_of(list, 1, std::vector<uint128>{six, six + 1, six, six});
    EXPECT_EQ(mixed.keys, list.size() + 2);
}

/// Both families in one set, and addresses that look like those of the other one.
TEST(Exact, HoldsBothFamilies) {
    std::mt19937_64 random(15);
    for (const std::size_t count : {0, 1, 4, 5, 100, 30'000}) {
        const List list = random_list(count / 2 + 3, random);
        std::vector<uint128> six;
        for (std::size_t i = 0; i < count; i++)
            six.push_back(address_number(random() % 2 == 0 ? 0x20010db800000000 : random(),
                                         random() >> (random() % 64)));
        if (count >= 4) {
            six[0] = 0;
            six[1] = ~uint128{0};
            six[2] = v4(0) - 1;
            six[3] = v4(0xffffffff) + 1;
        }
        const exact::Table table = table_of(list, count, six);
        EXPECT_EQ(geometry_fault(lookup_of(table)), "");
        std::set<uint128> members(six.begin(), six.end());
        for (const std::uint32_t address : list) members.insert(v4(address));
        EXPECT_EQ(table.keys, members.size());
        const auto ask = [&](uint128 address) {
            ASSERT_EQ(holds(table, address), members.contains(address));
        };
        for (const uint128 member : members) {
            ask(member);
            ask(member + 1);
            ask(member ^ uint128{1} << (random() % 128));
        }
        // The form of a place without an address, and its neighbours.
        for (const uint128 address : {v4(0), v4(0) - 1, v4(0) + 1, v4(0xffffffff), uint128{0}, ~uint128{0},
                                      address_number(0, 0), address_number(1, SIEVE_V4_MAPPED)})
            ask(address);
        for (int i = 0; i < 1'000; i++) ask(address_number(0x20010db800000000, random()));
        const auto sum = exact_kind.add_up(lookup_of(table), lines_of(table));
        ASSERT_TRUE(sum) << sum.error().message;
        EXPECT_EQ(sum->keys, members.size());
        EXPECT_EQ(sum->sum, table.sum);
        const auto own = exact_kind.list(lookup_of(table), lines_of(table));
        ASSERT_TRUE(own) << own.error().message;
        std::set<uint128> listed;
        for (std::size_t i = 0; i < own->size(); i++)
            listed.insert(address_number(own->at(i).word[0], own->at(i).word[1]));
        EXPECT_EQ(listed, members);
    }
}

/// Images of real builds, read by the model.
TEST(Exact, IsWhatTheModelReads) {
    std::mt19937_64 random(16);
    for (const std::uint32_t fields : {std::uint32_t{SIEVE_FIELD_SRC}, std::uint32_t{SIEVE_FIELD_DST}})
        for (const std::size_t count : {1, 12, 700, 120'000}) {
            KeySet keys(fields);
            for (const std::uint32_t address : random_list(count, random))
                keys.add(key_of(v4(address), fields));
            for (std::size_t i = 0; i < count / 3; i++)
                keys.add(key_of(address_number(0x20010db800000000, random() % (4 * count)), fields));
            keys.add(key_of(v4(77), fields)); // behind IPv6 addresses
            const Image image = image_of(keys);
            const model::FilterImage model(
                {reinterpret_cast<const unsigned char*>(image.lines().data()), image.bytes()});
            const auto ask = [&](const sieve_key& key) {
                const bool held = image.contains(key);
                ASSERT_EQ(model.contains({key.word[0], key.word[1], key.word[2], key.word[3], 0}), held);
            };
            for (int i = 0; i < 5'000; i++) {
                ask(key_of(v4(static_cast<std::uint32_t>(random())), fields));
                ask(key_of(address_number(0x20010db800000000, random() % (4 * count)), fields));
                const sieve_key member = keys.at(random() % keys.size());
                ask(member);
                ASSERT_TRUE(image.contains(member));
            }
        }
}

/// The same list and seed give the same bytes. CONTRIBUTING.md says how to change golden bytes.
TEST(Exact, LinesAreGolden) {
    std::mt19937_64 random(17);
    KeySet keys(SIEVE_FIELD_SRC);
    for (int i = 0; i < 2'000; i++) keys.add_ipv4(static_cast<std::uint32_t>(random()));
    for (int i = 0; i < 100; i++) keys.add(key_of(address_number(0x2a00000000000000, random())));
    const Image image = image_of(keys);
    EXPECT_EQ(XXH3_64bits(image.filter().data(), image.filter().size_bytes()), 13386436948229121533U);
    EXPECT_EQ(XXH3_64bits(&image.lookup(), sizeof(sieve_lookup)), 16100978314743133662U);
}

TEST(Exact, RefusesWhatItCannotHold) {
    const auto refused = [](const std::function<void(BuildOptions&)>& change, Members members) {
        BuildOptions options;
        options.kind.kind = SIEVE_KIND_EXACT;
        change(options);
        expect_error(build_set(std::move(members), options, {}), ErrorKind::invalid_request);
    };
    KeySet one(SIEVE_FIELD_SRC);
    one.add_ipv4(1);
    const auto same = [](BuildOptions&) {};
    refused([](BuildOptions& o) { o.bits_per_key = 16; }, {one, {}});
    refused([](BuildOptions& o) { o.memory = 64; }, {one, {}});
    refused([](BuildOptions& o) { o.kind.choices = 3; }, {one, {}});
    refused([](BuildOptions& o) { o.kind.hashes = 2; }, {one, {}});
    refused(same, {one, {{v4(0x0a000000), v4(0x0a0000ff)}}});
}

TEST(Exact, RefusesMarksOfWhatIsNotMarked) {
    const auto build = [](Members members, const std::function<void(BuildOptions&)>& change) {
        BuildOptions options;
        options.kind.kind = automatic_kind;
        options.spare.hits = true;
        change(options);
        return build_set(std::move(members), options, {});
    };
    const auto same = [](BuildOptions&) {};
    KeySet one(SIEVE_FIELD_SRC);
    one.add_ipv4(1);
    EXPECT_TRUE(build({one, {}}, same));
    expect_error(build({one, {{v4(0x0a000000), v4(0x0a0000ff)}}}, same), ErrorKind::invalid_request);
    expect_error(build({one, {}}, [](BuildOptions& o) { o.fpr = 1e-3; }), ErrorKind::invalid_request);
    expect_error(build({one, {}},
                       [](BuildOptions& o) {
                           o.spare.lifetimes = Lifetimes{1000, 1000};
                       }),
                 ErrorKind::invalid_request);
    KeySet flow(SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT);
    flow.add(key_of(v4(1)));
    expect_error(build({flow, {}}, [](BuildOptions& o) { o.kind.kind = SIEVE_KIND_EXACT; }),
                 ErrorKind::invalid_request);
    for (const std::uint64_t first : {0x6000U, 0x7fffU, 0x8000U, 0xa001U, 0xdfffU}) {
        KeySet six = one;
        six.add(key_of(address_number(first << 48, 1)));
        expect_error(build({six, {}}, same), ErrorKind::invalid_request);
    }
    for (const std::uint64_t first : {0x0000U, 0x2001U, 0x5fffU, 0xe000U, 0xfe80U, 0xffffU}) {
        KeySet six = one;
        six.add(key_of(address_number(first << 48, 1)));
        EXPECT_TRUE(build({six, {}}, same));
    }
}

/// Of every shape: the same answers as of the list, whichever keys are marked.
TEST(Exact, WithMarksAnswersTheSame) {
    std::mt19937_64 random(23);
    for (const std::size_t count : {1, 5, 200, 3'000, 40'000, 300'000, 3'000'000}) {
        const List list = random_list(count, random);
        std::set<uint128> six;
        while (six.size() < std::min<std::size_t>(count, 2'000))
            six.insert(address_number(
                (random() % 2 == 0 ? 0x2001000000000000 : 0xfd00000000000000) | random() >> 16, random()));
        exact::Table table = table_of(list, 1, std::vector(six.begin(), six.end()), 1);
        EXPECT_EQ(64U / exact::lane_bits(table.geometry), exact::best_shape(count, 1).lanes);
        answers_like(table, list, random);
        const exact::Lanes lanes(table.geometry);
        __u64* words = table.lines[SIEVE_EXACT_IPV4_LINE].word;
        for (std::uint32_t word = 0; word < table.geometry.words; word++)
            for (std::uint32_t lane = 0; lane < lanes.count(); lane++)
                if (lanes.get(words[word], lane) != lanes.none() && random() % 2 == 0)
                    words[word] |= lanes.mark(lane);
        const auto asks_ipv6 = [&] {
            for (const uint128 one : six) {
                ASSERT_TRUE(holds(table, one));
                for (const int bit : {127, 126, 125, 64, 0}) {
                    const uint128 other = one ^ static_cast<uint128>(1) << bit;
                    ASSERT_EQ(holds(table, other), six.contains(other)) << bit;
                }
            }
        };
        asks_ipv6();
        const std::uint32_t first = sieve_exact_ipv6_line(&table.geometry);
        for (std::uint32_t line = first; line < table.lines.size(); line++)
            for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++)
                if (random() % 2 == 0) table.lines[line].word[place] ^= SIEVE_EXACT_IPV6_MARK;
        answers_like(table, list, random);
        asks_ipv6();
        if (testing::Test::HasFatalFailure()) return;
    }
}

/// A mark takes a bit of a lane. Where the lanes have one left, the table is as large.
TEST(Exact, WithMarksTakesTheBitsOfItsShape) {
    const struct {
        std::uint64_t keys;
        double bits;
    } cases[] = {{1'000, 37.4}, {10'000, 37.2}, {100'000, 22.6}, {1'000'000, 16.8}, {10'000'000, 16.6}};
    for (const auto& c : cases)
        EXPECT_NEAR(static_cast<double>(exact::lines_for(exact::best_shape(c.keys, 1), c.keys, 1)) *
                        SIEVE_LINE_BITS / static_cast<double>(c.keys),
                    c.bits, 0.15)
            << c.keys;
    EXPECT_EQ(exact::table_lines(100'000, 30, 0, 1), exact::table_lines(100'000, 30));
}

TEST(Exact, HeadersWithMarksThatHaveAFaultAreRefused) {
    std::mt19937_64 random(24);
    KeySet keys(SIEVE_FIELD_SRC);
    for (const std::uint32_t address : random_list(1'000, random)) keys.add_ipv4(address);
    const Image image = image_of(keys, true);
    ASSERT_EQ(geometry_fault(image.lookup()), "");
    ASSERT_EQ(sieve_exact_of(&image.lookup())->marks, 1U);
    const auto wrong = [&](const char* what, const std::function<void(sieve_exact&)>& change) {
        sieve_lookup lookup = image.lookup();
        change(reinterpret_cast<sieve_exact&>(lookup));
        EXPECT_NE(geometry_fault(lookup), "") << what;
    };
    wrong("no marks", [](sieve_exact& e) { e.marks = 0; });
    wrong("no marks, wider lanes", [](sieve_exact& e) { e.marks = 0, e.width++, e.range++; });
    wrong("two marks", [](sieve_exact& e) { e.marks = 2, e.width--; });
    wrong("width", [](sieve_exact& e) { e.width++; });
    wrong("width", [](sieve_exact& e) { e.width--; });
    wrong("values", [](sieve_exact& e) {
        e.value_bits = 6;
        e.last = static_cast<__u8>((64 / exact::lane_bits(e) - 1) * exact::lane_bits(e));
        e.second = (std::uint64_t{e.range} << 6) * e.feet;
    });
}

TEST(Exact, TakesPrefixesOfOneAddress) {
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_EXACT;
    const uint128 six = address_number(0x20010db800000000, 1);
    const auto built = build_set(Members(KeySet(SIEVE_FIELD_SRC), {{v4(9), v4(9)}, {six, six}}), options, {});
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_EQ(built->report.keys, 2U);
    EXPECT_EQ(built->report.entries, 2U);
    EXPECT_TRUE(built->image.contains(key_of(v4(9))));
    EXPECT_TRUE(built->image.contains(key_of(six)));
}

/// Each field of the geometry against the others.
TEST(Exact, HeadersWithAFaultAreRefused) {
    std::mt19937_64 random(18);
    KeySet keys(SIEVE_FIELD_SRC);
    for (const std::uint32_t address : random_list(1'000, random)) keys.add_ipv4(address);
    const Image image = image_of(keys);
    ASSERT_EQ(geometry_fault(image.lookup()), "");
    const auto wrong = [&](const char* what, const std::function<void(sieve_exact&)>& change) {
        sieve_lookup lookup = image.lookup();
        change(reinterpret_cast<sieve_exact&>(lookup));
        EXPECT_NE(geometry_fault(lookup), "") << what;
    };
    wrong("one word", [](sieve_exact& e) { e.choices = 1; });
    wrong("three words", [](sieve_exact& e) { e.choices = 3; });
    for (const int width : {0, 3, 31, 33, 21, 64, 255})
        wrong("width", [&](sieve_exact& e) { e.width = static_cast<__u8>(width); });
    wrong("narrow lanes", [](sieve_exact& e) {
        e.width = 21;
        e.feet = 1ULL | 1ULL << 21 | 1ULL << 42;
        e.second = e.range * e.feet;
    });
    wrong("values", [](sieve_exact& e) { e.value_bits = 1; });
    wrong("more value bits than a lane holds", [](sieve_exact& e) { e.value_bits = 17; });
    wrong("a last lane, which only values need", [](sieve_exact& e) { e.last = 32; });
    wrong("probes", [](sieve_exact& e) { e.probes = 1; });
    wrong("shards", [](sieve_exact& e) { e.marks = 1; });
    wrong("no words", [](sieve_exact& e) { e.words = 0; });
    wrong("part of a line", [](sieve_exact& e) { e.words -= 4; });
    wrong("more words than lines", [](sieve_exact& e) { e.words += 8; });
    wrong("fewer words", [](sieve_exact& e) { e.words -= 8; });
    wrong("so many words that they wrap", [](sieve_exact& e) { e.words = 0xfffffff8; });
    wrong("no lines", [](sieve_exact& e) { e.lines = 0; });
    wrong("one line", [](sieve_exact& e) { e.lines = 1; });
    wrong("range", [](sieve_exact& e) { e.range++; });
    wrong("range", [](sieve_exact& e) { e.range--; });
    wrong("range and what follows", [](sieve_exact& e) { e.range++, e.second = e.range * e.feet; });
    for (int i = 0; i < 3; i++) {
        wrong("an even multiplier", [i](sieve_exact& e) { e.multiply[i]--; });
        wrong("a weak multiplier", [i](sieve_exact& e) { e.multiply[i] = 1; });
        wrong("no multiplier", [i](sieve_exact& e) { e.multiply[i] = 0; });
    }
    wrong("spread", [](sieve_exact& e) { e.spread = 1; });
    wrong("spread", [](sieve_exact& e) { e.spread ^= 1; });
    wrong("no reach", [](sieve_exact& e) { e.reach = 0; });
    wrong("reach", [](sieve_exact& e) { e.reach = e.words; });
    wrong("feet", [](sieve_exact& e) { e.feet ^= 2; });
    wrong("no feet", [](sieve_exact& e) { e.feet = 0; });
    wrong("second", [](sieve_exact& e) { e.second += e.feet; });
    for (const std::uint32_t fields :
         {std::uint32_t{SIEVE_FIELD_SRC | SIEVE_FIELD_DST},
          std::uint32_t{SIEVE_FIELD_SRC | SIEVE_FIELD_PROTO}, std::uint32_t{SIEVE_FIELD_DPORT}})
        wrong("fields", [&](sieve_exact& e) { e.fields = static_cast<__u8>(fields); });
}

/// An image whose checksum is right and whose content is not is refused with the place of the fault.
class ExactContent : public testing::Test {
  protected:
    static KeySet keys() {
        std::mt19937_64 random(19);
        KeySet keys(SIEVE_FIELD_SRC);
        for (const std::uint32_t address : random_list(40'000, random)) keys.add_ipv4(address);
        for (int i = 0; i < 50; i++) keys.add(key_of(address_number(0x20010db800000000, random())));
        return keys;
    }

    void refused(const std::string& place = {}) {
        image.seal();
        const Status status = image.check("x.img");
        expect_error(status, ErrorKind::bad_input);
        if (!status) {
            EXPECT_TRUE(status.error().message.starts_with("x.img: " + place)) << place;
        }
    }

    sieve_exact& geometry() { return reinterpret_cast<sieve_exact&>(image.lookup()); }
    sieve_exact_ipv6& ipv6() { return reinterpret_cast<sieve_exact_ipv6&>(image.filter()[0]); }
    __u64* words() { return image.filter()[SIEVE_EXACT_IPV4_LINE].word; }
    sieve_line& ipv6_line(std::uint32_t line) {
        return image.filter()[sieve_exact_ipv6_line(&geometry()) + line];
    }

    /// A word and a lane whose content is as wanted.
    std::pair<std::uint32_t, std::uint32_t> find(const std::function<bool(std::uint64_t content)>& wanted) {
        const exact::Lanes lanes(geometry());
        for (std::uint32_t word = 0;; word++)
            for (std::uint32_t lane = 0; lane < lanes.count(); lane++)
                if (wanted(lanes.get(words()[word], lane))) return {word, lane};
    }
    /// A line of the IPv6 part and a place with an address.
    std::pair<std::uint32_t, int> find_ipv6(bool with_address) {
        for (std::uint32_t line = 0;; line++)
            for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++)
                if ((exact::address_at(ipv6_line(line), place) != exact::no_address) == with_address)
                    return {line, place};
    }
    void put(std::uint32_t word, std::uint32_t lane, std::uint64_t content) {
        words()[word] = exact::Lanes(geometry()).with(words()[word], lane, content);
    }

    Image image = image_of(keys());
};

TEST_F(ExactContent, IsAcceptedAsBuilt) {
    image.seal();
    EXPECT_TRUE(image.check("x.img"));
}

/// An image of a set in force has marks, those of keys.
TEST_F(ExactContent, WithAMarkOfNoKeyIsRefused) {
    image = image_of(keys(), true);
    const exact::Lanes lanes(geometry());
    const auto [word, lane] = find([&](std::uint64_t content) { return content != lanes.none(); });
    words()[word] |= lanes.mark(lane);
    const auto [line, place] = find_ipv6(true);
    ipv6_line(line).word[place] ^= SIEVE_EXACT_IPV6_MARK;
    image.seal();
    EXPECT_TRUE(image.check("x.img"));
    const auto [free_word, free_lane] = find([&](std::uint64_t content) { return content == lanes.none(); });
    words()[free_word] |= lanes.mark(free_lane);
    refused(fmt::format("word {}, lane {}: ", free_word, free_lane));
}

/// The bits that would be marks are bits of something else.
TEST_F(ExactContent, WithAMarkWhereThereAreNoneIsRefused) {
    const auto [line, place] = find_ipv6(true);
    ipv6_line(line).word[place] ^= SIEVE_EXACT_IPV6_MARK;
    refused();
}

TEST_F(ExactContent, WithALaneBeyondTheRangeIsRefused) {
    const exact::Lanes lanes(geometry());
    const auto [word, lane] = find([&](std::uint64_t content) { return content != lanes.none(); });
    put(word, lane, 2 * std::uint64_t{geometry().range});
    refused(fmt::format("word {}, lane {}: ", word, lane));
}

TEST_F(ExactContent, WithAnEntryThatNoAddressHasIsRefused) {
    // Some words have fewer addresses than remainders.
    const exact::Lanes lanes(geometry());
    for (std::uint32_t word = 0; word < geometry().words; word++)
        for (std::uint32_t rest = geometry().range - 2; rest < geometry().range; rest++) {
            const auto at = sieve_exact_locate(&geometry(), exact::permuted_of(geometry(), {word, rest}));
            if (at.first == word && at.rest == rest) continue;
            put(word, 0, rest);
            return refused(fmt::format("word {}, lane 0: ", word));
        }
    FAIL() << "every remainder has an address";
}

TEST_F(ExactContent, WithBitsOfNoLaneIsRefused) {
    ASSERT_NE(exact::Lanes(geometry()).no_lane(), 0U) << "choose another number of keys";
    words()[11] |= std::uint64_t{1} << 63;
    refused("word 11: ");
}

TEST_F(ExactContent, WithTwoCopiesOfAKeyIsRefused) {
    // Puts a copy of some key into its other word, which has room for it.
    const auto copy = [&](bool from_second) {
        const exact::Lanes lanes(geometry());
        for (std::uint32_t word = 0; word < geometry().words; word++) {
            for (std::uint32_t lane = 0; lane < lanes.count(); lane++) {
                const std::uint64_t content = lanes.get(words()[word], lane);
                if (content == lanes.none() || lanes.is_second(content) != from_second) continue;
                const std::uint32_t other = lanes.other_word(word, content);
                const std::uint64_t free = lanes.free(words()[other]);
                if (free == 0) continue;
                put(other, lanes.lowest(free), lanes.other_content(content));
                return true;
            }
        }
        return false;
    };
    for (const bool from_second : {false, true}) {
        image = image_of(keys());
        ASSERT_TRUE(copy(from_second));
        refused();
    }
    image = image_of(keys());
    const exact::Lanes lanes(geometry());
    for (std::uint32_t word = 0; word < geometry().words; word++) {
        const std::uint64_t free = lanes.free(words()[word]);
        if (free == 0 || lanes.get(words()[word], 0) == lanes.none()) continue;
        put(word, lanes.lowest(free), lanes.get(words()[word], 0));
        return refused(fmt::format("word {}, lane 0: ", word));
    }
    FAIL() << "no word has room for a copy";
}

TEST_F(ExactContent, WithOtherKeysThanItsSumIsRefused) {
    const exact::Lanes lanes(geometry());
    const auto [word, lane] = find([&](std::uint64_t content) { return content < 1'000 && content != 0; });
    put(word, lane, lanes.get(words()[word], lane) ^ 1);
    refused();
    put(word, lane, lanes.none());
    refused();
    image = image_of(keys());
    image.file().key_sum[1]++;
    refused();
}

TEST_F(ExactContent, WithAnotherIpv6PartIsRefused) {
    const auto [line, place] = find_ipv6(true);
    exact::put_address(ipv6_line(line), place, v4(5));
    refused(fmt::format("line {} of the IPv6 part, place {}: ", line, place));

    image = image_of(keys());
    const uint128 address = exact::address_at(ipv6_line(line), place);
    std::uint32_t elsewhere = 0;
    const sieve_exact_lines of_it = exact::lines_of(ipv6(), address);
    while (elsewhere == of_it.first || elsewhere == of_it.second) elsewhere++;
    exact::put_address(ipv6_line(elsewhere), 3, address);
    refused(fmt::format("line {} of the IPv6 part, place 3: ", elsewhere));

    for (const std::uint32_t to : {of_it.first, of_it.second}) {
        image = image_of(keys());
        exact::put_address(ipv6_line(to), to == line && place == 3 ? 2 : 3, address);
        refused();
    }

    image = image_of(keys());
    exact::put_address(ipv6_line(line), place, exact::no_address);
    refused();

    const std::function<void(sieve_exact_ipv6&)> faults[] = {
        [](sieve_exact_ipv6& part) { part.lines++; },
        [](sieve_exact_ipv6& part) { part.lines = 0; },
        [](sieve_exact_ipv6& part) { part.reserved0 = 1; },
        [](sieve_exact_ipv6& part) { part.reserved[2] = 1; },
        [](sieve_exact_ipv6& part) { part.hash_key[0]++; },
    };
    for (const auto& change : faults) {
        image = image_of(keys());
        change(ipv6());
        refused();
    }
}

/// Whatever the lines hold, lookups and listings end. Run this under AddressSanitizer, too.
TEST_F(ExactContent, OfAnySortIsSurvived) {
    std::mt19937_64 random(20);
    for (int round = 0; round < 30; round++) {
        std::vector<sieve_line> lines(image.filter().begin(), image.filter().end());
        for (sieve_line& line : lines)
            if (random() % 4 == 0)
                for (auto& word : line.word) word = random();
        for (int i = 0; i < 100; i++) {
            (void)exact_kind.holds_key(image.lookup(), key_of(v4(static_cast<std::uint32_t>(random()))),
                                       lines);
            (void)exact_kind.holds_key(image.lookup(), key_of(address_number(random(), random())), lines);
        }
        EXPECT_FALSE(exact_kind.add_up(image.lookup(), lines));
        EXPECT_FALSE(exact_kind.list(image.lookup(), lines));
        EXPECT_FALSE(exact_kind.for_each_range(image.lookup(), lines, [](const AddressRange&) {}));
    }
}

} // namespace
} // namespace sieve
