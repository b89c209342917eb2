// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/analysis/ode.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sieve::analysis {
namespace {

using State = std::vector<double>;

TEST(Integrate, NoTimeLeavesTheStateAlone) {
    State y{0.25, 4};
    integrate(y, 0, [](const State&, State& dydt) { dydt = {1, 1}; });
    EXPECT_EQ(y, (State{0.25, 4}));
}

TEST(Integrate, DecayKeepsItsRelativePrecisionOverManyOrders) {
    State y{1.0};
    integrate(y, 50, [](const State& x, State& dydt) { dydt[0] = -x[0]; });
    EXPECT_NEAR(y[0] / std::exp(-50.0), 1, 1e-8);
}

TEST(Integrate, OscillatorReturnsToItsStart) {
    const double full_turn = 2 * std::acos(-1.0);
    State y{1.0, 0.0};
    integrate(y, full_turn, [](const State& x, State& dydt) {
        dydt[0] = x[1];
        dydt[1] = -x[0];
    });
    EXPECT_NEAR(y[0], 1, 1e-9);
    EXPECT_NEAR(y[1], 0, 1e-9);
}

TEST(Integrate, LogisticGrowthMatchesItsClosedForm) {
    State y{0.01};
    integrate(y, 7, [](const State& x, State& dydt) { dydt[0] = x[0] * (1 - x[0]); });
    EXPECT_NEAR(y[0], 1 / (1 + 99 * std::exp(-7.0)), 1e-10);
}

TEST(Integrate, StepsThatFailAreTakenAgain) {
    // The first step tried, 0.001, reaches the end at once, but is too long to be accurate.
    State fast{1.0};
    integrate(fast, 1e-3, [](const State& x, State& dydt) { dydt[0] = -300 * x[0]; });
    EXPECT_NEAR(fast[0], std::exp(-0.3), 1e-10);
    // 1/(1000 - t): the steps are long at first and must shrink a thousandfold near the pole.
    State pole{1e-3};
    integrate(pole, 999.9, [](const State& x, State& dydt) { dydt[0] = x[0] * x[0]; });
    EXPECT_NEAR(pole[0], 10, 1e-6);
}

TEST(Integrate, ErrorFollowsTheTolerance) {
    const auto error = [](double relative) {
        State y{0.01};
        integrate(y, 7, [](const State& x, State& dydt) { dydt[0] = x[0] * (1 - x[0]); },
                  {.relative = relative});
        return std::abs(y[0] - 1 / (1 + 99 * std::exp(-7.0)));
    };
    EXPECT_LT(error(1e-4), 1e-3);
    EXPECT_GT(error(1e-4), 1e-8);
    EXPECT_LT(error(1e-9), 1e-8);
}

} // namespace
} // namespace sieve::analysis
