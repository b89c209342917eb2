// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/plot.hpp"

#include <numeric>

#include <gtest/gtest.h>

namespace sieve::service::watching {
namespace {

using namespace std::chrono_literals;

const HookId eth0{"eth0", kernel::HookPoint::xdp};
constexpr Clock::time_point now{std::chrono::seconds(1'700'000'000)};

Reading dropped() {
    return [](const Moment& moment) -> std::optional<std::uint64_t> {
        const auto found = moment.hooks.find(eth0);
        if (found == moment.hooks.end()) return std::nullopt;
        return found->second.dropped.packets;
    };
}

Moment moment(std::chrono::seconds before_now, std::uint64_t packets) {
    Moment moment{.at = now - before_now, .hooks = {}, .sets = {}};
    moment.hooks[eth0].dropped.packets = packets;
    return moment;
}

TEST(RatesOverTime, AreGrowthPerSecond) {
    std::vector<Moment> history;
    for (int i = 0; i <= 360; i++)
        history.push_back(moment(std::chrono::seconds(3600 - 10 * i), 50 * static_cast<unsigned>(i)));
    const RateSeries series = rates_over_time(history, now, 120, dropped());
    ASSERT_EQ(series.size(), 120U);
    for (const auto& rate : series) {
        ASSERT_TRUE(rate);
        EXPECT_NEAR(*rate, 5, 1e-9);
    }
    EXPECT_NEAR(*latest_rate(history, dropped()), 5, 1e-9);
}

TEST(RatesOverTime, KnowOnlyWhatWasObserved) {
    // Two observations in the last minute, and one that is too old.
    const std::vector<Moment> history = {moment(2h, 0), moment(40s, 100), moment(10s, 400)};
    const RateSeries series = rates_over_time({history[1], history[2]}, now, 60, dropped());
    EXPECT_FALSE(series[0]);
    EXPECT_FALSE(series[58]);
    EXPECT_NEAR(*series[59], 10, 1e-9);
    EXPECT_FALSE(latest_rate({history[2]}, dropped()));
    // The packets between the old one and the next are spread over the time between.
    EXPECT_NEAR(*rates_over_time(history, now, 60, dropped())[0], 100.0 / (7200 - 40), 1e-9);
}

TEST(RatesOverTime, HaveGapsWhereACounterIsMissingOrFell) {
    std::vector<Moment> history = {moment(120s, 500), moment(90s, 600), moment(60s, 10), moment(30s, 40)};
    const RateSeries fell = rates_over_time(history, now, 120, dropped());
    EXPECT_TRUE(fell[116]);
    EXPECT_FALSE(fell[117]);
    EXPECT_TRUE(fell[118]);
    history[2].hooks.clear();
    const RateSeries missing = rates_over_time(history, now, 120, dropped());
    EXPECT_FALSE(missing[117]);
    EXPECT_FALSE(missing[118]);
}

// However the moments lie: no packet is lost, and none is drawn twice.
TEST(RatesOverTime, KeepTheSum) {
    std::vector<Moment> history;
    std::uint64_t packets = 0;
    std::chrono::seconds at = 3590s;
    for (std::uint32_t i = 0; at >= 0s; i++) {
        history.push_back(moment(at, packets));
        at -= std::chrono::seconds(7 + i * i % 61);
        packets += i * 37 % 1000;
    }
    const std::uint64_t last = history.back().hooks[eth0].dropped.packets;
    for (const std::size_t steps : {1U, 7U, 120U}) {
        const RateSeries series = rates_over_time(history, now, steps, dropped());
        // Steps that were observed in part count for that part only: the first and the last step.
        const double seconds = 3600.0 / static_cast<double>(steps);
        double sum = 0;
        for (std::size_t i = 0; i < steps; i++) {
            const double begin = static_cast<double>(i) * seconds, end = begin + seconds;
            const double from = Seconds(history.front().at - (now - 1h)).count();
            const double to = Seconds(history.back().at - (now - 1h)).count();
            sum += series[i].value_or(0) * std::max(0.0, std::min(end, to) - std::max(begin, from));
        }
        EXPECT_NEAR(sum, static_cast<double>(last), 1e-6 * static_cast<double>(last)) << steps;
    }
}

TEST(RoundUp, FindsTheEndOfAScale) {
    EXPECT_EQ(round_up(0), 1);
    EXPECT_EQ(round_up(1), 1);
    EXPECT_EQ(round_up(1.01), 2);
    EXPECT_EQ(round_up(4.2), 5);
    EXPECT_EQ(round_up(51), 100);
    EXPECT_EQ(round_up(0.03), 0.05);
}

TEST(StackedPlot, HasGapsAndNoEmptyLayers) {
    RateSeries series(4);
    series[0] = 1, series[1] = 1, series[3] = 2;
    const RateSeries zeros(4, 0.0);
    const std::string plot = stacked_plot({{zeros, "redirect"}, {series, "pass"}}, 2, "a <title>").text();
    EXPECT_EQ(plot.find("redirect"), std::string::npos);
    EXPECT_NE(plot.find("<title>a &lt;title&gt;</title>"), std::string::npos);
    EXPECT_NE(plot.find("d=\"M0 50.00"), std::string::npos);
}

} // namespace
} // namespace sieve::service::watching
