// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/analysis/blocked.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "libsieve/analysis/ode.hpp"
#include "libsieve/analysis/standard_bloom.hpp"

namespace sieve::analysis::blocked {

namespace {

/// The smallest J with Pr(Poisson(mean) > J) < 1e-25. Choice only narrows the distribution, so this J
/// suffices for every alpha and d.
std::size_t highest_load(double mean) {
    if (mean <= 0) return 0;
    auto x = static_cast<std::size_t>(mean) + 1;
    double term =
        std::exp(static_cast<double>(x) * std::log(mean) - mean - std::lgamma(static_cast<double>(x) + 1));
    // Above the mean the tail beyond x is below term * mean / (x + 1 - mean).
    while (term * mean / (static_cast<double>(x) + 1 - mean) >= 1e-25)
        term *= mean / static_cast<double>(++x);
    return x;
}

/// T(x)^d - T(x+1)^d, the probability that the least loaded of d random blocks has load x, from D(x) and
/// T(x+1). Computed as D(x) sum_i T(x)^i T(x+1)^{d-1-i}, where all terms are positive.
double choose(double at, double above, unsigned choices) {
    const double from = at + above;
    double sum = 1;
    double power = 1;
    for (unsigned i = 1; i < choices; ++i) {
        power *= above;
        sum = sum * from + power;
    }
    return at * sum;
}

std::vector<double> fpr_by_load(const Filter& f, BlockRate rate, std::size_t max_load) {
    const auto top = static_cast<unsigned>(max_load);
    return rate == BlockRate::exact ? standard_bloom::fpp_table(f.block_bits, f.k, top)
                                    : basic_fpr_table(f.block_bits, f.k, top);
}

} // namespace

std::vector<double> load_distribution(double mean_load, double alpha, unsigned choices) {
    assert(mean_load >= 0 && alpha >= 0 && alpha <= 1 && choices >= 1);
    std::vector<double> d(highest_load(mean_load) + 1, 0.0);
    d[0] = 1.0;
    const auto derivative = [alpha, choices](const std::vector<double>& load, std::vector<double>& change) {
        const std::size_t top = load.size() - 1;
        double above = load[top];
        double leaving_above = 0; // the rate at which blocks of load x + 1 gain a key
        change[top] = 0;          // no key leaves the last entry
        for (std::size_t x = top; x-- > 0;) {
            const double leaving = alpha * choose(load[x], above, choices) + (1 - alpha) * load[x];
            change[x + 1] = leaving - leaving_above;
            leaving_above = leaving;
            above += load[x];
        }
        change[0] = -leaving_above;
    };
    if (d.size() > 1) integrate(d, mean_load, derivative, {.relative = 1e-9, .absolute = 1e-18});
    return d;
}

std::vector<double> basic_fpr_table(unsigned block_bits, unsigned k, unsigned max_load) {
    std::vector<double> table(max_load + 1);
    for (unsigned j = 0; j <= max_load; ++j) table[j] = standard_bloom::fpp_a1({block_bits, j, k});
    return table;
}

double block_fpr(std::span<const double> loads, std::span<const double> fpr_by_load) {
    assert(fpr_by_load.size() >= loads.size());
    double sum = 0;
    for (std::size_t j = 0; j < loads.size(); ++j) sum += loads[j] * fpr_by_load[j];
    return sum;
}

double query_fpr(double q, double alpha, unsigned choices, QueryRate rate) {
    assert(alpha >= 0 && alpha <= 1 && choices >= 1);
    if (rate == QueryRate::coefficient) return (1 + alpha * (choices - 1)) * q;
    const double any = -std::expm1(choices * std::log1p(-q)); // 1 - (1-q)^d
    return (1 - alpha) * q + alpha * any;
}

double fpr(const Filter& filter, Model model) {
    const auto loads = load_distribution(filter.mean_load(), filter.alpha, filter.choices);
    const double q = block_fpr(loads, fpr_by_load(filter, model.block, loads.size() - 1));
    return query_fpr(q, filter.alpha, filter.choices, model.query);
}

BestAlpha best_alpha(const Filter& filter, Model model) {
    const auto table = fpr_by_load(filter, model.block, highest_load(filter.mean_load()));
    const auto at = [&](double alpha) {
        const auto loads = load_distribution(filter.mean_load(), alpha, filter.choices);
        return BestAlpha{alpha, query_fpr(block_fpr(loads, table), alpha, filter.choices, model.query)};
    };
    // Golden-section search: the rate is convex in alpha (Figure 3).
    double low = 0;
    double high = 1;
    const double section = 1 / std::numbers::phi;
    BestAlpha left = at(high - section * (high - low));
    BestAlpha right = at(low + section * (high - low));
    while (high - low > 0.002) {
        if (left.fpr < right.fpr) {
            high = right.alpha;
            right = left;
            left = at(high - section * (high - low));
        } else {
            low = left.alpha;
            left = right;
            right = at(low + section * (high - low));
        }
    }
    BestAlpha best = left.fpr < right.fpr ? left : right;
    for (const double end : {0.0, 1.0}) {
        // An optimum at an end must be exactly that end, not a point beside it.
        const BestAlpha candidate = at(end);
        if (candidate.fpr <= best.fpr) best = candidate;
    }
    return best;
}

BestK best_k(const Filter& filter, Model model) {
    const auto loads = load_distribution(filter.mean_load(), filter.alpha, filter.choices);
    const auto at = [&](unsigned k) {
        Filter f = filter;
        f.k = k;
        const double q = block_fpr(loads, fpr_by_load(f, model.block, loads.size() - 1));
        return BestK{k, query_fpr(q, f.alpha, f.choices, model.query)};
    };
    // The rate falls to its minimum, which lies near or below ln2 * c, and then rises.
    BestK best = at(1);
    for (unsigned k = 2; k <= filter.block_bits; ++k) {
        const BestK next = at(k);
        if (next.fpr >= best.fpr) break;
        best = next;
    }
    return best;
}

} // namespace sieve::analysis::blocked
