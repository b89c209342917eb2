// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Published numbers: less-hashing paper, sections 8 and 9.
#include "libsieve/analysis/less_hashing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sampling.hpp"

namespace sieve::analysis::less_hashing {
namespace {

TEST(LessHashing, PublishedLimitOfFigure2) {
    EXPECT_EQ(best_k(8), 6U);
    EXPECT_NEAR(false_positive_limit(8, 6), 0.021577, 0.5e-6);
    EXPECT_EQ(std::ceil(10 / false_positive_limit(8, 6)), 464);
}

TEST(LessHashing, BestKIsTheBetterNeighbourOfCLn2) {
    EXPECT_EQ(best_k(4), 3U);
    EXPECT_EQ(best_k(12), 8U);
    EXPECT_EQ(best_k(16), 11U);
    EXPECT_EQ(best_k(0.5), 1U);
    for (double c = 2; c < 40; c += 0.7) {
        const unsigned k = best_k(c);
        EXPECT_LE(false_positive_limit(c, k), false_positive_limit(c, k + 1));
        EXPECT_LE(false_positive_limit(c, k), false_positive_limit(c, std::max(1U, k - 1)));
    }
}

TEST(LessHashing, DoubleHashingTendsToTheLimit) {
    // h1 + i h2 mod m, m prime, 8 bits per key.
    constexpr std::size_t m = 80'021;
    constexpr std::size_t keys = m / 8;
    test::Mean hits;
    for (unsigned trial = 0; trial < 10; ++trial) {
        test::Sampler random(50 + trial);
        std::vector<bool> bits(m);
        for (std::size_t key = 0; key < keys; ++key) {
            std::size_t at = random.below(m);
            const std::size_t step = random.below(m);
            for (int i = 0; i < 6; ++i, at = (at + step) % m) bits[at] = true;
        }
        constexpr int queries = 40'000;
        int positive = 0;
        for (int q = 0; q < queries; ++q) {
            std::size_t at = random.below(m);
            const std::size_t step = random.below(m);
            bool all = true;
            for (int i = 0; i < 6; ++i, at = (at + step) % m) all = all && bits[at];
            positive += all ? 1 : 0;
        }
        hits.add(static_cast<double>(positive) / queries);
    }
    EXPECT_LT(hits.sigma() / hits.value(), 0.02);
    EXPECT_NEAR(false_positive_limit(8, 6), hits.value(), 5 * hits.sigma());
}

TEST(LessHashing, DensityIsTheLimitOfTheBinomial) {
    const double p = 0.0215771;
    const double q = 46'400; // a hundred times Figure 2's, where the normal law is good to a few per mille
    const double sigma = std::sqrt(q * p * (1 - p));
    double total = 0;
    for (double x = 0; x < 2000; ++x) {
        total += false_positives_density(x, q, p);
        if (std::abs(x - q * p) > 2 * sigma) continue;
        const double log_pmf = std::lgamma(q + 1) - std::lgamma(x + 1) - std::lgamma(q - x + 1) +
                               x * std::log(p) + (q - x) * std::log1p(-p);
        EXPECT_NEAR(false_positives_density(x, q, p) / std::exp(log_pmf), 1, 0.03) << "x=" << x;
    }
    EXPECT_NEAR(total, 1, 1e-9);
    EXPECT_NEAR(false_positives_density(464 * p, 464, p), 1 / std::sqrt(2 * M_PI * 464 * p * (1 - p)), 1e-15);
}

TEST(CountMin, BoundByHand) {
    EXPECT_NEAR(count_min_overestimate_bound(101, 3, 0.1), 20.0 / (101 * 101) + std::pow(20.0 / 101, 3),
                1e-15);
    EXPECT_EQ(count_min_overestimate_bound(3, 2, 0.1), 1.0);
}

TEST(CountMin, ShapeKeepsThePromiseOfTheTheorem) {
    for (const double epsilon : {0.5, 0.1, 0.013, 1e-4}) {
        const CountMinShape s = count_min_shape(epsilon);
        EXPECT_LE(count_min_overestimate_bound(static_cast<double>(s.width), s.depth, epsilon), epsilon);
        for (unsigned long f = 2; f < s.width && f < 100; ++f) EXPECT_NE(s.width % f, 0U);
        EXPECT_GE(static_cast<double>(s.width), 2 * M_E / epsilon);
    }
    EXPECT_EQ(count_min_shape(0.1).width, 59U); // 2e/0.1 = 54.4
    const double three =
        std::exp(-3.0) / (1 - std::exp(-2.0) / 2); // the epsilon for which d = 3 just suffices
    EXPECT_EQ(count_min_shape(three * 1.001).depth, 3U);
    EXPECT_EQ(count_min_shape(three * 0.999).depth, 4U);
    EXPECT_EQ(count_min_shape(0.1).depth, 3U); // ln(10/0.932) = 2.37
}

TEST(CountMin, SketchOfOneHeavyItemStaysWithinTheBound) {
    // Another item holds nearly all of N. The estimate is too high only if both hashes collide: 1/w^2,
    // because w is prime.
    constexpr std::size_t width = 11;
    constexpr unsigned depth = 3;
    constexpr int trials = 200'000;
    test::Sampler random(9);
    int over = 0;
    for (int trial = 0; trial < trials; ++trial) {
        const std::size_t mine[2] = {random.below(width), random.below(width)};
        const std::size_t heavy[2] = {random.below(width), random.below(width)};
        bool all_rows = true;
        for (unsigned j = 0; j < depth; ++j)
            all_rows = all_rows && (mine[0] + j * mine[1]) % width == (heavy[0] + j * heavy[1]) % width;
        over += all_rows ? 1 : 0;
    }
    const double rate = static_cast<double>(over) / trials;
    EXPECT_NEAR(rate, 1.0 / (width * width), 5 * std::sqrt(rate / trials));
    for (const double epsilon : {0.2, 0.5, 0.9}) {
        const double bound = count_min_overestimate_bound(width, depth, epsilon);
        EXPECT_LE(rate, bound);
        EXPECT_LT(bound, 1);
    }
}

} // namespace
} // namespace sieve::analysis::less_hashing
