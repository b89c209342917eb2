// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/analysis/xorsat.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "libsieve/util/parallel/first_use.hpp"

namespace sieve::analysis::xorsat {

namespace {

constexpr int classes = 8;
constexpr int line_bits = 512;

// Lines of more keys than this compare no more than a bit of a few of them.
constexpr int most_tabulated = 1024;
// With so many equations more than unknowns, none of 10^12 systems has a solution.
constexpr int hopeless = unknowns + 40;

// Follows the rank of the equations, while they have a solution. Ranks far below the number of unknowns are
// certain: nearly every equation adds one.
std::vector<double> solvable_by_equations() {
    constexpr int certain = unknowns - 60;
    std::vector<double> table(hopeless + 1, 1);
    std::vector<double> of_rank(unknowns - certain + 1, 0); // probabilities of the ranks from `certain` on
    of_rank[0] = 1;
    for (int k = certain; k < hopeless; k++) {
        std::vector<double> next(of_rank.size(), 0);
        double sum = 0;
        for (std::size_t r = 0; r < of_rank.size(); r++) {
            const double dependent = std::exp2(static_cast<double>(r) + certain - unknowns);
            next[r] += of_rank[r] * dependent / 2;
            if (r + 1 < next.size()) next[r + 1] += of_rank[r] * (1 - dependent);
        }
        for (const double p : next) sum += p;
        of_rank = std::move(next);
        table[static_cast<std::size_t>(k) + 1] = sum;
    }
    return table;
}

// P(Binomial(n, p) = k) for k = 0 .. n.
std::vector<double> binomial(int n, double p) {
    std::vector<double> share(static_cast<std::size_t>(n) + 1, 0);
    if (p <= 0) {
        share.front() = 1;
        return share;
    }
    for (int k = 0; k <= n; k++)
        share[static_cast<std::size_t>(k)] =
            std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(p) +
                     (n - k) * std::log1p(-p));
    return share;
}

// How many unknowns long fingerprints cannot use: a window's lowest bits are in few equations, and its shift
// moves many of the last equations' bits out. Fitted to lines that were solved: 3 at 31 bits, 0.6 at 23, next
// to nothing at 16.
double unused_unknowns(double bits) {
    return 3 * std::pow(bits / 31, 6);
}

// The probability that q has a solution: every key compares q / 8 bits, and a key of the last q % 8 classes
// one more.
double solvable_at(int keys, int q) {
    const int all = keys * (q / classes);
    if (all > hopeless) return 0;
    const double unused = unused_unknowns(static_cast<double>(q) / classes);
    const int whole = static_cast<int>(unused);
    const std::vector<double> one_more = binomial(keys, static_cast<double>(q % classes) / classes);
    double sum = 0;
    for (int k = 0; k <= keys; k++)
        sum += one_more[static_cast<std::size_t>(k)] *
               std::lerp(solvable(all + k + whole), solvable(all + k + whole + 1), unused - whole);
    return std::min(1.0, sum);
}

double mean_rate_of_line(int keys) {
    constexpr double negligible = 1e-12;
    // A solution for q is one for every smaller q, so P(largest q >= q) = P(q has a solution).
    double rate = 0;
    double reached = 1;
    for (int q = 0; q < most_q && reached > negligible; q++) {
        const double next = solvable_at(keys, q + 1);
        rate += (reached - next) * rate_of_q(q);
        reached = next;
        if (q == most_q - 1) rate += reached * rate_of_q(most_q);
    }
    return rate;
}

} // namespace

double solvable(int equations) {
    static std::atomic<const std::vector<double>*> known = nullptr;
    const std::vector<double>& table = first_use(known, solvable_by_equations);
    return equations > hopeless ? 0 : table[static_cast<std::size_t>(equations)];
}

double rate_of_q(int q) {
    double sum = 0;
    for (int c = 0; c < classes; c++) sum += std::ldexp(1.0 / classes, -((q + c) / classes));
    return sum;
}

double rate_of_line(int keys) {
    if (keys > most_tabulated) return rate_of_q(0);
    // Several threads may compute the same element; they find the same number.
    static std::array<std::atomic<double>, most_tabulated + 1> known{};
    std::atomic<double>& rate = known[static_cast<std::size_t>(keys)];
    if (rate == 0) rate = mean_rate_of_line(keys);
    return rate;
}

double rate_without_exports(double bits_per_key) {
    const double mean = line_bits / bits_per_key;
    const int most = static_cast<int>(mean + 12 * std::sqrt(mean) + 24);
    double rate = 0;
    for (int keys = 0; keys <= most; keys++)
        rate += std::exp(keys * std::log(mean) - mean - std::lgamma(keys + 1)) * rate_of_line(keys);
    return std::min(1.0, rate);
}

} // namespace sieve::analysis::xorsat
