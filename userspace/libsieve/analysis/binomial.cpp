// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/analysis/binomial.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace sieve::analysis {

namespace {

// ln P(X = k)
double log_mass(double k, double n, double p) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(p) +
           (n - k) * std::log1p(-p);
}

// Sums P(X = k), starting at `from` and moving away from the mean in steps of +1 or -1, until terms no longer
// matter.
double sum_away(std::uint64_t from, std::uint64_t trials, double p, int step) {
    const auto n = static_cast<double>(trials);
    auto k = static_cast<double>(from);
    double term = std::exp(log_mass(k, n, p));
    double sum = 0;
    while (k >= 0 && k <= n && term > sum * 1e-12) {
        sum += term;
        term *= step > 0 ? (n - k) / (k + 1) * (p / (1 - p)) : k / (n - k + 1) * ((1 - p) / p);
        k += step;
    }
    return std::min(sum, 1.0);
}

} // namespace

double binomial_upper_tail(std::uint64_t successes, std::uint64_t trials, double rate) {
    assert(successes <= trials && rate >= 0 && rate <= 1);
    if (successes == 0 || rate == 1) return 1;
    if (rate == 0) return 0;
    if (static_cast<double>(successes) <= static_cast<double>(trials) * rate)
        return 1 - sum_away(successes - 1, trials, rate, -1);
    return sum_away(successes, trials, rate, +1);
}

double binomial_lower_tail(std::uint64_t successes, std::uint64_t trials, double rate) {
    if (successes == trials) return 1;
    return binomial_upper_tail(trials - successes, trials, 1 - rate);
}

bool fits_rate(std::uint64_t successes, std::uint64_t trials, double rate) {
    return binomial_upper_tail(successes, trials, rate) >= six_sigma_tail &&
           binomial_lower_tail(successes, trials, rate) >= six_sigma_tail;
}

} // namespace sieve::analysis
