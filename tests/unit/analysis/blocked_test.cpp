// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Published claims: one-plus-alpha paper, section 4 (B = 500, k = round(c ln 2)). paper_model draws filters
// of that section.
#include "libsieve/analysis/blocked.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <vector>

#include "libsieve/analysis/standard_bloom.hpp"
#include "sampling.hpp"

namespace sieve::analysis::blocked {
namespace {

/// A filter of the paper's section 4.
Filter of_paper(double c, double alpha) {
    return {.bits_per_key = c,
            .block_bits = 500,
            .k = static_cast<unsigned>(std::lround(std::numbers::ln2 * c)),
            .alpha = alpha};
}

double paper_fpr(double c, double alpha) {
    return fpr(of_paper(c, alpha), paper_model);
}

double poisson(double mean, double j) {
    return std::exp(j * std::log(mean) - mean - std::lgamma(j + 1));
}

/// Equation (3.5) literally, with P_choose as in (3.2), by the classical Runge-Kutta method with a fixed
/// small step.
std::vector<double> literal_load_distribution(double mean_load, double alpha, std::size_t top) {
    const auto slope = [alpha, top](const std::vector<double>& d) {
        std::vector<double> gain(top + 1);
        double tail = 0;
        for (std::size_t x = top + 1; x-- > 0;) {
            const double choose = d[x] * d[x] + 2 * d[x] * tail;
            gain[x] = alpha * choose + (1 - alpha) * d[x];
            tail += d[x];
        }
        std::vector<double> change(top + 1);
        for (std::size_t x = 0; x <= top; ++x) change[x] = (x > 0 ? gain[x - 1] : 0) - gain[x];
        return change;
    };
    const auto moved = [](std::vector<double> d, const std::vector<double>& by, double h) {
        for (std::size_t x = 0; x < d.size(); ++x) d[x] += h * by[x];
        return d;
    };
    std::vector<double> d(top + 1, 0.0);
    d[0] = 1;
    const int steps = 4000;
    const double h = mean_load / steps;
    for (int i = 0; i < steps; ++i) {
        const auto k1 = slope(d);
        const auto k2 = slope(moved(d, k1, h / 2));
        const auto k3 = slope(moved(d, k2, h / 2));
        const auto k4 = slope(moved(d, k3, h));
        for (std::size_t x = 0; x <= top; ++x) d[x] += h / 6 * (k1[x] + 2 * k2[x] + 2 * k3[x] + k4[x]);
    }
    return d;
}

/// The block that a key goes to: the least loaded of `choices` random blocks, the first one on a tie.
std::size_t place(test::Sampler& random, const std::vector<unsigned>& load, double alpha, unsigned choices) {
    std::size_t best = random.below(load.size());
    if (!random.chance(alpha)) return best;
    for (unsigned i = 1; i < choices; ++i) {
        const std::size_t other = random.below(load.size());
        if (load[other] < load[best]) best = other;
    }
    return best;
}

TEST(BlockedLoads, WithoutChoiceArePoisson) {
    for (const double mean : {0.5, 12.8, 64.0}) {
        for (const auto& loads : {load_distribution(mean, 0, 2), load_distribution(mean, 1, 1)}) {
            for (std::size_t j = 0; j + 1 < loads.size(); ++j) {
                const double p = poisson(mean, static_cast<double>(j));
                EXPECT_NEAR(loads[j], p, std::min(1e-6 * p + 1e-17, 1e-12)) << "mean=" << mean << " j=" << j;
            }
            EXPECT_LT(loads.back(), 1e-24);
        }
    }
}

TEST(BlockedLoads, KeepAllBlocksAndAllKeys) {
    for (const unsigned choices : {1U, 2U, 3U}) {
        for (const double alpha : {0.0, 0.3, 1.0}) {
            const auto loads = load_distribution(25.6, alpha, choices);
            double blocks = 0;
            double keys = 0;
            for (std::size_t j = 0; j < loads.size(); ++j) {
                blocks += loads[j];
                keys += static_cast<double>(j) * loads[j];
            }
            EXPECT_NEAR(blocks, 1, 1e-12);
            EXPECT_NEAR(keys, 25.6, 1e-10);
        }
    }
}

TEST(BlockedLoads, SolveThePapersEquationAsPrinted) {
    for (const double alpha : {0.3, 1.0}) {
        const auto loads = load_distribution(25, alpha);
        const auto expected = literal_load_distribution(25, alpha, loads.size() - 1);
        for (std::size_t j = 0; j < loads.size(); ++j) EXPECT_NEAR(loads[j], expected[j], 1e-10) << "j=" << j;
    }
}

TEST(BlockedLoads, AreThoseOfBallsInBins) {
    struct Case {
        double alpha;
        unsigned choices;
    };
    constexpr std::size_t blocks = 40'000;
    constexpr unsigned mean = 25;
    for (const Case c : {Case{0, 2}, Case{0.3, 2}, Case{1, 2}, Case{0.5, 3}, Case{1, 3}}) {
        test::Sampler random(3);
        std::vector<unsigned> load(blocks, 0);
        for (std::size_t key = 0; key < mean * blocks; ++key) ++load[place(random, load, c.alpha, c.choices)];
        const auto loads = load_distribution(mean, c.alpha, c.choices);
        std::vector<double> histogram(loads.size(), 0.0);
        for (const unsigned l : load) histogram.at(l) += 1;
        for (std::size_t j = 0; j < loads.size(); ++j) {
            // Five sigma of a binomial count, which varies more than a count over dependent blocks, and one
            // for the tails.
            const double expected = loads[j] * blocks;
            EXPECT_NEAR(histogram[j], expected, 5 * std::sqrt(expected) + 1)
                << "alpha=" << c.alpha << " choices=" << c.choices << " j=" << j;
        }
    }
}

TEST(BlockTable, BasicIsEquation21) {
    const auto table = basic_fpr_table(500, 14, 40);
    ASSERT_EQ(table.size(), 41U);
    EXPECT_EQ(table[0], 0.0);
    for (unsigned j = 1; j <= 40; ++j)
        EXPECT_NEAR(table[j] / std::pow(1 - std::pow(1 - 1.0 / 500, 14 * j), 14), 1, 1e-10);
}

TEST(BlockedRate, QueryFormsAgreeForSmallRates) {
    EXPECT_DOUBLE_EQ(query_fpr(0.2, 0, 3), 0.2);
    EXPECT_NEAR(query_fpr(0.2, 1, 2), 0.36, 1e-15);
    EXPECT_NEAR(query_fpr(0.2, 0.25, 3), 0.75 * 0.2 + 0.25 * 0.488, 1e-15);
    EXPECT_DOUBLE_EQ(query_fpr(0.2, 0.25, 3, QueryRate::coefficient), 0.3);
    EXPECT_NEAR(query_fpr(1e-9, 0.3, 2) / query_fpr(1e-9, 0.3, 2, QueryRate::coefficient), 1, 1e-8);
}

TEST(BlockedRate, IsTheRateOfARealFilter) {
    // The whole filter, k probes in the block with replacement. The rate follows from the ones of each block.
    constexpr std::size_t blocks = 4000;
    const Filter f{.bits_per_key = 20, .block_bits = 512, .k = 14, .alpha = 1, .choices = 2};
    test::Mean rate;
    for (int trial = 0; trial < 30; ++trial) {
        test::Sampler random(100 + static_cast<unsigned>(trial));
        std::vector<unsigned> load(blocks, 0);
        std::vector<std::vector<bool>> bits(blocks, std::vector<bool>(f.block_bits));
        const auto keys = static_cast<std::size_t>(f.mean_load() * blocks);
        for (std::size_t key = 0; key < keys; ++key) {
            const std::size_t b = place(random, load, f.alpha, f.choices);
            ++load[b];
            for (unsigned i = 0; i < f.k; ++i) bits[b][random.below(f.block_bits)] = true;
        }
        double q = 0;
        for (const auto& block : bits) {
            const auto ones = std::count(block.begin(), block.end(), true);
            q += std::pow(static_cast<double>(ones) / f.block_bits, f.k) / blocks;
        }
        rate.add(1 - (1 - q) * (1 - q));
    }
    EXPECT_LT(rate.sigma() / rate.value(), 0.005);
    EXPECT_NEAR(fpr(f), rate.value(), 5 * rate.sigma());
    // The paper's (2.1) ignores how much the ones of so small a block vary: it is 5 % too low here.
    EXPECT_LT(fpr(f, paper_model), rate.value() - 5 * rate.sigma());
}

TEST(BlockedRate, PowerOfTwoBeatsBlockedFrom17BitsOn) {
    for (int c = 8; c <= 22; ++c) EXPECT_EQ(paper_fpr(c, 1) < paper_fpr(c, 0), c >= 17) << "c=" << c;
}

TEST(BlockedRate, ThreeTenthsIsBestOfTheThreeFrom13To20Bits) {
    for (int c = 10; c <= 23; ++c) {
        const bool best = paper_fpr(c, 0.3) < std::min(paper_fpr(c, 0), paper_fpr(c, 1));
        EXPECT_EQ(best, c >= 13 && c <= 20) << "c=" << c;
    }
}

TEST(BlockedRate, OptimaOfFigure3) {
    for (const auto [c, alpha] : {std::array{16.0, 0.3}, {18.0, 0.4}, {20.0, 0.5}}) {
        double best = 0;
        for (int i = 1; i <= 10; ++i)
            if (paper_fpr(c, i / 10.0) < paper_fpr(c, best)) best = i / 10.0;
        EXPECT_NEAR(best, alpha, 1e-12) << "c=" << c;
        const BestAlpha exact = best_alpha(of_paper(c, 0), paper_model);
        EXPECT_NEAR(exact.alpha, alpha, 0.05);
        EXPECT_LE(exact.fpr, paper_fpr(c, alpha));
        EXPECT_NEAR(exact.fpr / paper_fpr(c, exact.alpha), 1, 1e-12);
    }
}

TEST(BlockedRate, OptimaOfFigure4) {
    EXPECT_EQ(best_alpha(of_paper(10, 0), paper_model).alpha, 0);
    EXPECT_GT(best_alpha(of_paper(11, 0), paper_model).alpha, 0);
    EXPECT_LT(best_alpha(of_paper(30, 0), paper_model).alpha, 0.97);
    EXPECT_GT(best_alpha(of_paper(31, 0), paper_model).alpha, 0.99);
    EXPECT_EQ(best_alpha(of_paper(32, 0), paper_model).alpha, 1);
    for (const double c : {13.0, 16.0, 22.0, 27.0}) // near linear between (10, 0) and (31, 1)
        EXPECT_NEAR(best_alpha(of_paper(c, 0), paper_model).alpha, (c - 10) / 21, 0.05) << "c=" << c;
}

TEST(BlockedRate, BestKMatchesTheFiguresOfTheDesign) {
    // DESIGN.md, section 5, B = 512. The row for two choices comes from (2.1), the row for one choice from
    // the exact rate.
    struct Case {
        double c, one, two;
        double one_rounding, two_rounding;
    };
    for (const Case x :
         {Case{8, 2.33e-2, 4.3e-2, 0.5e-4, 0.5e-3}, Case{16, 8.44e-4, 9.5e-4, 0.5e-6, 0.7e-5},
          Case{20, 1.98e-4, 1.44e-4, 0.5e-6, 1.3e-6}, Case{32, 5.34e-6, 5.8e-7, 0.5e-8, 0.5e-8}}) {
        const BestK one = best_k({.bits_per_key = x.c, .block_bits = 512, .k = 1});
        EXPECT_NEAR(one.fpr, x.one, x.one_rounding);
        const BestK two = best_k({.bits_per_key = x.c, .block_bits = 512, .k = 1, .alpha = 1}, paper_model);
        EXPECT_NEAR(two.fpr, x.two, x.two_rounding);
    }
}

TEST(BlockedRate, BestKIsTheSmallestOfAllK) {
    const Filter f{.bits_per_key = 12, .block_bits = 512, .k = 1, .alpha = 0.2, .choices = 3};
    const BestK best = best_k(f);
    for (unsigned k = 1; k <= 20; ++k) {
        Filter other = f;
        other.k = k;
        EXPECT_GE(fpr(other), best.fpr * (1 - 1e-12)) << "k=" << k;
    }
}

} // namespace
} // namespace sieve::analysis::blocked
