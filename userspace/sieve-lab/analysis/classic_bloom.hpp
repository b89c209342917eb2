// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The classic Bloom filter: every key sets exactly k distinct bits out of m. F. Grandi, "On the analysis of
// Bloom filters" (IPL 2017), section 2.2; equation numbers below are that paper's.
//
// The alternating sums (12), (16) and (18) cancel in floating point. As for the standard filter (see
// standard_bloom.hpp), the pmf and the exact rate come from a Markov chain on the number of ones, in which
// all terms are positive. A key draws its bits one by one. After r distinct draws, the r drawn bits are all
// ones, so the next draw meets a one with probability (x - r)/(m - r). This depends on x and r alone, so the
// chain needs no larger state. Cost O(k n m).
#pragma once

#include <cstdint>
#include <vector>

#include "libsieve/analysis/standard_bloom.hpp"

namespace sieve::analysis::classic_bloom {

/// Probability mass function f_C(x) of the number of ones X, x = 0..m. Equation (12). Precondition: k <= m.
std::vector<double> ones_pmf(BloomShape shape);

/// E[X], in bits. Equation (13). Precondition: k <= m.
double ones_mean(BloomShape shape);

/// Variance of X, in bits^2. Equation (14), rearranged against cancellation at large m. Precondition: k <= m.
double ones_variance(BloomShape shape);

/// Exact false positive probability FPP_C: a non-member's k distinct bits are all ones. Equations (15) to
/// (17). Precondition: k <= m.
double fpp(BloomShape shape);

/// FPP_C for every number of keys 0..max_n at once, in one pass of the Markov chain. Precondition: k <= m.
std::vector<double> fpp_table(std::uint64_t m, unsigned k, std::uint64_t max_n);

} // namespace sieve::analysis::classic_bloom
