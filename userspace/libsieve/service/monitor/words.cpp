// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <iterator>

#include <fmt/core.h>

namespace sieve::service::watching {

namespace {

// Three digits that count.
std::string three_digits(double value) {
    return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

} // namespace

std::string whole_count(std::uint64_t count) {
    std::string text = std::to_string(count);
    for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
    return text;
}

std::string short_count(double count) {
    if (!(count > 0)) return "0";
    if (count < 9.995) return fmt::format("{:.{}f}", count, count == std::floor(count) ? 0 : 1);
    if (count < 9999.5) return whole_count(static_cast<std::uint64_t>(std::llround(count)));
    constexpr const char* units[] = {"k", "M", "G", "T", "P"};
    std::size_t unit = 0;
    for (count /= 1000; count >= 999.5 && unit + 1 < std::size(units); unit++) count /= 1000;
    return three_digits(count) + " " + units[unit];
}

std::string short_bytes(double bytes) {
    if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
    constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    std::size_t unit = 0;
    for (bytes /= 1024; bytes >= 999.5 && unit + 1 < std::size(units); unit++) bytes /= 1024;
    return three_digits(bytes) + " " + units[unit];
}

std::string one_in(double rate) {
    if (!(rate > 0)) return "none";
    const double inverse = 1 / rate;
    if (inverse < 10) return fmt::format("1 in {:.1f}", inverse);
    if (inverse >= 1e7) return "1 in " + short_count(inverse);
    return "1 in " + whole_count(static_cast<std::uint64_t>(std::llround(inverse)));
}

std::string percent(double share) {
    if (!(share > 0)) return "0 %";
    if (share < 0.0001) return "< 0.01 %";
    return fmt::format("{:.{}f} %", 100 * share, share < 0.01 ? 2 : share < 0.9995 ? 1 : 0);
}

std::string span_text(Seconds span) {
    const double seconds = std::max(0.0, span.count());
    if (seconds < 90) return fmt::format("{:.0f} s", seconds);
    if (seconds < 90 * 60) return fmt::format("{:.0f} min", seconds / 60);
    if (seconds < 36 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
    return fmt::format("{:.0f} days", seconds / 86400);
}

std::string short_span(Seconds span) {
    const double seconds = std::max(0.0, span.count());
    if (seconds < 0.01) return fmt::format("{:.1f} ms", 1000 * seconds);
    if (seconds < 1) return fmt::format("{:.0f} ms", 1000 * seconds);
    if (seconds < 10) return fmt::format("{:.1f} s", seconds);
    return span_text(span);
}

std::string ago(Clock::time_point at, Clock::time_point now) {
    const Seconds span = now - at;
    return span.count() < 1 ? "just now" : span_text(span) + " ago";
}

std::string utc_time(Clock::time_point at) {
    const std::time_t time = Clock::to_time_t(at);
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    std::array<char, 32> text{};
    const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
    return {text.data(), length};
}

} // namespace sieve::service::watching
