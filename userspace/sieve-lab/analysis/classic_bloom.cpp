// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/analysis/classic_bloom.hpp"

#include <cassert>
#include <cmath>
#include <cstddef>

#include "libsieve/analysis/ones_chain.hpp"

namespace sieve::analysis::classic_bloom {

namespace {

void insert_key(OnesChain& chain, unsigned k) {
    for (unsigned drawn = 0; drawn < k; ++drawn) chain.probe(drawn);
}

OnesChain filled(BloomShape s) {
    OnesChain chain(s.m);
    for (std::uint64_t i = 0; i < s.n; ++i) insert_key(chain, s.k);
    return chain;
}

/// C(x, k) / C(m, k) for x = 0..m: the false positive probability given x ones. Equation (15).
std::vector<double> fpp_given_ones(std::uint64_t m, unsigned k) {
    std::vector<double> g(m + 1, 0.0);
    for (std::size_t x = k; x <= m; ++x) {
        double product = 1;
        for (unsigned i = 0; i < k; ++i) product *= static_cast<double>(x - i) / static_cast<double>(m - i);
        g[x] = product;
    }
    return g;
}

} // namespace

std::vector<double> ones_pmf(BloomShape shape) {
    assert(shape.m >= 2 && shape.k >= 1 && shape.k <= shape.m);
    return filled(shape).pmf();
}

double ones_mean(BloomShape shape) {
    assert(shape.m >= 2 && shape.k >= 1 && shape.k <= shape.m);
    if (shape.n == 0) return 0.0;
    const auto m = static_cast<double>(shape.m);
    const double k = shape.k;
    return -m * std::expm1(static_cast<double>(shape.n) * std::log1p(-k / m));
}

double ones_variance(BloomShape shape) {
    assert(shape.m >= 2 && shape.k >= 1 && shape.k <= shape.m);
    if (shape.n <= 1 || shape.k == shape.m) return 0.0; // the number of ones is certain
    // With q = (1 - k/m)^n and r = (1 - k/(m-1))^n, (14) reads m q [1 - m q + (m-1) r] = m q [1 - r + m (r -
    // q)], and r/q = (1 - k/((m-1)(m-k)))^n gives r - q without cancellation.
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const double k = shape.k;
    const double q = std::exp(n * std::log1p(-k / m));
    const double one_minus_r = -std::expm1(n * std::log1p(-k / (m - 1)));
    const double r_minus_q = q * std::expm1(n * std::log1p(-k / ((m - 1) * (m - k))));
    return m * q * (one_minus_r + m * r_minus_q);
}

double fpp(BloomShape shape) {
    assert(shape.m >= 2 && shape.k >= 1 && shape.k <= shape.m);
    return filled(shape).mean_of(fpp_given_ones(shape.m, shape.k));
}

std::vector<double> fpp_table(std::uint64_t m, unsigned k, std::uint64_t max_n) {
    assert(m >= 2 && k >= 1 && k <= m);
    const std::vector<double> given_ones = fpp_given_ones(m, k);
    OnesChain chain(m);
    std::vector<double> table(max_n + 1);
    table[0] = chain.mean_of(given_ones);
    for (std::uint64_t n = 1; n <= max_n; ++n) {
        insert_key(chain, k);
        table[n] = chain.mean_of(given_ones);
    }
    return table;
}

} // namespace sieve::analysis::classic_bloom
