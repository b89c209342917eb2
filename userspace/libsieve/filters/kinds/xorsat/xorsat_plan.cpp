// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/xorsat/xorsat_plan.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/core.h>

#include "libsieve/analysis/xorsat.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_exports.hpp"
#include "libsieve/filters/sizing.hpp"

namespace sieve {

namespace {

// Lines of the sample filters together. The standard error of the rate is below 1%.
constexpr std::uint64_t sample_lines = 8192;
constexpr std::uint64_t sample_seed = 0x58534154; // any; fixed, so that predictions can be compared

double rate_of_binomial_loads(std::uint64_t keys, std::uint64_t lines) {
    if (lines == 1)
        return analysis::xorsat::rate_of_line(static_cast<int>(std::min<std::uint64_t>(keys, 1 << 20)));
    const auto n = static_cast<double>(keys);
    const double p = 1 / static_cast<double>(lines);
    const double mean = n * p;
    const double most = std::min(n, mean + 12 * std::sqrt(mean) + 24);
    double rate = 0;
    for (double load = 0; load <= most; load++)
        rate += std::exp(std::lgamma(n + 1) - std::lgamma(load + 1) - std::lgamma(n - load + 1) +
                         load * std::log(p) + (n - load) * std::log1p(-p)) *
                analysis::xorsat::rate_of_line(static_cast<int>(load));
    return std::min(1.0, rate);
}

double sample_rate(std::uint64_t keys, std::uint32_t lines, std::uint32_t sweeps, std::mt19937_64& random) {
    sieve_lookup lookup{};
    lookup.buckets = lines;
    XorsatCounts counts(std::size_t{lines} * SIEVE_XORSAT_EIGHTHS);
    for (std::uint64_t i = 0; i < keys; i++) {
        const std::uint64_t draw = random();
        counts[std::size_t{sieve_reduce(static_cast<std::uint32_t>(draw), lines)} * SIEVE_XORSAT_EIGHTHS +
               (draw >> 32) % SIEVE_XORSAT_EIGHTHS]++;
    }
    const XorsatExports exports = choose_exports(lookup, counts, sweeps);
    double rate = 0;
    for (std::uint32_t line = 0; line < lines; line++)
        rate += exports.eighths[line] * analysis::xorsat::rate_of_line(static_cast<int>(exports.loads[line]));
    return rate / SIEVE_XORSAT_EIGHTHS / lines;
}

} // namespace

double predict_xorsat_fpr(std::uint64_t keys, std::uint64_t lines, std::uint32_t sweeps) {
    if (sweeps == 0 || lines == 1) return rate_of_binomial_loads(keys, lines);
    std::uint64_t filters = std::clamp<std::uint64_t>(sample_lines / lines, 1, 128);
    if (lines > sample_lines) {
        keys = static_cast<std::uint64_t>(
            std::llround(static_cast<double>(keys) / static_cast<double>(lines) * sample_lines));
        lines = sample_lines;
    }
    std::mt19937_64 random(sample_seed);
    double sum = 0;
    for (std::uint64_t i = 0; i < filters; i++)
        sum += sample_rate(keys, static_cast<std::uint32_t>(lines), sweeps, random);
    return sum / static_cast<double>(filters);
}

Result<std::uint64_t> xorsat_lines_for_fpr(std::uint64_t keys, double fpr, std::uint32_t sweeps) {
    const auto lines =
        fewest_lines(fpr,
                     {.least = lines_for_bits(keys, std::max(1.0, -std::log2(fpr))),
                      .most = lines_for_bits(keys, most_bits_per_key),
                      .precision = 0.0005},
                     [&](std::uint64_t some) { return predict_xorsat_fpr(keys, some, sweeps); });
    if (lines) return *lines;
    return invalid_request(
        fmt::format("a false positive rate of {} is out of reach of kind xorsat, expected at least {:.2g}",
                    fpr, analysis::xorsat::rate_of_q(analysis::xorsat::most_q)));
}

} // namespace sieve
