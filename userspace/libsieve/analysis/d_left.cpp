// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/analysis/d_left.hpp"

#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>

#include "libsieve/analysis/ode.hpp"

namespace sieve::analysis::d_left {

namespace {

constexpr double negligible = 1e-32;

/// A load that less than 1e-40 of the buckets exceed when each key takes a random bucket. With choices, even
/// fewer exceed it.
std::size_t highest_load(double average) {
    std::size_t j = 1;
    double term = average * std::exp(-average); // Pr(Poisson(average) = j)
    while (static_cast<double>(j) < average || term > 1e-40) term *= average / static_cast<double>(++j);
    return j + 1;
}

unsigned no_sorted_bits(unsigned /*load*/) {
    return 0;
}
unsigned one_sorted_bit(unsigned /*load*/) {
    return 1;
}
unsigned sorted_at_4_and_5(unsigned load) {
    return load == 4 || load == 5 ? 1 : 0;
}
unsigned one_but_two_at_6_and_7(unsigned load) {
    return load == 6 || load == 7 ? 2 : 1;
}

/// Distribution of the sum of independent loads.
std::vector<double> convolve(const std::vector<double>& p, const std::vector<double>& q) {
    std::vector<double> sum(p.size() + q.size() - 1, 0.0);
    for (std::size_t a = 0; a < p.size(); ++a)
        for (std::size_t b = 0; b < q.size(); ++b) sum[a + b] += p[a] * q[b];
    return sum;
}

double pow2(unsigned bits) {
    return std::ldexp(1.0, -static_cast<int>(bits));
}

/// Carries q along the equations. Row i of the state starts at i * width. The state holds the loads
/// themselves, not their tails, because a tail loses the digits of a rare low load. The number of subtables
/// is a constant, which makes this nearly twice as fast: the compiler unrolls the loops, and keeps `above`
/// in registers.
template <unsigned subtables>
void solve(std::vector<double>& q, std::size_t width, double average_load, double accuracy) {
    const auto derivative = [width](const std::vector<double>& load, std::vector<double>& change) {
        std::array<double, subtables> above;
        for (unsigned i = 0; i < subtables; ++i) {
            above[i] = load[i * width + width - 1];
            change[i * width + width - 1] = 0; // no key leaves the last entry
        }
        for (std::size_t j = width - 1; j-- > 0;) {
            // above[l] starts as z_l,j+1. The loop goes from right to left, so the entries to the right of i
            // have already been raised to z_lj and those to the left of i have not. The product needs exactly
            // these values.
            for (unsigned i = subtables; i-- > 0;) {
                double rate = subtables * load[i * width + j];
                for (unsigned l = 0; l < subtables; ++l)
                    if (l != i) rate *= above[l];
                change[i * width + j] = -rate;
                change[i * width + j + 1] += rate;
                above[i] += load[i * width + j];
            }
        }
    };
    integrate(q, average_load, derivative, {.relative = accuracy, .absolute = 1e-40});
}

constexpr std::array solvers{solve<1>, solve<2>, solve<3>, solve<4>};

} // namespace

SubtableLoads load_distribution(unsigned subtables, double average_load, double accuracy) {
    assert(subtables >= 1 && subtables <= solvers.size() && average_load >= 0);
    const std::size_t width = highest_load(average_load) + 1;
    std::vector<double> q(subtables * width, 0.0);
    for (unsigned i = 0; i < subtables; ++i) q[i * width] = 1.0;
    solvers[subtables - 1](q, width, average_load, accuracy);

    std::size_t used = width;
    const auto rare = [&](std::size_t j) {
        for (unsigned i = 0; i < subtables; ++i)
            if (q[i * width + j] >= negligible) return false;
        return true;
    };
    while (used > 1 && rare(used - 1)) --used;
    SubtableLoads loads(subtables);
    for (unsigned i = 0; i < subtables; ++i)
        for (std::size_t j = 0; j < used; ++j) loads[i].push_back(q[i * width + j]);
    return loads;
}

std::vector<double> overall_loads(const SubtableLoads& loads) {
    assert(!loads.empty());
    std::vector<double> mean(loads[0].size(), 0.0);
    for (const auto& subtable : loads)
        for (std::size_t j = 0; j < subtable.size(); ++j)
            mean[j] += subtable[j] / static_cast<double>(loads.size());
    return mean;
}

BucketLayout layout_64() {
    return {60, no_sorted_bits};
}
BucketLayout layout_64_semi_sorted() {
    return {60, sorted_at_4_and_5};
}
BucketLayout layout_128_one_bit() {
    return {120, one_sorted_bit};
}
BucketLayout layout_128_two_bits() {
    return {120, one_but_two_at_6_and_7};
}

double false_positive(const SubtableLoads& loads, const FingerprintLength& length) {
    double sum = 0;
    for (const auto& subtable : loads)
        for (unsigned a = 1; a < subtable.size(); ++a) sum += subtable[a] * a * pow2(length(a));
    return sum;
}

double false_positive_independent(const SubtableLoads& loads, const FingerprintLength& length) {
    double log_miss = 0;
    for (const auto& subtable : loads) {
        double hit = 0;
        for (unsigned a = 1; a < subtable.size(); ++a)
            hit += subtable[a] * -std::expm1(a * std::log1p(-pow2(length(a))));
        log_miss += std::log1p(-hit);
    }
    return -std::expm1(log_miss);
}

double false_positive_grouped(const SubtableLoads& loads, const BucketLayout& layout, unsigned group) {
    assert(group >= 1);
    const unsigned shared_bits = group * layout.fingerprint_bits;
    double sum = 0;
    for (const auto& subtable : loads) {
        std::vector<double> others{1.0}; // distribution of the total load of the group's other buckets
        for (unsigned g = 1; g < group; ++g) others = convolve(others, subtable);
        for (unsigned a = 1; a < subtable.size(); ++a) {
            double per_fingerprint = 0;
            for (unsigned b = 0; b < others.size(); ++b)
                per_fingerprint += others[b] * pow2(shared_bits / (a + b));
            sum += subtable[a] * a * per_fingerprint * pow2(layout.sorted_bits(a));
        }
    }
    return sum;
}

std::uint64_t semi_sort_states(unsigned load, unsigned bits) {
    assert(bits <= 3);
    const unsigned values = 1U << bits;
    std::uint64_t states = 1; // C(load + i, i)
    for (unsigned i = 1; i < values; ++i) states = states * (load + i) / i;
    return states;
}

std::uint64_t counter_states(const BucketLayout& layout, unsigned max_load) {
    std::uint64_t states = 1; // load 0
    for (unsigned a = 1; a <= max_load; ++a) states += semi_sort_states(a, layout.sorted_bits(a));
    return states;
}

} // namespace sieve::analysis::d_left
