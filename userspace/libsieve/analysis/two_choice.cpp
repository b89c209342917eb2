// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/analysis/two_choice.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "libsieve/analysis/ode.hpp"

namespace sieve::analysis::two_choice {

double expected_new_ones(double zeros, unsigned k, unsigned groups) {
    assert(zeros >= 0 && zeros <= 1 && k >= 1 && groups >= 1);
    // E[min] = sum_{x = 1..k} Pr(B >= x)^c, summed from the top so that every tail is a sum of positive
    // terms.
    if (zeros >= 1) return k;
    if (zeros <= 0) return 0;
    const double log_odds = std::log(zeros) - std::log1p(-zeros);
    double log_choose = 0; // ln C(k, x) at x = k
    double tail = 0;
    double sum = 0;
    for (unsigned x = k; x >= 1; --x) {
        tail += std::exp(log_choose + x * log_odds + k * std::log1p(-zeros));
        sum += std::pow(tail, groups);
        log_choose += std::log(static_cast<double>(x) / (k - x + 1));
    }
    return sum;
}

double fraction_of_ones(double bits_per_key, unsigned k, unsigned groups) {
    assert(bits_per_key > 0 && k >= 1 && groups >= 1);
    // The state is the fraction of zeros, not of ones: it keeps its digits in an overfull filter. Time is in
    // keys per bit.
    std::vector<double> zeros{1.0};
    const auto derivative = [k, groups](const std::vector<double>& y, std::vector<double>& change) {
        change[0] = -expected_new_ones(std::clamp(y[0], 0.0, 1.0), k, groups);
    };
    integrate(zeros, 1 / bits_per_key, derivative, {.relative = 1e-12, .absolute = 1e-15});
    return 1 - zeros[0];
}

double fpp_given_ones(double ones, unsigned k, unsigned groups) {
    assert(ones >= 0 && ones <= 1 && k >= 1 && groups >= 1);
    return -std::expm1(groups * std::log1p(-std::pow(ones, k)));
}

double fpp(double bits_per_key, unsigned k, unsigned groups) {
    return fpp_given_ones(fraction_of_ones(bits_per_key, k, groups), k, groups);
}

BestGroupK best_k(double bits_per_key, unsigned groups) {
    // The probability falls to its minimum and then rises.
    BestGroupK best{1, fpp(bits_per_key, 1, groups)};
    for (unsigned k = 2;; ++k) {
        const BestGroupK next{k, fpp(bits_per_key, k, groups)};
        if (next.fpp >= best.fpp) return best;
        best = next;
    }
}

} // namespace sieve::analysis::two_choice
