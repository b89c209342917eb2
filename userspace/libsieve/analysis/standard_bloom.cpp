// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/analysis/standard_bloom.hpp"

#include <cassert>
#include <cmath>
#include <cstddef>

#include "libsieve/analysis/ones_chain.hpp"

namespace sieve::analysis::standard_bloom {

namespace {

double probes(BloomShape s) {
    return static_cast<double>(s.n) * s.k;
}

/// ln(1 - 1/m), -infinity at m = 1.
double log_miss(double m) {
    return std::log1p(-1.0 / m);
}

/// (x/m)^k for x = 0..m: the false positive probability given x ones. Equation (2).
std::vector<double> fpp_given_ones(std::uint64_t m, unsigned k) {
    std::vector<double> g(m + 1);
    for (std::size_t x = 0; x <= m; ++x) g[x] = std::pow(static_cast<double>(x) / static_cast<double>(m), k);
    return g;
}

OnesChain filled(BloomShape s) {
    OnesChain chain(s.m);
    for (std::uint64_t i = 0; i < s.n * s.k; ++i) chain.probe();
    return chain;
}

} // namespace

std::vector<double> ones_pmf(BloomShape shape) {
    assert(shape.m >= 2 && shape.k >= 1);
    return filled(shape).pmf();
}

double ones_mean(BloomShape shape) {
    assert(shape.m >= 2 && shape.k >= 1);
    const auto m = static_cast<double>(shape.m);
    return -m * std::expm1(probes(shape) * log_miss(m));
}

double ones_variance(BloomShape shape) {
    assert(shape.m >= 2 && shape.k >= 1);
    if (shape.n == 0) return 0.0;
    // With q = (1 - 1/m)^{kn} and r = (1 - 1/(m-1))^{kn}, (8) reads m q [1 - m q + (m-1) r]
    // = m q [1 - r + m (r - q)], and r/q = (1 - 1/(m-1)^2)^{kn} gives r - q without cancellation.
    const auto m = static_cast<double>(shape.m);
    const double q = std::exp(probes(shape) * log_miss(m));
    const double one_minus_r = -std::expm1(probes(shape) * log_miss(m - 1));
    const double r_minus_q = q * std::expm1(probes(shape) * std::log1p(-1.0 / ((m - 1) * (m - 1))));
    return m * q * (one_minus_r + m * r_minus_q);
}

double fpp(BloomShape shape) {
    assert(shape.m >= 2 && shape.k >= 1);
    return filled(shape).mean_of(fpp_given_ones(shape.m, shape.k));
}

std::vector<double> fpp_table(std::uint64_t m, unsigned k, std::uint64_t max_n) {
    assert(m >= 2 && k >= 1);
    const std::vector<double> given_ones = fpp_given_ones(m, k);
    OnesChain chain(m);
    std::vector<double> table(max_n + 1);
    table[0] = chain.mean_of(given_ones);
    for (std::uint64_t n = 1; n <= max_n; ++n) {
        for (unsigned i = 0; i < k; ++i) chain.probe();
        table[n] = chain.mean_of(given_ones);
    }
    return table;
}

double fpp_a1(BloomShape shape) {
    return std::pow(ones_mean(shape) / static_cast<double>(shape.m), shape.k);
}

double fpp_a2(BloomShape shape) {
    assert(shape.m >= 2 && shape.k >= 1);
    return std::pow(-std::expm1(-probes(shape) / static_cast<double>(shape.m)), shape.k);
}

double fpp_a3(BloomShape shape) {
    const auto m = static_cast<double>(shape.m);
    const double p = ones_mean(shape) / m;
    const double k = shape.k;
    if (shape.k == 1 || shape.n == 0) return fpp_a1(shape);
    return std::pow(p, k) + ones_variance(shape) / 2 * k * (k - 1) / (m * m) * std::pow(p, k - 2);
}

} // namespace sieve::analysis::standard_bloom
