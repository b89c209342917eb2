// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/simulations/statistics.hpp"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "sieve-lab/simulations/random.hpp"
#include "unit/messages.hpp"

namespace sieve::experiments {
namespace {

Moments of(std::initializer_list<double> samples) {
    Moments moments;
    for (const double x : samples) moments.add(x);
    return moments;
}

TEST(Moments, AreThoseCalculatedByHand) {
    const Moments m = of({2, 4, 4, 4, 5, 5, 7, 9}); // squared distances from 5 add up to 32
    EXPECT_EQ(m.count(), 8U);
    EXPECT_DOUBLE_EQ(m.mean(), 5);
    EXPECT_DOUBLE_EQ(m.variance(), 32.0 / 7);
    EXPECT_DOUBLE_EQ(m.deviation(), std::sqrt(32.0 / 7));
    EXPECT_DOUBLE_EQ(m.standard_error(), std::sqrt(32.0 / 7 / 8));
    EXPECT_EQ(m.smallest(), 2);
    EXPECT_EQ(m.largest(), 9);
}

TEST(Moments, OfNoneAndOfOneHaveNoSpread) {
    EXPECT_EQ(Moments{}.mean(), 0);
    EXPECT_EQ(Moments{}.standard_error(), 0);
    EXPECT_EQ(of({-3}).mean(), -3);
    EXPECT_EQ(of({-3}).standard_error(), 0);
    EXPECT_EQ(of({-3}).largest(), -3);
}

TEST(Moments, KeepTheirDigitsFarFromZero) {
    // The naive sum of squares has no correct digit left here.
    const Moments m = of({1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16});
    EXPECT_DOUBLE_EQ(m.mean(), 1e9 + 10);
    EXPECT_DOUBLE_EQ(m.variance(), 30);
}

struct Read {
    const char* text;
    double value, lower, upper;
};

TEST(ParsePrinted, ReadsNumbersAndWhatTheyMayStandFor) {
    for (const Read& r : {
             Read{"2.159e-2", 2.159e-2, 2.1585e-2, 2.1595e-2},
             {"0.5296", 0.5296, 0.52955, 0.52965},
             {"464", 464, 463.5, 464.5},
             {"2.3e-05", 2.3e-5, 2.25e-5, 2.35e-5},
             {"9.980e-8", 9.98e-8, 9.9795e-8, 9.9805e-8}, // the zero is a digit
             {"1.5E+3", 1500, 1450, 1550},
             {"-0.4", -0.4, -0.45, -0.35},
             {"0.0008937...", 0.0008937, 0.0008937, 0.0008938}, // cut off, not rounded
             {"-1.2...", -1.2, -1.3, -1.2},
             {"25.62%", 25.62, 25.615, 25.625}, // stays a percentage
             {"0.30", 0.3, 0.295, 0.305},
         }) {
        const auto p = parse_printed(r.text);
        ASSERT_TRUE(p) << r.text;
        EXPECT_EQ(p->text, r.text);
        const double tolerance = 1e-12 * std::abs(r.value);
        EXPECT_NEAR(p->value, r.value, tolerance) << r.text;
        EXPECT_NEAR(p->lower, r.lower, tolerance) << r.text;
        EXPECT_NEAR(p->upper, r.upper, tolerance) << r.text;
    }
}

TEST(ParsePrinted, RefusesWhatIsNoNumber) {
    for (const char* text :
         {"", "e-3", "2.1x", "1.2e", "1,5", "...", "%", "nan", "inf", "1e999", " 1", "3.1.4"}) {
        expect_error(parse_printed(text), ErrorKind::bad_input);
    }
}

TEST(BeyondRounding, IsZeroInsideAndSignedOutside) {
    const auto p = printed("0.50");
    for (const double inside : {0.495, 0.4951, 0.5, 0.505}) EXPECT_EQ(beyond_rounding(p, inside), 0);
    EXPECT_NEAR(beyond_rounding(p, 0.51), 0.005, 1e-12);
    EXPECT_NEAR(beyond_rounding(p, 0.48), -0.015, 1e-12);
    const auto cut = printed("0.50...");
    EXPECT_EQ(beyond_rounding(cut, 0.5099), 0);
    EXPECT_LT(beyond_rounding(cut, 0.4999), 0);
}

TEST(Sigmas, AreTheDistanceInErrorsOfTheDifference) {
    const auto p = printed("0.50");
    EXPECT_EQ(sigmas(p, 0.503, 1e-9, 0), 0);              // hidden by the rounding
    EXPECT_NEAR(sigmas(p, 0.525, 0.01, 0), 2, 1e-9);      // 0.020 beyond 0.505
    EXPECT_NEAR(sigmas(p, 0.475, 0.01, 0), -2, 1e-9);     // 0.020 below 0.495
    EXPECT_NEAR(sigmas(p, 0.525, 0.003, 0.004), 4, 1e-9); // 3, 4, 5
    EXPECT_NEAR(sigmas(p, 0.525, 0, 0.01), 2, 1e-9);      // only theirs has an error
    EXPECT_TRUE(std::isinf(sigmas(p, 0.6, 0, 0)));        // two exact numbers that disagree
    EXPECT_LT(sigmas(p, 0.4, 0, 0), 0);
    EXPECT_EQ(sigmas(p, 0.5, 0, 0), 0);
}

TEST(Sigmas, OfHonestMeasurementsHaveUnitVariance) {
    // Means of 40 of our samples against means of 160 of theirs, both normal enough. The result would not be
    // 1 if an error were that of a sample instead of a mean, were only one side's, or were divided by the
    // wrong number of trials.
    Random random(1);
    const auto mean_of = [&random](int trials) {
        Moments moments;
        for (int t = 0; t < trials; ++t) {
            double sum = 0;
            for (int i = 0; i < 4; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53;
            moments.add(sum);
        }
        return moments;
    };
    Moments squares;
    for (int experiment = 0; experiment < 4000; ++experiment) {
        const Moments theirs = mean_of(160);
        const Moments ours = mean_of(40);
        Printed exact{.text = "", .value = theirs.mean(), .lower = theirs.mean(), .upper = theirs.mean()};
        const double z = sigmas(exact, ours.mean(), ours.standard_error(), theirs.standard_error());
        squares.add(z * z);
    }
    EXPECT_NEAR(squares.mean(), 1, 0.12);
}

TEST(CountingError, IsThatOfABinomialShare) {
    EXPECT_NEAR(counting_error(0.5, 100), 0.05, 1e-15);
    EXPECT_NEAR(counting_error(4.4988e-4, 1e8), 2.12e-6, 1e-8);
}

} // namespace
} // namespace sieve::experiments
