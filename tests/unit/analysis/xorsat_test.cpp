// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/analysis/xorsat.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <vector>

namespace sieve::analysis::xorsat {
namespace {

// Systems of random equations, until one contradicts: how many equations were solvable.
TEST(XorsatAnalysis, SolvabilityIsThatOfRandomEquations) {
    constexpr int systems = 4000;
    std::mt19937_64 random(1);
    std::vector<int> solved(unknowns + 60, 0);
    for (int s = 0; s < systems; s++) {
        // The first 448 equations are independent, but for one system in 2^48: left out, with as many
        // unknowns.
        constexpr int left_out = 448;
        constexpr int rest = unknowns - left_out;
        std::vector<std::optional<std::uint64_t>> by_first_bit(rest);
        for (int k = left_out;; k++) {
            solved[static_cast<std::size_t>(k)]++;
            std::uint64_t row =
                random() & ((std::uint64_t{1} << (rest + 1)) - 1); // and the right side on top
            int bit = 0;
            for (; bit < rest; bit++) {
                if ((row >> bit & 1) == 0) continue;
                if (!by_first_bit[static_cast<std::size_t>(bit)]) {
                    by_first_bit[static_cast<std::size_t>(bit)] = row;
                    break;
                }
                row ^= *by_first_bit[static_cast<std::size_t>(bit)];
            }
            if (bit == rest && row != 0) break;
        }
    }
    for (const int equations : {480, 490, 494, 495, 496, 497, 498, 500, 505}) {
        const double p = solvable(equations);
        const double share = static_cast<double>(solved[static_cast<std::size_t>(equations)]) / systems;
        EXPECT_NEAR(share, p, 4 * std::sqrt(p * (1 - p) / systems) + 1e-6) << equations;
    }
    EXPECT_EQ(solvable(0), 1);
    EXPECT_EQ(solvable(100'000), 0);
}

TEST(XorsatAnalysis, RateOfQ) {
    EXPECT_DOUBLE_EQ(rate_of_q(0), 1);
    EXPECT_DOUBLE_EQ(rate_of_q(8), 0.5);
    EXPECT_DOUBLE_EQ(rate_of_q(12), 0.375); // half of the classes compare one bit, half two
    EXPECT_DOUBLE_EQ(rate_of_q(128), std::ldexp(1, -16));
}

TEST(XorsatAnalysis, RatesOfLinesAndFilters) {
    // Near 2^(-496 / keys), the limit, and never below it.
    for (const int keys : {21, 25, 31, 40, 62}) {
        const double limit = std::exp2(-static_cast<double>(unknowns) / keys);
        EXPECT_GT(rate_of_line(keys), limit);
        EXPECT_LT(rate_of_line(keys), 1.13 * limit) << keys;
    }
    // Those of 8000 lines each that were solved.
    EXPECT_NEAR(rate_of_line(16), 5.66e-10, 0.4e-10);
    EXPECT_NEAR(rate_of_line(18), 5.91e-9, 0.2e-9);
    EXPECT_NEAR(rate_of_line(21), 8.76e-8, 0.15e-8);
    EXPECT_NEAR(rate_of_line(31), 1.61e-5, 0.02e-5);
    EXPECT_DOUBLE_EQ(rate_of_line(0), rate_of_q(most_q));
    EXPECT_DOUBLE_EQ(rate_of_line(100'000), 1);
    double last = 0;
    for (int keys = 1; keys < 1100; keys += 7) {
        EXPECT_GE(rate_of_line(keys), last);
        last = rate_of_line(keys);
    }
    EXPECT_NEAR(rate_without_exports(16), 6.6e-5, 0.1e-5);
    EXPECT_GT(rate_without_exports(1), 0.5);
    EXPECT_LT(rate_without_exports(200), 3e-10);
}

} // namespace
} // namespace sieve::analysis::xorsat
