// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_bucket.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace sieve {
namespace {

constexpr CountingShape word{}; // 57 bits, one-bit counters, semi-sorted, minimal remainder 8
constexpr CountingShape plain{
    .bits = 120, .counter_bits = 1, .sorted_bits = 0, .minimal = 14, .least_cells = 8, .most_cells = 8};
constexpr CountingShape two_sizes{
    .bits = 120, .counter_bits = 1, .sorted_bits = 0, .minimal = 11, .most_cells = 10, .two_sizes = true};

TEST(CountingShape, LengthsAndCapacity) {
    const std::uint32_t expected[] = {57, 28, 19, 14, 11, 9, 8};
    for (std::uint32_t m = 1; m <= 7; m++) EXPECT_EQ(word.length(m), expected[m - 1]);
    EXPECT_EQ(word.capacity(), 7U);
    EXPECT_EQ((CountingShape{.minimal = 9}).capacity(), 6U);
    EXPECT_EQ(plain.length(8), 14U); // 120 / 8 less the counter
    EXPECT_EQ(plain.capacity(), 8U);
}

TEST(CountingBucket, RemaindersShrinkAndDoNotGrow) {
    CountingBucket bucket;
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> held;
    for (std::uint32_t m = 1; m <= 7; m++) {
        held.push_back(random());
        ASSERT_TRUE(bucket.insert(held.back(), word));
        EXPECT_EQ(bucket.maximum(), m);
        for (std::uint32_t i = 0; i < bucket.load(); i++) EXPECT_EQ(bucket.cell(i).length, word.length(m));
    }
    for (int i = 0; i < 6; i++) {
        ASSERT_TRUE(bucket.erase(held.back()));
        held.pop_back();
    }
    EXPECT_EQ(bucket.load(), 1U);
    EXPECT_EQ(bucket.maximum(), 7U);
    ASSERT_TRUE(bucket.insert(random(), word));
    EXPECT_EQ(bucket.cell(1).length, word.length(7));
}

TEST(CountingBucket, FullIsRefusedAndChangesNothing) {
    CountingBucket bucket;
    for (std::uint64_t i = 1; i <= 7; i++) ASSERT_TRUE(bucket.insert(i << 56, word));
    EXPECT_FALSE(bucket.insert(std::uint64_t{0x80} << 56, word));
    EXPECT_EQ(bucket.load(), 7U);
    // A remainder that is already here can still be counted once more, in its counter of one bit.
    EXPECT_TRUE(bucket.insert(std::uint64_t{3} << 56, word));
    EXPECT_FALSE(bucket.insert(std::uint64_t{3} << 56, word));
    EXPECT_TRUE(bucket.erase(std::uint64_t{3} << 56));
    EXPECT_TRUE(bucket.erase(std::uint64_t{3} << 56));
    EXPECT_FALSE(bucket.erase(std::uint64_t{3} << 56));
    EXPECT_EQ(bucket.load(), 6U);
}

TEST(CountingBucket, CountersNeverWrap) {
    for (std::uint32_t bits = 0; bits <= 2; bits++) {
        const CountingShape shape{.counter_bits = bits};
        CountingBucket bucket;
        std::uint32_t keys = 0;
        while (bucket.insert(0x123456789abcdef0ULL, shape)) keys++;
        EXPECT_EQ(keys, shape.capacity() << bits); // every cell full
        for (std::uint32_t i = 0; i < keys; i++) {
            EXPECT_TRUE(bucket.contains(0x123456789abcdef0ULL));
            EXPECT_TRUE(bucket.erase(0x123456789abcdef0ULL));
        }
        EXPECT_FALSE(bucket.contains(0x123456789abcdef0ULL));
        EXPECT_FALSE(bucket.erase(0x123456789abcdef0ULL));
    }
}

TEST(CountingBucket, DeletesTheLongestMatch) {
    // A short and a long remainder that agree in the short one's bits.
    CountingBucket bucket(7);
    bucket.restore({.remainder = 0xab00000000000000ULL, .length = 12, .keys = 1});
    bucket.restore({.remainder = 0xab0cd00000000000ULL, .length = 20, .keys = 1});
    ASSERT_TRUE(bucket.erase(0xab0cd12345678901ULL));
    EXPECT_EQ(bucket.load(), 1U);
    EXPECT_EQ(bucket.cell(0).length, 12U);
    ASSERT_TRUE(bucket.erase(0xab0ffffffffffff0ULL));
    EXPECT_EQ(bucket.load(), 0U);
}

TEST(CountingBucket, RateCountsWhatIsCoveredOnce) {
    CountingBucket bucket(7);
    bucket.restore({.remainder = 0xab00000000000000ULL, .length = 12, .keys = 1});
    bucket.restore({.remainder = 0xab0cd00000000000ULL, .length = 20, .keys = 2});
    bucket.restore({.remainder = 0xab00000000000000ULL, .length = 12, .keys = 1});
    bucket.restore({.remainder = 0x1230000000000000ULL, .length = 16, .keys = 1});
    EXPECT_DOUBLE_EQ(bucket.rate(), std::ldexp(1, -12) + std::ldexp(1, -16));
}

// Compares with a plain list of keys: no present key is ever missed, whatever was inserted and deleted.
// Callers keep keys of one minimal remainder together in one bucket, which makes deletions safe. Here there
// is only one bucket.
TEST(CountingBucket, NeverLosesAKey) {
    std::mt19937_64 random(2);
    for (const CountingShape& shape : {word, plain, two_sizes, CountingShape{.counter_bits = 0},
                                       CountingShape{.counter_bits = 2, .minimal = 6}})
        for (int trial = 0; trial < 200; trial++) {
            CountingBucket bucket;
            std::vector<std::uint64_t> present;
            for (int step = 0; step < 100; step++) {
                if (!present.empty() && random() % 2 == 0) {
                    const std::size_t victim = random() % present.size();
                    ASSERT_TRUE(bucket.erase(present[victim]));
                    present.erase(present.begin() + static_cast<std::ptrdiff_t>(victim));
                } else {
                    // Few leading values, so that remainders often coincide.
                    const std::uint64_t key = (random() % 4 << 62) | (random() % 2 << 45) |
                                              (random() % 16 << 40) | (random() >> 24);
                    if (bucket.insert(key, shape)) present.push_back(key);
                }
                std::uint32_t keys = 0;
                std::uint32_t bits = 0;
                for (std::uint32_t i = 0; i < bucket.load(); i++) {
                    keys += bucket.cell(i).keys;
                    bits += bucket.cell(i).length - shape.sorted_bits + shape.counter_bits;
                    ASSERT_GE(bucket.cell(i).length, shape.minimal);
                    ASSERT_LE(bucket.cell(i).keys, 1U << shape.counter_bits);
                }
                ASSERT_EQ(keys, present.size());
                ASSERT_LE(bits, shape.bits);
                for (const std::uint64_t key : present) ASSERT_TRUE(bucket.contains(key));
            }
        }
}

TEST(CountingBucket, TwoSizesGiveNewRemaindersWhatIsLeft) {
    CountingBucket bucket;
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> held;
    const auto lengths = [&bucket] {
        std::vector<std::uint32_t> all;
        for (std::uint32_t i = 0; i < bucket.load(); i++) all.push_back(bucket.cell(i).length);
        std::ranges::sort(all);
        return all;
    };
    for (int i = 0; i < 7; i++) {
        held.push_back(random());
        ASSERT_TRUE(bucket.insert(held.back(), two_sizes));
    }
    // However the first keys were inserted, seven fit with 16 bits and a counter each.
    for (const auto length : lengths()) EXPECT_GE(length, 15U);
    for (int i = 0; i < 4; i++) {
        ASSERT_TRUE(bucket.erase(held.back()));
        held.pop_back();
    }
    ASSERT_TRUE(bucket.insert(random(), two_sizes));
    auto now = lengths();
    ASSERT_EQ(now.size(), 4U);
    EXPECT_EQ(now.back(), std::min(64U, 120 - (now[0] + now[1] + now[2] + 3) - 1));
    now.erase(std::unique(now.begin(), now.end()), now.end());
    EXPECT_EQ(now.size(), 2U);
}

} // namespace
} // namespace sieve
