// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Published numbers: Grandi, section 3. Python's fractions computed the exact rationals from (18).
#include "sieve-lab/analysis/classic_bloom.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "unit/analysis/sampling.hpp"

namespace sieve::analysis::classic_bloom {
namespace {

/// All C(m, k)^n fillings of a tiny filter, one by one: the distribution of the number of ones.
std::vector<double> enumerate_ones(BloomShape s) {
    std::vector<std::uint64_t> keys;
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << s.m; ++bits)
        if (static_cast<unsigned>(__builtin_popcountll(bits)) == s.k) keys.push_back(bits);
    std::uint64_t fillings = 1;
    for (std::uint64_t i = 0; i < s.n; ++i) fillings *= keys.size();
    std::vector<double> count(s.m + 1, 0.0);
    for (std::uint64_t f = 0; f < fillings; ++f) {
        std::uint64_t bits = 0;
        for (std::uint64_t i = 0, rest = f; i < s.n; ++i, rest /= keys.size())
            bits |= keys[rest % keys.size()];
        ++count[static_cast<unsigned>(__builtin_popcountll(bits))];
    }
    for (double& c : count) c /= static_cast<double>(fillings);
    return count;
}

TEST(ClassicBloomPmf, EqualsTheEnumerationOfAllFillings) {
    for (const BloomShape s : {BloomShape{6, 3, 2}, {7, 2, 3}, {5, 4, 4}, {4, 5, 1}, {4, 2, 4}}) {
        const auto expected = enumerate_ones(s);
        const auto pmf = ones_pmf(s);
        ASSERT_EQ(pmf.size(), expected.size());
        for (std::size_t x = 0; x < pmf.size(); ++x) EXPECT_NEAR(pmf[x], expected[x], 1e-15) << "x=" << x;
    }
}

TEST(ClassicBloomMoments, AreThoseOfThePmf) {
    for (const BloomShape s :
         {BloomShape{128, 16, 5}, {128, 8, 45}, {512, 40, 20}, {64, 1, 9}, {16, 3, 16}, {16, 2, 15}}) {
        const auto pmf = ones_pmf(s);
        double mean = 0;
        for (std::size_t x = 0; x < pmf.size(); ++x) mean += static_cast<double>(x) * pmf[x];
        double variance = 0;
        for (std::size_t x = 0; x < pmf.size(); ++x)
            variance += std::pow(static_cast<double>(x) - mean, 2) * pmf[x];
        EXPECT_NEAR(ones_mean(s), mean, 1e-11 * mean);
        EXPECT_NEAR(ones_variance(s), variance, 1e-10 * variance + 1e-12);
    }
    EXPECT_EQ(ones_mean({64, 0, 3}), 0.0);
    EXPECT_EQ(ones_variance({64, 0, 3}), 0.0);
}

TEST(ClassicBloomMoments, VarianceKeepsItsDigitsInLargeFilters) {
    const BloomShape s{4'000'000'000, 400'000'000, 7};
    const double l = 0.7;
    // The limit is the same as that of the standard filter.
    const double limit = 4e9 * std::exp(-l) * (1 - (1 + l) * std::exp(-l));
    EXPECT_NEAR(ones_variance(s), limit, 1e-7 * limit);
}

TEST(ClassicBloomFpp, EqualsExactRationals) {
    EXPECT_NEAR(fpp({128, 16, 5}) / 0.02179988562978723, 1, 1e-12);
    EXPECT_NEAR(fpp({128, 8, 10}) / 0.00046423339351708864, 1, 1e-12);
    EXPECT_NEAR(fpp({128, 8, 45}) / 0.23105272409088476, 1, 1e-12);
    EXPECT_NEAR(fpp({512, 40, 20}) / 0.01024088659656169, 1, 1e-12);
    EXPECT_NEAR(fpp({512, 13, 30}) / 7.01502235356768e-09, 1, 1e-12);
}

TEST(ClassicBloomFpp, OneProbeIsTheStandardFilter) {
    EXPECT_NEAR(fpp({128, 50, 1}) / standard_bloom::fpp({128, 50, 1}), 1, 1e-13);
}

TEST(ClassicBloomFpp, TableHoldsTheRateOfEveryLoad) {
    const auto table = fpp_table(512, 20, 40);
    ASSERT_EQ(table.size(), 41U);
    EXPECT_EQ(table[0], 0.0);
    EXPECT_NEAR(table[40] / 0.01024088659656169, 1, 1e-12);
    for (const std::uint64_t n : {1U, 17U}) EXPECT_NEAR(table[n] / fpp({512, n, 20}), 1, 1e-13);
}

/// FPP_C by the direct alternating sum (18), O(k^2). Its terms reach C(k, k/2), about 2^k / sqrt(k), so the
/// absolute error in long double is near 1e-19 * 2^k.
double fpp_by_sum(BloomShape shape) {
    const auto m = static_cast<long double>(shape.m);
    const auto k = static_cast<long double>(shape.k);
    long double sum = 0;
    long double binomial = 1;  // C(k, j)
    long double log_gamma = 0; // ln(C(m-j, k) / C(m, k))
    for (unsigned j = 0; j <= shape.k; ++j) {
        const long double term = binomial * std::exp(static_cast<long double>(shape.n) * log_gamma);
        sum += j % 2 == 0 ? term : -term;
        if (shape.m - j == shape.k) break; // C(m-j-1, k) = 0
        binomial *= (k - j) / (j + 1);
        log_gamma += std::log1p(-k / (m - j));
    }
    return static_cast<double>(sum);
}

/// FPP_C by the paper's difference scheme (19), O(k^2). It cancels in the same way. Precondition: k < m.
double fpp_by_iteration(BloomShape shape) {
    // psi[i] is psi_C(h, m - i). Where m - i <= k, the factor (1 - k/(m-i))^n is that of an impossible event:
    // zero.
    std::vector<long double> psi(shape.k + 1, 1.0L);
    for (unsigned h = 1; h <= shape.k; ++h) {
        for (unsigned i = 0; i + h <= shape.k; ++i) {
            const auto m = static_cast<long double>(shape.m - i);
            const long double ratio = 1.0L - static_cast<long double>(shape.k) / m;
            if (ratio > 0)
                psi[i] -= std::pow(ratio, static_cast<long double>(shape.n)) * psi[i + 1];
            else if (shape.n == 0)
                psi[i] -= psi[i + 1];
        }
    }
    return static_cast<double>(psi[0]);
}

TEST(ClassicBloomFpp, SumAndIterationAgreeWhereTheyAreStable) {
    for (const BloomShape s : {BloomShape{128, 16, 5}, {128, 8, 10}, {512, 40, 12}, {20, 3, 19}}) {
        EXPECT_NEAR(fpp_by_sum(s) / fpp(s), 1, 1e-10);
        EXPECT_NEAR(fpp_by_iteration(s) / fpp(s), 1, 1e-10);
    }
    EXPECT_EQ(fpp_by_iteration({20, 0, 12}), 0.0);
    EXPECT_NEAR(fpp_by_sum({16, 2, 16}), 1, 1e-15);
}

TEST(ClassicBloomFpp, SumAndIterationCancelAsDocumented) {
    const BloomShape s{2000, 20, 60};
    EXPECT_GT(std::abs(fpp_by_sum(s) / fpp(s) - 1), 1.0);
    EXPECT_GT(std::abs(fpp_by_iteration(s) / fpp(s) - 1), 1.0);
    EXPECT_NEAR(fpp(s) / 1.5976558105538e-21, 1, 1e-11);
}

TEST(ClassicBloomFpp, EqualsMonteCarlo) {
    test::Sampler random(2);
    test::Mean rate;
    for (int trial = 0; trial < 20000; ++trial) {
        std::vector<bool> bits(128);
        unsigned ones = 0;
        for (int key = 0; key < 8; ++key) {
            std::vector<bool> mine(128);
            for (int left = 10; left > 0;) {
                const auto bit = random.below(128);
                if (mine[bit]) continue; // draw again: k distinct bits
                mine[bit] = true;
                --left;
                if (!bits[bit]) ++ones;
                bits[bit] = true;
            }
        }
        double all_ones = 1;
        for (unsigned i = 0; i < 10; ++i) all_ones *= (ones - i) / (128.0 - i);
        rate.add(all_ones);
    }
    EXPECT_LT(rate.sigma() / rate.value(), 0.005);
    EXPECT_NEAR(fpp({128, 8, 10}), rate.value(), 5 * rate.sigma());
}

TEST(ClassicBloomFpp, PublishedOptimaS1AndS2) {
    unsigned best[2] = {1, 1};
    for (unsigned k = 2; k <= 60; ++k) {
        if (fpp({128, 16, k}) < fpp({128, 16, best[0]})) best[0] = k;
        if (fpp({128, 8, k}) < fpp({128, 8, best[1]})) best[1] = k;
    }
    EXPECT_EQ(best[0], 5U);
    EXPECT_EQ(best[1], 10U);
    EXPECT_NEAR(fpp({128, 16, 5}), 0.022, 0.5e-3);
    EXPECT_NEAR(fpp({128, 8, 10}), 0.00046, 0.5e-5);
    // Differences between the minima of the two filters, relative to the standard filter's minimum.
    EXPECT_NEAR(100 * (1 - fpp({128, 16, 5}) / standard_bloom::fpp({128, 16, 5})), 3.28, 0.005);
    EXPECT_NEAR(100 * (1 - fpp({128, 8, 10}) / standard_bloom::fpp({128, 8, 11})), 13.59,
                0.02); // exactly 13.61
}

TEST(ClassicBloomFpp, PublishedLargestDistanceFromTheStandardFilter) {
    const auto percent = [](std::uint64_t n, unsigned k) {
        return 100 * std::abs(fpp({128, n, k}) / standard_bloom::fpp({128, n, k}) - 1);
    };
    unsigned s1 = 1;
    unsigned s2 = 1;
    for (unsigned k = 2; k <= 60; ++k) {
        if (percent(16, k) > percent(16, s1)) s1 = k;
        if (percent(8, k) > percent(8, s2)) s2 = k;
    }
    EXPECT_EQ(s1, 25U);
    EXPECT_NEAR(percent(16, 25), 25.62, 0.005);
    EXPECT_EQ(s2, 45U);
    EXPECT_NEAR(percent(8, 45), 151.28, 0.02); // exactly 151.30
}

} // namespace
} // namespace sieve::analysis::classic_bloom
