// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/simulations/trials.hpp"

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace sieve::experiments {
namespace {

std::vector<double> two_draws(Random& random) {
    return {static_cast<double>(random()), static_cast<double>(random.below(1000))};
}

TEST(RunTrials, DoNotDependOnTheNumberOfThreads) {
    TrialPlan plan{.trials = 100, .seed = 7, .threads = 1};
    const auto one = run_trials(plan, "stage", two_draws);
    for (const unsigned threads : {2U, 3U, 16U, 1000U}) {
        plan.threads = threads;
        const auto many = run_trials(plan, "stage", two_draws);
        EXPECT_EQ(one.by_trial, many.by_trial) << threads;
        EXPECT_EQ(one.of(1).mean(), many.of(1).mean());
        EXPECT_EQ(one.of(1).standard_error(), many.of(1).standard_error());
    }
}

TEST(RunTrials, DrawOtherNumbersInEveryTrialStageAndSeed) {
    std::set<double> seen;
    for (const std::uint64_t seed : {1U, 2U})
        for (const char* stage : {"a", "b"}) {
            const auto observed = run_trials({.trials = 50, .seed = seed, .threads = 2}, stage, two_draws);
            for (const auto& trial : observed.by_trial) seen.insert(trial[0]);
        }
    EXPECT_EQ(seen.size(), 200U);
}

TEST(RunTrials, MoreTrialsBeginWithTheSameOnes) {
    const auto few = run_trials({.trials = 10, .seed = 3, .threads = 1}, "stage", two_draws);
    const auto many = run_trials({.trials = 20, .seed = 3, .threads = 2}, "stage", two_draws);
    for (std::size_t t = 0; t < 10; ++t) EXPECT_EQ(few.by_trial[t], many.by_trial[t]);
}

TEST(RunTrials, ReportProgressToTheEnd) {
    double last = 0;
    unsigned calls = 0;
    TrialPlan plan{.trials = 40, .threads = 4, .progress = [&](std::string_view stage, double share) {
                       EXPECT_EQ(stage, "stage");
                       EXPECT_GT(share, last);
                       last = share;
                       ++calls;
                   }};
    run_trials(plan, "stage", two_draws);
    EXPECT_EQ(last, 1);
    EXPECT_EQ(calls, 40U);
}

TEST(RunTrials, PassOnWhatATrialThrows) {
    std::atomic<unsigned> ran = 0;
    const auto trial = [&ran](Random& /*random*/) -> std::vector<double> {
        if (++ran == 3) throw std::runtime_error("third");
        // All trials would take minutes, so a delayed thread does not matter.
        if (ran > 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return {0};
    };
    for (const unsigned threads : {1U, 4U}) {
        ran = 0;
        EXPECT_THROW(run_trials({.trials = 1'000'000, .threads = threads}, "stage", trial),
                     std::runtime_error);
        EXPECT_LT(ran, 100'000U); // and do not go on with the rest
    }
}

TEST(Observations, OfAFunctionSeeOneTrialAtATime) {
    const Observations observed{.by_trial = {{1, 2}, {3, 9}}};
    EXPECT_EQ(observed.of(1).mean(), 5.5);
    const Moments ratio = observed.of([](const std::vector<double>& t) { return t[1] / t[0]; });
    EXPECT_EQ(ratio.mean(), 2.5);
    EXPECT_EQ(ratio.count(), 2U);
}

TEST(RandomNumbers, AreUniform) {
    Random random(5);
    std::vector<unsigned> count(10);
    constexpr unsigned draws = 100'000;
    for (unsigned i = 0; i < draws; ++i) ++count[random.below(10)];
    double chi = 0;
    for (const unsigned c : count) chi += (c - draws / 10.0) * (c - draws / 10.0) / (draws / 10.0);
    EXPECT_LT(chi, 27.9); // one in a thousand for nine degrees of freedom
    unsigned heads = 0;
    for (unsigned i = 0; i < draws; ++i) heads += random.chance(0.3) ? 1 : 0;
    EXPECT_NEAR(heads, 0.3 * draws, 5 * 145);
    EXPECT_EQ(Random(9)(), Random(9)());
}

} // namespace
} // namespace sieve::experiments
