// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Rates over the last hour as inline SVG.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "libsieve/service/monitor/html.hpp"
#include "libsieve/service/monitor/statistics.hpp"

namespace sieve::service::watching {

inline constexpr std::chrono::seconds plotted_span{3600};

// Growth per second in equal steps over the last hour, oldest first; nothing where no two moments tell.
using RateSeries = std::vector<std::optional<double>>;

// What a counter stood at in a moment; nothing if the moment does not have it.
using Reading = std::function<std::optional<std::uint64_t>(const Moment& moment)>;

[[nodiscard]] RateSeries rates_over_time(const std::vector<Moment>& history, Clock::time_point now,
                                         std::size_t steps, const Reading& reading);

// The rate between the last two moments; nothing if there are none.
[[nodiscard]] std::optional<double> latest_rate(const std::vector<Moment>& history, const Reading& reading);

// The lowest of 1, 2 and 5 times a power of ten that is at least `value`.
[[nodiscard]] double round_up(double value);

struct PlotLayer {
    RateSeries series;
    Markup style; // the class of its shape
};

// Layers on top of each other, from the bottom to the top, on a scale up to `most`. The drawing has no text
// and takes the size of its box.
[[nodiscard]] Html stacked_plot(const std::vector<PlotLayer>& layers, double most, const std::string& title);

// One small line without a scale.
[[nodiscard]] Html spark_line(const RateSeries& series, const std::string& title);

} // namespace sieve::service::watching
