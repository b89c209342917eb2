// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/summary.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace sieve::bench {

namespace {

double quantile(const std::vector<double>& sorted, double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(place));
    const auto above = static_cast<std::size_t>(std::ceil(place));
    return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

template <class Operation>
Rounds combine(const Rounds& left, const Rounds& right, Operation operation) {
    Rounds result(std::min(left.size(), right.size()));
    for (std::size_t i = 0; i < result.size(); i++) result[i] = operation(left[i], right[i]);
    return result;
}

} // namespace

Summary summarise(std::vector<double> samples) {
    if (samples.empty()) return {};
    std::ranges::sort(samples);
    return {.median = quantile(samples, 0.5),
            .low = quantile(samples, 0.25),
            .high = quantile(samples, 0.75),
            .samples = samples.size()};
}

Rounds minus(const Rounds& left, const Rounds& right) {
    return combine(left, right, std::minus<>());
}

Rounds ratio(const Rounds& left, const Rounds& right) {
    return combine(left, right, std::divides<>());
}

} // namespace sieve::bench
