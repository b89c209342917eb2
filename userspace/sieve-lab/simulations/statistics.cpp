// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/simulations/statistics.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include <fmt/core.h>

namespace sieve::experiments {

void Moments::add(double x) {
    smallest_ = count_ == 0 ? x : std::min(smallest_, x);
    largest_ = count_ == 0 ? x : std::max(largest_, x);
    ++count_;
    const double from_old = x - mean_;
    mean_ += from_old / static_cast<double>(count_);
    squares_ += from_old * (x - mean_);
}

double Moments::variance() const {
    return count_ < 2 ? 0 : squares_ / static_cast<double>(count_ - 1);
}

double Moments::deviation() const {
    return std::sqrt(variance());
}

double Moments::standard_error() const {
    return count_ == 0 ? 0 : deviation() / std::sqrt(static_cast<double>(count_));
}

Result<Printed> parse_printed(std::string_view text) {
    const auto wrong = [text] {
        return bad_input(fmt::format(
            "\"{}\": not a printed number, expected such as 2.159e-2, 0.5296 or 0.0008937...", text));
    };
    std::string_view number = text;
    if (number.ends_with('%')) number.remove_suffix(1);
    const bool cut = number.ends_with("...");
    if (cut) number.remove_suffix(3);

    Printed result{.text = std::string(text)};
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), result.value);
    if (error != std::errc{} || end != number.data() + number.size() || !std::isfinite(result.value))
        return wrong();

    // A unit of the last digit: 10 to the power of the exponent minus the number of digits after the point.
    const std::string_view mantissa = number.substr(0, number.find_first_of("eE"));
    int exponent = 0;
    if (mantissa.size() < number.size()) {
        std::string_view digits = number.substr(mantissa.size() + 1);
        if (digits.starts_with('+')) digits.remove_prefix(1);
        std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    }
    const auto point = mantissa.find('.');
    const int decimals = point == std::string_view::npos ? 0 : static_cast<int>(mantissa.size() - point) - 1;
    const double unit = std::pow(10.0, exponent - decimals);
    const double away = std::copysign(unit, result.value);
    if (cut) {
        result.lower = std::min(result.value, result.value + away);
        result.upper = std::max(result.value, result.value + away);
    } else {
        result.lower = result.value - unit / 2;
        result.upper = result.value + unit / 2;
    }
    return result;
}

Printed printed(std::string_view text) {
    auto result = parse_printed(text);
    if (!result) {
        fmt::print(stderr, "{}\n", result.error().message);
        std::abort();
    }
    return *std::move(result);
}

double beyond_rounding(const Printed& published, double ours) {
    // A value on the very edge of the interval may round either way, so allow for its last bits.
    const double slack = 1e-9 * std::abs(published.value);
    if (ours > published.upper + slack) return ours - published.upper;
    if (ours < published.lower - slack) return ours - published.lower;
    return 0;
}

double sigmas(const Printed& published, double ours, double ours_error, double published_error) {
    const double distance = beyond_rounding(published, ours);
    if (distance == 0) return 0;
    const double error = std::hypot(ours_error, published_error);
    return error > 0 ? distance / error : std::copysign(std::numeric_limits<double>::infinity(), distance);
}

double counting_error(double rate, double trials) {
    return std::sqrt(rate * (1 - rate) / trials);
}

} // namespace sieve::experiments
