// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/analysis/cuckoo.hpp"

#include <cmath>

namespace sieve::analysis {

namespace {

// The probability that a Poisson variable is at least `least`.
double poisson_tail(int least, double mean) {
    double below = 0;
    double term = std::exp(-mean);
    for (int i = 0; i < least; i++) {
        below += term;
        term *= mean / (i + 1);
    }
    return 1 - below;
}

} // namespace

// The part of the graph that matters is its (lanes + 1)-core: the other vertices have no more edges than they
// can take. Degrees in the core are Poisson variables of some mean that are above `lanes`. The table is full
// when the core has `lanes` edges for each of its vertices; then the mean tells how many edges the whole
// graph has for each of its vertices.
double cuckoo_threshold(int lanes) {
    const auto edges_in_core = [lanes](double mean) {
        return mean * poisson_tail(lanes, mean) / (2 * poisson_tail(lanes + 1, mean));
    };
    double low = lanes;
    double high = 4.0 * lanes;
    for (int step = 0; step < 100; step++) {
        const double middle = (low + high) / 2;
        (edges_in_core(middle) < lanes ? low : high) = middle;
    }
    return low / (2 * poisson_tail(lanes, low)) / lanes;
}

double least_exact_bits(std::uint64_t keys) {
    constexpr double all = 4294967296.0;
    const auto n = static_cast<double>(keys);
    return (std::lgamma(all + 1) - std::lgamma(n + 1) - std::lgamma(all - n + 1)) / std::log(2.0) / n;
}

} // namespace sieve::analysis
