// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/blocked/blocked_rate.hpp"

#include <cmath>

#include "libsieve/filters/kinds/blocked/blocked_plan.hpp"
#include "libsieve/filters/pattern_rate.hpp"

namespace sieve {

namespace {

// The limit for small filters: up to this many ways to draw `choices` lines, all of them are evaluated.
constexpr double most_draws = 1 << 16;

// The probability that any of the drawn lines covers a pattern, averaged over all draws. A query asks all its
// lines for the same pattern, so ones that lines have in common matter (inclusion and exclusion). In large
// filters this effect averages out.
double rate_over_all_draws(std::span<const sieve_line> lines, const PatternRate& rate,
                           std::uint32_t choices) {
    const auto both = [](const sieve_line& a, const sieve_line& b) {
        sieve_line common{};
        for (int w = 0; w < SIEVE_LINE_WORDS; w++) common.word[w] = a.word[w] & b.word[w];
        return common;
    };
    const auto of = [&rate](const sieve_line& line) { return static_cast<double>(rate(word_fill(line))); };
    const auto n = static_cast<double>(lines.size());
    double one = 0;
    double two = 0;
    double three = 0;
    for (const auto& a : lines) {
        one += of(a);
        if (choices < 2) continue;
        for (const auto& b : lines) {
            const sieve_line common = both(a, b);
            two += of(common);
            if (choices < 3) continue;
            for (const auto& c : lines) three += of(both(common, c));
        }
    }
    one /= n;
    two /= n * n;
    three /= n * n * n;
    return choices == 1 ? one : choices == 2 ? 2 * one - two : 3 * one - 3 * two + three;
}

// The same for one shard. `collision` is collision_rate() of the filter.
double rate_of_shard(const sieve_lookup& lookup, std::span<const sieve_line> lines, const PatternRate& rate,
                     double collision) {
    const BlockedShape shape{.alpha = alpha_from_image(lookup.alpha), .choices = lookup.choices};
    double sum = 0;
    for (const sieve_line& line : lines) sum += rate(word_fill(line));
    const double line_rate = sum / static_cast<double>(lines.size());
    if (std::pow(static_cast<double>(lines.size()), lookup.choices) > most_draws)
        return rate_of_query(line_rate + collision, lines.size(), shape);
    return (1 - shape.alpha) * line_rate + shape.alpha * rate_over_all_draws(lines, rate, lookup.choices) +
           collision;
}

} // namespace

double expected_blocked_rate(const sieve_lookup& lookup, std::span<const sieve_line> lines,
                             std::uint64_t keys) {
    const PatternRate rate(lookup.hashes);
    const double collision = collision_rate(keys, lines.size());
    const std::size_t shard_lines = lines.size() >> lookup.shard_bits;
    double sum = 0;
    for (std::size_t first = 0; first < lines.size(); first += shard_lines)
        sum += rate_of_shard(lookup, lines.subspan(first, shard_lines), rate, collision);
    return std::ldexp(sum, -static_cast<int>(lookup.shard_bits));
}

} // namespace sieve
