// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/blocked/blocked_plan.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <random>
#include <vector>

#include <fmt/core.h>

#include <sieve/blocked.h>

#include "libsieve/analysis/blocked.hpp"
#include "libsieve/filters/kinds/blocked/blocked_placement.hpp"
#include "libsieve/filters/pattern_rate.hpp"
#include "libsieve/filters/placement/sample_hashes.hpp"
#include "libsieve/filters/placement/shards.hpp"
#include "libsieve/filters/placement/wide_line.hpp"
#include "libsieve/filters/sizing.hpp"

namespace sieve {

namespace {

// The most keys of one sample filter for predictions: larger filters are scaled down to it.
constexpr std::uint64_t sample_keys = 32768;
// Keys of all sample filters together: with this many, the standard error is below 1%. Without rebalancing,
// rates scatter more, and a key takes a twentieth of the time.
constexpr std::uint64_t all_sample_keys = sample_keys;
constexpr std::uint64_t all_online_sample_keys = 8 * sample_keys;

constexpr std::uint64_t most_filters = 64;

constexpr std::uint64_t sample_seed = 0x5349455645; // any; fixed, so that predictions can be compared

} // namespace

std::uint16_t alpha_to_image(double alpha) {
    assert(alpha >= 0 && alpha <= 1);
    return static_cast<std::uint16_t>(std::lround(alpha * 0xffff));
}

double alpha_from_image(std::uint16_t alpha) {
    return alpha / static_cast<double>(0xffff);
}

namespace {

// The best k for the builder's filters, at certain sizes. Rebalancing lets keys share bits, which moves the
// best k above ln 2 (m/n). At many bits a key, the uneven loads of lines pull it down again. Measured on 2^17
// keys; values between the sizes are interpolated linearly.
struct BestHashes {
    double bits_per_key;
    std::array<double, SIEVE_MAX_CHOICES> hashes; // by choices, 1 to 3
};
constexpr std::array<BestHashes, 9> best_hashes_table = {{
    {1, {1, 1, 1}},
    {4, {2.6, 4, 4}},
    {8, {5, 8, 8}},
    {12, {8, 11, 11}},
    {16, {10, 13, 14}},
    {20, {11, 16, 17}},
    {24, {13, 19, 20}},
    {32, {15, 23, 23}},
    {64, {25, 31, 31}},
}};

} // namespace

std::uint32_t best_hashes(double bits_per_key, const BlockedShape& shape) {
    const double bits = std::clamp(bits_per_key, best_hashes_table.front().bits_per_key,
                                   best_hashes_table.back().bits_per_key);
    std::size_t i = 1;
    while (best_hashes_table[i].bits_per_key < bits) i++;
    const auto& from = best_hashes_table[i - 1];
    const auto& to = best_hashes_table[i];
    const double share = (bits - from.bits_per_key) / (to.bits_per_key - from.bits_per_key);
    const auto at = [&](std::size_t choices) {
        return std::lerp(from.hashes[choices - 1], to.hashes[choices - 1], share);
    };
    return static_cast<std::uint32_t>(std::lround(std::lerp(at(1), at(shape.choices), shape.alpha)));
}

double rate_of_uneven_shards(double rate, double keys) {
    const double log = -std::log(rate);
    return rate > 0 ? 1 + (log * log / 2 - log) / keys : 1;
}

double rate_of_query(double line_rate, std::uint64_t lines, const BlockedShape& shape) {
    const double coincide = 1.0 / static_cast<double>(lines);
    const auto different = [&](int count) { return 1 - std::pow(1 - line_rate, count); };
    double chosen = different(1);
    if (shape.choices == 2) chosen = coincide * different(1) + (1 - coincide) * different(2);
    if (shape.choices == 3)
        chosen = coincide * coincide * different(1) + 3 * coincide * (1 - coincide) * different(2) +
                 (1 - coincide) * (1 - 2 * coincide) * different(3);
    return (1 - shape.alpha) * different(1) + shape.alpha * chosen;
}

double collision_rate(std::uint64_t keys, std::uint64_t lines) {
    return std::ldexp(static_cast<double>(keys) / static_cast<double>(lines), -64);
}

double model_fpr(double bits_per_key, const BlockedShape& shape) {
    return analysis::blocked::fpr({.bits_per_key = bits_per_key,
                                   .block_bits = SIEVE_LINE_BITS,
                                   .k = shape.hashes,
                                   .alpha = shape.choices == 1 ? 0 : shape.alpha,
                                   .choices = shape.choices});
}

namespace {

// The mean rate of a line when each key has only one line. It averages the rates of lines with a given number
// of keys over the binomial distribution of that number. At many bits a key, a few heavy lines make up the
// rate, and only very large samples of whole filters would contain enough of them.
double line_rate_without_choice(std::uint64_t keys, std::uint64_t lines, std::uint32_t hashes) {
    constexpr int sample_lines = 2048;
    constexpr double negligible = 1e-20;
    const auto n = static_cast<double>(keys);
    const double others = static_cast<double>(lines) - 1;
    std::vector<double> share; // share of lines by their number of keys
    if (lines == 1) {
        share.assign(keys + 1, 0);
        share.back() = 1;
    } else {
        double of_load = std::exp(n * std::log1p(-1 / static_cast<double>(lines)));
        for (double load = 0; load <= n; load++) {
            share.push_back(of_load);
            if (load > n / static_cast<double>(lines) && of_load < negligible) break;
            of_load *= (n - load) / (load + 1) / others;
        }
    }
    const PatternRate rate(hashes);
    std::mt19937_64 random(sample_seed);
    double sum = 0;
    for (int i = 0; i < sample_lines; i++) {
        sieve_line line{};
        for (std::size_t load = 1; load < share.size(); load++) {
            const WideLine pattern = wide_pattern(random(), hashes);
            for (int w = 0; w < SIEVE_LINE_WORDS; w++) line.word[w] |= pattern[w];
            if (share[load] > 0) sum += share[load] * static_cast<double>(rate(word_fill(line)));
        }
    }
    return sum / sample_lines;
}

} // namespace

double predict_fpr(std::uint64_t keys, std::uint64_t lines, const BlockedShape& shape, std::uint32_t rounds) {
    assert(keys > 0 && lines > 0 && shape.hashes > 0);
    if (shape.choices == 1 || shape.alpha == 0)
        return line_rate_without_choice(keys, lines, shape.hashes) + collision_rate(keys, lines);
    // Small filters are built in their own size. Of a large filter, a part of a shard is built.
    const bool small = keys <= sample_keys;
    const std::uint64_t filter_keys = small ? keys : sample_keys;
    const std::uint64_t wanted_keys = rounds == 0 ? all_online_sample_keys : all_sample_keys;
    // With so much room, a rate needs no digits, and each filter may take a gigabyte.
    const bool ample = bits_per_key_of(keys, lines) > most_bits_per_key;
    const std::uint64_t filters =
        ample ? 1 : std::clamp<std::uint64_t>((wanted_keys + filter_keys - 1) / filter_keys, 1, most_filters);
    const std::uint64_t filter_lines =
        small ? lines
              : std::max<std::uint64_t>(
                    1, std::llround(static_cast<double>(lines) * sample_keys / static_cast<double>(keys)));

    sieve_lookup lookup{};
    lookup.kind = SIEVE_KIND_BLOCKED;
    lookup.choices = static_cast<std::uint8_t>(shape.choices);
    lookup.hashes = static_cast<std::uint8_t>(shape.hashes);
    lookup.alpha = alpha_to_image(shape.alpha);
    lookup.buckets = static_cast<std::uint32_t>(filter_lines);
    lookup.shard_bits = static_cast<std::uint8_t>(small ? shard_bits_for(lines) : 0);

    std::mt19937_64 random(sample_seed);
    double rate = 0;
    for (std::uint64_t f = 0; f < filters; f++) {
        const std::vector<sieve_hash> hashes = sample_hashes(filter_keys, random);
        std::vector<sieve_line> filter(filter_lines);
        rate += place_blocked(hashes, lookup, filter, {.rounds = rounds, .seed = random()}, {}).final_rate;
    }
    rate /= static_cast<double>(filters);
    const std::uint32_t bits = shard_bits_for(lines);
    if (!small && bits > 0)
        rate *= rate_of_uneven_shards(rate, std::ldexp(static_cast<double>(keys), -static_cast<int>(bits)));
    return rate_of_query(rate + collision_rate(keys, lines), lines >> bits, shape);
}

Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr, const BlockedShape& shape,
                                    std::uint32_t rounds) {
    const auto predicted = [&](std::uint64_t lines) {
        BlockedShape used = shape;
        const double bits = static_cast<double>(lines) * SIEVE_LINE_BITS / static_cast<double>(keys);
        if (used.hashes == 0) used.hashes = best_hashes(bits, shape);
        return predict_fpr(keys, whole_shards(lines), used, rounds);
    };
    const std::uint64_t most = std::max<std::uint64_t>(8, lines_for_bits(keys, most_bits_per_key));
    if (const auto lines = fewest_lines(
            fpr, {.least = lines_for_bits(keys, std::max(least_bits_per_key, -std::log2(fpr))), .most = most},
            predicted))
        return whole_shards(*lines);
    return invalid_request(
        fmt::format("a false positive rate of {:.3g} is out of reach of this kind of filter: even {} "
                    "bits per key give {:.3g}",
                    fpr, most_bits_per_key, predicted(most)));
}

} // namespace sieve
