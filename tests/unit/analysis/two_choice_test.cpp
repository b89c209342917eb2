// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Published numbers: two-choice paper, Tables 1 and 2 and the text between them.
#include "libsieve/analysis/two_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sampling.hpp"

namespace sieve::analysis::two_choice {
namespace {

/// E[min] of c binomials, summed over all c-tuples of their values.
double expected_min_by_enumeration(double zeros, unsigned k, unsigned groups) {
    std::vector<double> pmf(k + 1);
    for (unsigned x = 0; x <= k; ++x)
        pmf[x] = std::tgamma(k + 1.0) / std::tgamma(x + 1.0) / std::tgamma(k - x + 1.0) * std::pow(zeros, x) *
                 std::pow(1 - zeros, k - x);
    double sum = 0;
    std::vector<unsigned> tuple(groups, 0);
    for (bool more = true; more;) {
        double p = 1;
        for (const unsigned x : tuple) p *= pmf[x];
        sum += p * *std::min_element(tuple.begin(), tuple.end());
        std::size_t i = 0;
        while (i < groups && ++tuple[i] > k) tuple[i++] = 0;
        more = i < groups;
    }
    return sum;
}

TEST(TwoChoice, ExpectedNewOnesEqualsEnumeration) {
    for (const unsigned groups : {1U, 2U, 3U})
        for (const double zeros : {0.9, 0.5, 0.07, 1e-6})
            for (const unsigned k : {1U, 7U, 13U}) {
                const double expected = expected_min_by_enumeration(zeros, k, groups);
                EXPECT_NEAR(expected_new_ones(zeros, k, groups), expected, 1e-12 * expected);
            }
    EXPECT_EQ(expected_new_ones(1, 7, 2), 7);
    EXPECT_EQ(expected_new_ones(0, 7, 2), 0);
}

TEST(TwoChoice, OneGroupIsTheStandardFilter) {
    for (const double bits_per_key : {0.05, 1.0, 8.0, 32.0})
        for (const unsigned k : {1U, 6U, 22U})
            EXPECT_NEAR(fraction_of_ones(bits_per_key, k, 1), -std::expm1(-(k / bits_per_key)), 1e-10);
    EXPECT_NEAR(fpp(8, 6, 1), 0.0215771, 0.5e-7);
}

TEST(TwoChoice, PublishedFractionsOfOnes) { // Table 2
    EXPECT_NEAR(fraction_of_ones(8, 7, 2), 0.5296, 0.5e-4);
    EXPECT_NEAR(fraction_of_ones(8, 7, 3), 0.5019, 0.5e-4);
    EXPECT_NEAR(fraction_of_ones(16, 13, 2), 0.5187, 0.5e-4);
    EXPECT_NEAR(fraction_of_ones(16, 13, 3), 0.4994, 0.5e-4);
    EXPECT_NEAR(fraction_of_ones(32, 24, 2), 0.5016, 0.5e-4);
    EXPECT_NEAR(fraction_of_ones(32, 25, 3), 0.5022, 0.5e-4);
}

TEST(TwoChoice,
     PublishedRatesAtTheBestK) { // Table 1: means of 1000 trials with n = 10,000, good to about 0.1 %
    struct Row {
        double bits_per_key;
        unsigned groups, k;
        double observed;
    };
    for (const Row r : {Row{8, 1, 6, 2.159e-2}, Row{8, 2, 7, 2.323e-2}, Row{8, 3, 7, 2.389e-2},
                        Row{16, 1, 11, 4.588e-4}, Row{16, 2, 13, 3.935e-4}, Row{16, 3, 13, 3.607e-4},
                        Row{32, 1, 22, 2.106e-7}, Row{32, 2, 24, 1.285e-7}, Row{32, 3, 25, 9.980e-8}}) {
        const BestGroupK best = best_k(r.bits_per_key, r.groups);
        EXPECT_EQ(best.k, r.k);
        EXPECT_NEAR(best.fpp, r.observed, 1.1e-3 * r.observed) << r.bits_per_key << " bits, c=" << r.groups;
    }
    EXPECT_NEAR(fpp(16, 12, 2), 3.954e-4, 1e-3 * 3.954e-4);
    EXPECT_NEAR(fpp(16, 14, 2), 4.035e-4, 1e-3 * 4.035e-4);
}

TEST(TwoChoice, RateOfAFilterFromItsOnes) {
    EXPECT_NEAR(fpp_given_ones(0.5, 2, 1), 0.25, 1e-15);
    EXPECT_NEAR(fpp_given_ones(0.5, 2, 3), 1 - 0.75 * 0.75 * 0.75, 1e-15);
    EXPECT_NEAR(fpp_given_ones(0.5, 60, 2) / (2 * 0x1p-60), 1, 1e-12);
    EXPECT_EQ(fpp_given_ones(1, 5, 2), 1);
}

TEST(TwoChoice, EquationIsTheLimitOfGreedyFilling) {
    // A real filter: each group counts the distinct zeros that it would set; ties go to the first group.
    struct Case {
        std::size_t bits_per_key;
        unsigned k, groups;
    };
    constexpr std::size_t keys = 10'000;
    for (const Case c : {Case{8, 7, 2}, Case{16, 13, 3}, Case{8, 6, 1}}) {
        test::Mean ones;
        for (unsigned trial = 0; trial < 12; ++trial) {
            test::Sampler random(trial);
            const std::size_t m = c.bits_per_key * keys;
            std::vector<bool> bits(m);
            std::size_t count = 0;
            for (std::size_t key = 0; key < keys; ++key) {
                std::vector<std::size_t> best;
                for (unsigned g = 0; g < c.groups; ++g) {
                    std::vector<std::size_t> zeros;
                    for (unsigned i = 0; i < c.k; ++i) {
                        const std::size_t bit = random.below(m);
                        if (!bits[bit] && std::find(zeros.begin(), zeros.end(), bit) == zeros.end())
                            zeros.push_back(bit);
                    }
                    if (g == 0 || zeros.size() < best.size()) best = zeros;
                }
                for (const std::size_t bit : best) bits[bit] = true;
                count += best.size();
            }
            ones.add(static_cast<double>(count) / static_cast<double>(m));
        }
        EXPECT_LT(ones.sigma(), 1e-3);
        EXPECT_NEAR(fraction_of_ones(static_cast<double>(c.bits_per_key), c.k, c.groups), ones.value(),
                    6 * ones.sigma() + 1.0 / keys);
    }
}

} // namespace
} // namespace sieve::analysis::two_choice
