// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/blocked/blocked_passes.hpp"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/filters/pattern_rate.hpp"
#include "libsieve/util/parallel/huge_array.hpp"

namespace sieve {
namespace {

struct Shape {
    std::uint32_t choices;
    std::uint32_t hashes;
    std::size_t keys;
    std::uint32_t lines;
};
class BlockedPasses : public testing::TestWithParam<Shape> {};

// After each pass, a line holds the patterns of the keys that chose it and nothing else, and the rate beside
// it is its own. In a few lines nearly every move changes a line of the next one.
TEST_P(BlockedPasses, KeepLinesAndRatesInStep) {
    const auto& [choices, hashes, keys, lines] = GetParam();
    sieve_lookup lookup{};
    lookup.choices = static_cast<__u8>(choices);
    lookup.hashes = static_cast<__u8>(hashes);
    std::mt19937_64 random(keys);
    std::vector<std::uint64_t> tests(keys);
    std::vector<std::uint32_t> places((keys + 1) * choices);
    for (std::uint64_t& test : tests) test = random();
    for (std::size_t i = 0; i < keys * choices; i++) places[i] = static_cast<std::uint32_t>(random() % lines);
    std::vector<std::uint8_t> choice(keys);
    HugeArray<LineCounters> counters(lines);
    std::vector<float> rates(lines);
    const BlockedShard shard{.lookup = lookup,
                             .keys = keys,
                             .tests = tests.data(),
                             .places = places.data(),
                             .choice = choice.data(),
                             .lines = counters.data(),
                             .rates = rates.data()};
    const PatternRate rate(hashes);
    double mean = 0;
    std::vector<std::uint8_t> before;
    for (int pass = 0; pass < 4; pass++) {
        if (pass == 0)
            put_keys(shard, 1);
        else
            move_keys(shard, static_cast<float>(mean), static_cast<std::uint64_t>(pass));
        if (pass > 0 && choices > 1 && keys >= 1000) {
            EXPECT_NE(before, choice) << "no key moved";
        }
        before = choice;
        std::vector<sieve_line> expected(lines);
        for (std::size_t i = 0; i < keys; i++) {
            sieve_line mask{};
            sieve_pattern_mask(tests[i], hashes, &mask);
            ASSERT_LT(choice[i], choices);
            for (int w = 0; w < SIEVE_LINE_WORDS; w++)
                expected[places[i * choices + choice[i]]].word[w] |= mask.word[w];
        }
        double sum = 0;
        for (std::uint32_t l = 0; l < lines; l++) {
            const WideLine set = counters[l].set();
            ASSERT_EQ(std::memcmp(&set, &expected[l], sizeof(set)), 0) << "line " << l << ", pass " << pass;
            const float own = rate(word_fill(expected[l]));
            ASSERT_NEAR(rates[l], own, 1e-5F * own) << "line " << l << ", pass " << pass;
            sum += own;
        }
        mean = sum / static_cast<double>(keys);
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BlockedPasses,
                         testing::Values(Shape{1, 10, 500, 20}, Shape{2, 13, 1, 1}, Shape{2, 13, 15, 3},
                                         Shape{2, 13, 100, 4}, Shape{2, 13, 1003, 32}, Shape{2, 5, 2000, 32},
                                         Shape{2, 20, 20'000, 1000}, Shape{3, 14, 100, 4},
                                         Shape{3, 27, 1003, 64}, Shape{3, 14, 20'000, 700}));

} // namespace
} // namespace sieve
