// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/blocked/blocked_placement.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <sieve/blocked.h>

#include "libsieve/filters/placement/distinct_hashes.hpp"
#include "libsieve/filters/placement/shards.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve {
namespace {

sieve_lookup geometry(std::uint32_t choices, std::uint32_t hashes, std::uint32_t lines,
                      std::uint16_t alpha = 0xffff) {
    sieve_lookup lookup{};
    lookup.kind = SIEVE_KIND_BLOCKED;
    lookup.choices = static_cast<__u8>(choices);
    lookup.hashes = static_cast<__u8>(hashes);
    lookup.buckets = lines;
    lookup.shard_bits = static_cast<__u8>(shard_bits_for(lines));
    lookup.alpha = alpha;
    return lookup;
}

std::vector<sieve_hash> random_hashes(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<sieve_hash> hashes(count);
    for (auto& hash : hashes) hash = {random(), random()};
    std::sort(hashes.begin(), hashes.end(), hash_order);
    return hashes;
}

struct Shape {
    std::uint32_t choices;
    std::uint32_t hashes;
    std::size_t keys;
    std::uint32_t lines;
    std::uint16_t alpha = 0xffff;
};
class BlockedPlacement : public testing::TestWithParam<Shape> {};

// Only the keys' bits are set, and each key has all of its bits in one of its lines. The lines do not depend
// on the number of threads.
TEST_P(BlockedPlacement, HoldsEveryKeyTheSameWithAnyThreads) {
    const Shape& shape = GetParam();
    const sieve_lookup lookup = geometry(shape.choices, shape.hashes, shape.lines, shape.alpha);
    const std::vector<sieve_hash> keys = random_hashes(shape.keys, 3);
    std::vector<sieve_line> filter[2];
    for (int i = 0; i < 2; i++) {
        const ThreadLimit limit(i == 0 ? 1 : 4);
        filter[i].resize(shape.lines);
        place_blocked(keys, lookup, filter[i], {.rounds = 5, .seed = 9}, {});
    }
    EXPECT_EQ(std::memcmp(filter[0].data(), filter[1].data(), shape.lines * sizeof(sieve_line)), 0);
    std::vector<sieve_line> allowed(shape.lines);
    for (const sieve_hash& key : keys) {
        std::uint32_t at[SIEVE_MAX_CHOICES];
        sieve_blocked_locate(&lookup, key, at);
        const sieve_line* lines[SIEVE_MAX_CHOICES];
        sieve_line mask{};
        sieve_pattern_mask(key.test, lookup.hashes, &mask);
        for (std::uint32_t c = 0; c < SIEVE_MAX_CHOICES; c++) {
            lines[c] = &filter[0][at[c]];
            for (int w = 0; w < SIEVE_LINE_WORDS; w++) allowed[at[c]].word[w] |= mask.word[w];
        }
        ASSERT_TRUE(sieve_blocked_test(&lookup, key, lines));
    }
    for (std::size_t l = 0; l < shape.lines; l++)
        for (int w = 0; w < SIEVE_LINE_WORDS; w++)
            ASSERT_EQ(filter[0][l].word[w] & ~allowed[l].word[w], 0U) << "line " << l;
}

INSTANTIATE_TEST_SUITE_P(Shapes, BlockedPlacement,
                         testing::Values(Shape{1, 10, 50'000, 1600}, Shape{2, 13, 1, 1}, Shape{2, 13, 100, 1},
                                         Shape{2, 13, 100'000, 3125}, Shape{2, 1, 100'000, 400},
                                         // Several shards, two of them without a key.
                                         Shape{1, 10, 60'000, 4098}, Shape{2, 13, 120'000, 8196},
                                         Shape{2, 20, 2, 4096}, Shape{2, 13, 60'000, 18'000, 0x4000},
                                         Shape{3, 14, 100'000, 16'384},
                                         // Far too many keys: counters meet their limit.
                                         Shape{2, 31, 20'000, 50}, Shape{2, 13, 50'000, 5000, 0x4000},
                                         Shape{3, 14, 100'000, 6000}, Shape{3, 14, 10, 2}));

// Each shard is placed alone: its lines are what they are without any key of the other shards.
TEST(BlockedShards, KnowNothingOfEachOther) {
    const sieve_lookup lookup = geometry(2, 13, 8192);
    const std::vector<sieve_hash> keys = random_hashes(100'000, 7);
    std::vector<sieve_line> together(8192);
    place_blocked(keys, lookup, together, {.rounds = 3, .seed = 4}, {});
    for (std::uint32_t shard = 0; shard < 4; shard++) {
        const auto own = keys_of_shard(keys, lookup.shard_bits, shard);
        std::vector<sieve_line> alone(8192);
        place_blocked(own, lookup, alone, {.rounds = 3, .seed = 4}, {});
        EXPECT_EQ(std::memcmp(&alone[2048 * shard], &together[2048 * shard], 2048 * sizeof(sieve_line)), 0);
        EXPECT_TRUE(std::all_of(alone.begin(), alone.begin() + 2048 * shard, [](const sieve_line& line) {
            return std::all_of(std::begin(line.word), std::end(line.word),
                               [](auto word) { return word == 0; });
        }));
    }
}

// Rebalancing lowers the rate that it minimises. More rounds lower it further. The reported rate is that of
// the lines.
TEST(BlockedPlacementRate, FallsWithRounds) {
    const sieve_lookup lookup = geometry(2, 13, 1024);
    const std::vector<sieve_hash> keys = random_hashes(32 * 1024, 5);
    double before = 1;
    for (const std::uint32_t rounds : {0U, 4U, 16U, 64U}) {
        std::vector<sieve_line> filter(1024);
        const PlacementReport report = place_blocked(keys, lookup, filter, {.rounds = rounds, .seed = 2}, {});
        EXPECT_EQ(report.rounds, rounds);
        EXPECT_LT(report.final_rate, 0.99 * before) << rounds << " rounds";
        before = report.final_rate;
    }
}

TEST(BlockedPlacementRate, ReportsProgressThatOnlyRises) {
    const sieve_lookup lookup = geometry(2, 13, 32'768);
    std::vector<sieve_line> filter(32'768);
    double last = 0;
    int calls = 0;
    place_blocked(random_hashes(100'000, 5), lookup, filter, {.rounds = 3, .seed = 2},
                  [&](std::string_view, double share) {
                      EXPECT_GE(share, last);
                      EXPECT_LE(share, 1);
                      last = share;
                      calls++;
                  });
    EXPECT_EQ(calls, 16);
    EXPECT_NEAR(last, 1, 1e-9);
}

// The lines take time, too, and so do rounds.
TEST(BlockedPlacementRate, ReportsProgressOfOneKeyAndOfManyRounds) {
    const auto shares = [](std::size_t keys, std::uint32_t lines, std::uint32_t rounds) {
        std::vector<sieve_line> filter(lines);
        std::set<double> told;
        place_blocked(random_hashes(keys, 5), geometry(2, 13, lines), filter, {.rounds = rounds, .seed = 2},
                      [&](std::string_view, double share) { told.insert(share); });
        EXPECT_EQ(*told.rbegin(), 1);
        return told.size();
    };
    EXPECT_EQ(shares(1, 32'768, 1), 16U);
    EXPECT_GT(shares(10, 16, 1'000), 10U);
}

} // namespace
} // namespace sieve
