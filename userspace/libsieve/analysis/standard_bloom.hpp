// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The standard Bloom filter: k probes per key with replacement into m bits. F. Grandi, "On the analysis of
// Bloom filters" (IPL 2017), section 2.1; equation numbers below are that paper's.
//
// The alternating sums (6) and (9) cancel catastrophically in floating point: their terms reach 2^m while the
// result lies in [0, 1]. This file computes the same quantities with a Markov chain on the number of ones. A
// probe either finds a one, with probability x/m, and leaves x as it is, or it sets a zero. All terms are
// positive, so nothing cancels, and each pmf entry carries a relative error of about kn rounding errors
// (entries below 1e-290 are dropped). Cost O(k n m), which suits small filters, such as one cache line. For
// large filters, the approximations A1, A2 and A3 cost O(1).
#pragma once

#include <cstdint>
#include <vector>

namespace sieve::analysis {

/// A Bloom filter of m bits that holds n keys with k probes each. Preconditions everywhere: m >= 2, k >= 1.
struct BloomShape {
    std::uint64_t m;
    std::uint64_t n;
    unsigned k;
};

namespace standard_bloom {

/// Probability mass function f_S(x) of the number of ones X, x = 0..m. Equation (6).
std::vector<double> ones_pmf(BloomShape shape);

/// E[X], in bits. Equations (1) and (7).
double ones_mean(BloomShape shape);

/// Variance of X, in bits^2. Equation (8), rearranged so that it keeps its digits even at m = 10^9.
double ones_variance(BloomShape shape);

/// Exact false positive probability FPP_S. Equation (9), by way of the pmf and (3).
double fpp(BloomShape shape);

/// FPP_S for every number of keys 0..max_n at once, in one pass of the Markov chain. Equation (9).
/// Entry n is the false positive probability inside a block of m bits that holds n keys.
std::vector<double> fpp_table(std::uint64_t m, unsigned k, std::uint64_t max_n);

/// FPP_A1 = (E[X]/m)^k. Equation (4). A1 lies below FPP_S and above A2, so it is the better of the two. The
/// paper's section 3 swaps the errors of A1 and A2.
double fpp_a1(BloomShape shape);

/// FPP_A2 = (1 - e^{-kn/m})^k. Equation (5).
double fpp_a2(BloomShape shape);

/// FPP_A3: FPP_A1 plus the second-order term in the variance of X. Equation (11).
double fpp_a3(BloomShape shape);

} // namespace standard_bloom
} // namespace sieve::analysis
