// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include <sieve/pattern.h>

#include <bit>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "libsieve/filters/pattern_rate.hpp"

namespace {

using sieve::PatternRate;
using sieve::WordFill;

int ones(const sieve_line& line) {
    int sum = 0;
    for (const auto word : line.word) sum += std::popcount(word);
    return sum;
}

sieve_line random_line(std::mt19937_64& random, int words_and) {
    sieve_line line{};
    for (auto& word : line.word) {
        word = random();
        for (int i = 0; i < words_and; i++) word |= random();
    }
    return line;
}

class Pattern : public testing::TestWithParam<std::uint32_t> {};

// The builder's mask and the packet path's probes are the same pattern: a line equal to the mask is covered,
// and the same line with any one bit removed is not.
TEST_P(Pattern, ProbesAskForExactlyTheMask) {
    const std::uint32_t hashes = GetParam();
    std::mt19937_64 random(hashes);
    for (int i = 0; i < 300; i++) {
        const std::uint64_t hash = random();
        sieve_line mask{};
        sieve_pattern_mask(hash, hashes, &mask);
        ASSERT_LE(ones(mask), static_cast<int>(hashes));
        ASSERT_GE(ones(mask), static_cast<int>(hashes) / 2);
        const sieve_line empty{};
        const sieve_line* lines[] = {&mask, &mask, &mask};
        EXPECT_TRUE(sieve_pattern_covered(lines, 1, hash, hashes));
        for (int word = 0; word < SIEVE_LINE_WORDS; word++) {
            for (std::uint64_t rest = mask.word[word]; rest != 0; rest &= rest - 1) {
                sieve_line missing = mask;
                missing.word[word] &= ~(rest & -rest);
                const sieve_line* without[] = {&missing, &missing, &missing};
                EXPECT_FALSE(sieve_pattern_covered(without, 1, hash, hashes));
                EXPECT_FALSE(sieve_pattern_covered(without, 3, hash, hashes));
                const sieve_line* second[] = {&missing, &mask, &empty};
                EXPECT_TRUE(sieve_pattern_covered(second, 2, hash, hashes));
                const sieve_line* third[] = {&empty, &missing, &mask};
                EXPECT_FALSE(sieve_pattern_covered(third, 2, hash, hashes));
                EXPECT_TRUE(sieve_pattern_covered(third, 3, hash, hashes));
            }
        }
    }
}

// PatternRate is the exact probability over hashes: 200,000 random hashes on lines of three fills, within
// five sigma.
TEST_P(Pattern, RateIsTheShareOfCoveredHashes) {
    const std::uint32_t hashes = GetParam();
    std::mt19937_64 random(100 + hashes);
    const PatternRate rate(hashes);
    for (int fill = 0; fill < 3; fill++) {
        const sieve_line line = random_line(random, fill);
        const double expected = rate(sieve::word_fill(line));
        constexpr int trials = 200'000;
        int covered = 0;
        for (int t = 0; t < trials; t++) {
            const sieve_line* lines[] = {&line};
            covered += sieve_pattern_covered(lines, 1, random(), hashes);
        }
        EXPECT_NEAR(covered, expected * trials, 5 * std::sqrt(expected * trials) + 1)
            << hashes << " bits, fill " << fill;
    }
}

INSTANTIATE_TEST_SUITE_P(AllHashes, Pattern, testing::Range(1U, SIEVE_PATTERN_MAX_HASHES + 1U));

// All bits of a line are used equally: chi-square over 512 cells, 511 degrees of freedom, within five sigma.
TEST(PatternSpread, AllBitsAlike) {
    for (const std::uint32_t hashes : {1U, 2U, 4U, 7U, 13U, 24U}) {
        std::mt19937_64 random(hashes);
        std::array<double, SIEVE_LINE_BITS> hits{};
        double total = 0;
        for (int t = 0; t < 40'000; t++) {
            sieve_line mask{};
            sieve_pattern_mask(random(), hashes, &mask);
            for (std::size_t bit = 0; bit < hits.size(); bit++)
                hits[bit] += static_cast<double>((mask.word[bit / 64] >> (bit % 64)) & 1);
        }
        for (const double count : hits) total += count;
        const double mean = total / SIEVE_LINE_BITS;
        double chi_square = 0;
        for (const double count : hits) chi_square += (count - mean) * (count - mean) / mean;
        EXPECT_LT(chi_square, 511 + 5 * std::sqrt(2 * 511.0)) << hashes;
    }
}

} // namespace
