// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/analysis/binomial.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace sieve::analysis {
namespace {

// Ten tosses of a fair coin, counted by hand: (1 + 10 + 45) / 1024.
TEST(BinomialTail, EqualsCountingOnSmallCases) {
    EXPECT_NEAR(binomial_upper_tail(8, 10, 0.5), 56.0 / 1024, 1e-12);
    EXPECT_NEAR(binomial_lower_tail(2, 10, 0.5), 56.0 / 1024, 1e-12);
    EXPECT_NEAR(binomial_upper_tail(3, 10, 0.5), 968.0 / 1024, 1e-12);
    EXPECT_DOUBLE_EQ(binomial_upper_tail(0, 10, 0.5), 1);
    EXPECT_DOUBLE_EQ(binomial_upper_tail(1, 10, 0), 0);
    EXPECT_DOUBLE_EQ(binomial_lower_tail(9, 10, 1), 0);
}

// P(no success) has a closed form even where the rate is tiny.
TEST(BinomialTail, IsAccurateForRareEvents) {
    EXPECT_NEAR(binomial_lower_tail(0, 1'000'000, 1e-5) / std::exp(1e6 * std::log1p(-1e-5)), 1, 1e-7);
    EXPECT_NEAR(binomial_upper_tail(1, 1'000'000, 1e-9) / -std::expm1(1e6 * std::log1p(-1e-9)), 1, 1e-6);
}

TEST(FitsRate, AcceptsSixSigmaAndNothingBeyond) {
    // mean 270, standard deviation 16.43
    EXPECT_TRUE(fits_rate(270, 1'000'000, 2.7e-4));
    EXPECT_TRUE(fits_rate(180, 1'000'000, 2.7e-4));
    EXPECT_FALSE(fits_rate(160, 1'000'000, 2.7e-4));
    EXPECT_TRUE(fits_rate(370, 1'000'000, 2.7e-4));
    EXPECT_FALSE(fits_rate(385, 1'000'000, 2.7e-4));
    EXPECT_FALSE(fits_rate(10'000, 10'000, 2.7e-4)); // a filter that says yes to all
    EXPECT_TRUE(fits_rate(0, 10'000, 1e-7));
}

} // namespace
} // namespace sieve::analysis
