// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/placement/wide_line.hpp"

#include <random>

#include <gtest/gtest.h>

#include "libsieve/filters/pattern_rate.hpp"

namespace sieve {
namespace {

class WideLines : public testing::TestWithParam<std::uint32_t> {};

// Compares with the pattern that the packet path asks for.
TEST_P(WideLines, HaveThePatternOfTheSharedHeader) {
    std::mt19937_64 random(GetParam());
    for (int i = 0; i < 1000; i++) {
        const std::uint64_t hash = random();
        sieve_line expected{};
        sieve_pattern_mask(hash, GetParam(), &expected);
        const WideLine pattern = wide_pattern(hash, GetParam());
        for (int w = 0; w < SIEVE_LINE_WORDS; w++) ASSERT_EQ(pattern[w], expected.word[w]) << "word " << w;
    }
}

// Compares with the plain formula, on lines from empty to full.
TEST_P(WideLines, HaveTheRateOfTheirFill) {
    std::mt19937_64 random(GetParam());
    const PatternRate plain(GetParam());
    const WideRate rate(GetParam());
    for (int i = 0; i < 300; i++) {
        sieve_line lines[2] = {};
        WideLine wide[2] = {};
        for (int l = 0; l < 2; l++)
            for (int w = 0; w < SIEVE_LINE_WORDS; w++) {
                const std::uint64_t bits = random() & random();
                lines[l].word[w] = i % 3 == 0    ? bits
                                   : i % 3 == 1  ? ~bits
                                   : i % 64 < 32 ? 0
                                                 : ~std::uint64_t{0};
                wide[l][w] = lines[l].word[w];
            }
        float first = -1;
        float second = -1;
        rate(wide[0], wide[1], first, second);
        ASSERT_NEAR(first, plain(word_fill(lines[0])), 1e-5F * first);
        ASSERT_NEAR(second, plain(word_fill(lines[1])), 1e-5F * second);
    }
}

// Many lines at once have the very rates that two have: a builder uses both.
TEST_P(WideLines, HaveTheSameRateTogether) {
    std::mt19937_64 random(GetParam());
    const WideRate rate(GetParam());
    for (int i = 0; i < 100; i++) {
        WideLine lines[WideRate::lanes];
        for (WideLine& line : lines)
            for (int w = 0; w < SIEVE_LINE_WORDS; w++)
                line[w] = i == 0       ? 0
                          : i == 1     ? ~std::uint64_t{0}
                          : i % 2 == 0 ? random()
                                       : random() | random();
        float together[WideRate::lanes];
        rate.of_many(lines, together);
        for (int l = 0; l < WideRate::lanes; l += 2) {
            float first = -1;
            float second = -1;
            rate(lines[l], lines[l + 1], first, second);
            ASSERT_EQ(together[l], first);
            ASSERT_EQ(together[l + 1], second);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Hashes, WideLines,
                         testing::Range(std::uint32_t{SIEVE_PATTERN_MIN_HASHES},
                                        std::uint32_t{SIEVE_PATTERN_MAX_HASHES} + 1));

} // namespace
} // namespace sieve
