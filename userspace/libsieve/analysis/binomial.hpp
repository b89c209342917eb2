// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tests whether a count of false positives fits a predicted rate.
#pragma once

#include <cstdint>

namespace sieve::analysis {

// P(X >= successes) for X ~ Binomial(trials, rate), summed term by term. Preconditions: successes <= trials,
// 0 <= rate <= 1. Relative accuracy about 1e-9; cost grows with the standard deviation of X.
double binomial_upper_tail(std::uint64_t successes, std::uint64_t trials, double rate);

// P(X <= successes), likewise.
double binomial_lower_tail(std::uint64_t successes, std::uint64_t trials, double rate);

// The tail probability of six standard deviations of the normal distribution. Only one correct measurement in
// a billion falls outside, so a measurement that does counts as a contradiction.
inline constexpr double six_sigma_tail = 9.866e-10;

// True unless the count is outside six sigma of the rate, on either side.
bool fits_rate(std::uint64_t successes, std::uint64_t trials, double rate);

} // namespace sieve::analysis
