// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/analysis/less_hashing.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace sieve::analysis::less_hashing {

namespace {

bool is_prime(unsigned long w) {
    if (w < 2) return false;
    for (unsigned long f = 2; f * f <= w; ++f)
        if (w % f == 0) return false;
    return true;
}

} // namespace

double false_positive_limit(double bits_per_key, unsigned k) {
    assert(bits_per_key > 0 && k >= 1);
    return std::pow(-std::expm1(-(k / bits_per_key)), k);
}

unsigned best_k(double bits_per_key) {
    assert(bits_per_key > 0);
    const double ideal = bits_per_key * std::numbers::ln2;
    const unsigned low = std::max(1U, static_cast<unsigned>(std::floor(ideal)));
    const unsigned high = std::max(1U, static_cast<unsigned>(std::ceil(ideal)));
    return false_positive_limit(bits_per_key, low) <= false_positive_limit(bits_per_key, high) ? low : high;
}

double false_positives_density(double x, double queries, double p) {
    assert(queries > 0 && p > 0 && p < 1);
    const double variance = queries * p * (1 - p);
    const double off = x - queries * p;
    return std::exp(-off * off / (2 * variance)) / std::sqrt(2 * std::numbers::pi * variance);
}

double count_min_overestimate_bound(double width, unsigned depth, double epsilon) {
    assert(width >= 2 && depth >= 1 && epsilon > 0);
    return std::min(1.0, 2 / (epsilon * width * width) + std::pow(2 / (epsilon * width), depth));
}

CountMinShape count_min_shape(double epsilon) {
    assert(epsilon >= 1e-6 && epsilon < 1);
    constexpr double e = std::numbers::e;
    auto width = static_cast<unsigned long>(std::ceil(2 * e / epsilon));
    while (!is_prime(width)) ++width;
    const double depth = std::ceil(-std::log(epsilon * (1 - 1 / (2 * e * e))));
    return {width, std::max(1U, static_cast<unsigned>(depth))};
}

} // namespace sieve::analysis::less_hashing
