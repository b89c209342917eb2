// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Published numbers: d-left paper, section III-C. One trial each. The standard deviation between trials is
// 0.6%.
#include "sieve-lab/simulations/ddlcbf_experiment.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace sieve {
namespace {

CountingOutcome run(const CountingShape& shape, std::uint64_t queries = 0) {
    const auto outcome = run_counting_experiment({.shape = shape, .seed = 1, .queries = queries});
    EXPECT_TRUE(outcome.has_value());
    EXPECT_EQ(outcome->lost, 0U);
    EXPECT_EQ(outcome->refused, 0U);
    return *outcome;
}

TEST(DdlcbfExperiment, Plain) {
    const CountingOutcome outcome = run(paper_dlcbf(), 1'000'000);
    EXPECT_NEAR(outcome.rate, 1.4593e-3, 0.005 * 1.4593e-3);
    EXPECT_EQ(outcome.maxima[8], 8192U);
    EXPECT_NEAR(static_cast<double>(outcome.false_positives), 1e6 * outcome.rate,
                5 * std::sqrt(1e6 * outcome.rate));
}

TEST(DdlcbfExperiment, Dynamic) {
    // Our rate is 3% lower. The paper does not give the length of the minimal remainder (see the header).
    const CountingOutcome outcome = run(paper_ddlcbf());
    EXPECT_NEAR(outcome.rate, 4.586e-4, 0.03 * 4.586e-4);
    EXPECT_NEAR(outcome.rate, 4.729e-4, 0.06 * 4.729e-4);
    EXPECT_GT(outcome.maxima[7], 4096U); // "most buckets have had a maximum load of only seven"
    // By hand: 17 bits at a maximum of seven, 15 at eight, 13 at nine; six keys in each of four buckets.
    const double by_maxima = 24.0 / 8192 *
                             (static_cast<double>(outcome.maxima[7]) * std::ldexp(1, -17) +
                              static_cast<double>(outcome.maxima[8]) * std::ldexp(1, -15) +
                              static_cast<double>(outcome.maxima[9]) * std::ldexp(1, -13));
    EXPECT_NEAR(outcome.rate, by_maxima, 0.03 * by_maxima);
}

TEST(DdlcbfExperiment, TwoSizes) {
    const CountingOutcome outcome = run(paper_two_sizes());
    EXPECT_NEAR(outcome.rate, 3.278e-4, 0.03 * 3.278e-4);
    EXPECT_NEAR(outcome.rate, 3.111e-4, 0.09 * 3.111e-4);
}

TEST(DdlcbfExperiment, RefusesWhatCannotBe) {
    EXPECT_FALSE(run_counting_experiment({.shape = {}, .subtables = 5}).has_value());
    EXPECT_FALSE(run_counting_experiment({.shape = {}, .buckets = 0}).has_value());
    EXPECT_FALSE(run_counting_experiment({.shape = {.minimal = 60}}).has_value());
    EXPECT_FALSE(run_counting_experiment({.shape = {.most_cells = 17}}).has_value());
}

} // namespace
} // namespace sieve
