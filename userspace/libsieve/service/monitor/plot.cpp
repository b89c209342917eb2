// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/plot.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/core.h>

namespace sieve::service::watching {

namespace {

constexpr double plot_height = 100;

// Whether anything is known at step i.
bool known(const std::vector<PlotLayer>& layers, std::size_t i) {
    return std::any_of(layers.begin(), layers.end(),
                       [i](const PlotLayer& layer) { return layer.series[i].has_value(); });
}

double height_of(double value, double most) {
    return plot_height * (1 - std::min(1.0, value / most));
}

// The upper edge of one layer for the steps [first, last), as the points of a path.
std::string edge(const std::vector<double>& values, std::size_t first, std::size_t last, double most) {
    std::string path = fmt::format("{} {:.2f}", first, height_of(values[first], most));
    for (std::size_t i = first; i < last; i++)
        path += fmt::format("L{:.1f} {:.2f}", static_cast<double>(i) + 0.5, height_of(values[i], most));
    return path + fmt::format("L{} {:.2f}", last, height_of(values[last - 1], most));
}

// The way back along its lower edge.
std::string way_back(const std::vector<double>& values, std::size_t first, std::size_t last, double most) {
    std::string path = fmt::format("L{} {:.2f}", last, height_of(values[last - 1], most));
    for (std::size_t i = last; i-- > first;)
        path += fmt::format("L{:.1f} {:.2f}", static_cast<double>(i) + 0.5, height_of(values[i], most));
    return path + fmt::format("L{} {:.2f}Z", first, height_of(values[first], most));
}

} // namespace

RateSeries rates_over_time(const std::vector<Moment>& history, Clock::time_point now, std::size_t steps,
                           const Reading& reading) {
    std::vector<double> counted(steps, 0), seconds(steps, 0);
    const Seconds step = Seconds(plotted_span) / static_cast<double>(steps);
    const Clock::time_point begin = now - plotted_span;
    for (std::size_t i = 1; i < history.size(); i++) {
        const auto before = reading(history[i - 1]), after = reading(history[i]);
        if (!before || !after || *after < *before) continue;
        const double from = Seconds(history[i - 1].at - begin) / step,
                     to = Seconds(history[i].at - begin) / step;
        if (!(to > from)) continue;
        const double rate = static_cast<double>(*after - *before) / (to - from); // per step
        // A moment's packets are spread over the steps that it touches.
        for (double at = std::max(0.0, from); at < std::min(to, static_cast<double>(steps));) {
            const double end = std::min({to, std::floor(at) + 1, static_cast<double>(steps)});
            const auto slot = static_cast<std::size_t>(at);
            counted[slot] += rate * (end - at);
            seconds[slot] += (end - at) * step.count();
            at = end;
        }
    }
    RateSeries series(steps);
    for (std::size_t i = 0; i < steps; i++)
        if (seconds[i] > 0) series[i] = counted[i] / seconds[i];
    return series;
}

std::optional<double> latest_rate(const std::vector<Moment>& history, const Reading& reading) {
    if (history.size() < 2) return std::nullopt;
    const Moment &before = history[history.size() - 2], &after = history.back();
    const auto from = reading(before), to = reading(after);
    const double seconds = Seconds(after.at - before.at).count();
    if (!from || !to || *to < *from || !(seconds > 0)) return std::nullopt;
    return static_cast<double>(*to - *from) / seconds;
}

double round_up(double value) {
    if (!(value > 0)) return 1;
    const double power = std::pow(10, std::floor(std::log10(value)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (value <= factor * power * (1 + 1e-9)) return factor * power;
    return 10 * power;
}

Html stacked_plot(const std::vector<PlotLayer>& layers, double most, const std::string& title) {
    const std::size_t steps = layers.empty() ? 1 : layers.front().series.size();
    Html plot;
    plot.add("<svg viewBox=\"0 0 {} 100\" preserveAspectRatio=\"none\" role=\"img\"><title>{}</title>"
             "<path class=\"grid\" d=\"M0 0H{}M0 50H{}\"/>",
             std::to_string(steps), title, std::to_string(steps), std::to_string(steps));
    std::vector<double> bottom(steps, 0);
    for (const PlotLayer& layer : layers) {
        // Nothing but zeros would draw a line on the layer below.
        if (std::none_of(layer.series.begin(), layer.series.end(),
                         [](const auto& rate) { return rate.value_or(0) > 0; }))
            continue;
        std::vector<double> top = bottom;
        for (std::size_t i = 0; i < steps; i++) top[i] += layer.series[i].value_or(0);
        for (std::size_t first = 0; first < steps;) {
            if (!known(layers, first)) {
                first++;
                continue;
            }
            std::size_t last = first;
            while (last < steps && known(layers, last)) last++;
            const std::string top_edge = edge(top, first, last, most);
            plot.add("<path class=\"").add(layer.style);
            plot.add("\" d=\"M{}{}\"/><path class=\"", top_edge, way_back(bottom, first, last, most));
            plot.add(layer.style).add(" line\" d=\"M{}\"/>", top_edge);
            first = last;
        }
        bottom = top;
    }
    plot.add("</svg>");
    return plot;
}

Html spark_line(const RateSeries& series, const std::string& title) {
    double most = 0;
    for (const auto& rate : series) most = std::max(most, rate.value_or(0));
    std::string path;
    bool pen_down = false;
    for (std::size_t i = 0; i < series.size(); i++) {
        if (series[i])
            path += fmt::format("{}{:.1f} {:.2f}", pen_down ? "L" : "M", static_cast<double>(i) + 0.5,
                                19 - (most > 0 ? 18 * *series[i] / most : 0));
        pen_down = series[i].has_value();
    }
    return html("<svg class=\"spark\" viewBox=\"0 0 {} 20\" preserveAspectRatio=\"none\" role=\"img\">"
                "<title>{}</title><path d=\"{}\"/></svg>",
                std::to_string(series.size()), title, path);
}

} // namespace sieve::service::watching
