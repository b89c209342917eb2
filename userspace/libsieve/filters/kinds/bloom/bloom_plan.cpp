// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/bloom/bloom_plan.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <random>
#include <vector>

#include <fmt/core.h>

#include "libsieve/analysis/less_hashing.hpp"
#include "libsieve/analysis/two_choice.hpp"
#include "libsieve/filters/placement/sample_hashes.hpp"
#include "libsieve/filters/sizing.hpp"

namespace sieve {

namespace {

// Lines of a sample filter for predictions: with this many, the standard error of the rate is below 1%.
constexpr std::uint64_t sample_lines = 1024;
constexpr std::uint64_t most_filters = 64;
constexpr std::uint64_t sample_seed = 0x5349455645; // any; fixed, so that predictions can be compared

// The best numbers of probes with two groups and with three, at certain sizes. Rebalancing lets keys share
// bits, which moves the best k above ln 2 (m/n). Measured on 60,000 keys with 40 rounds; values between the
// sizes are interpolated linearly.
struct BestHashes {
    double bits_per_key;
    double two;
    double three;
};
constexpr std::array<BestHashes, 12> best_hashes_table = {{
    {1, 2, 2},
    {2, 3, 3},
    {4, 4.4, 5},
    {8, 7.7, 8.7},
    {10, 9.2, 10.2},
    {12, 10.8, 12},
    {16, 14, 15.2},
    {20, 17, 18.2},
    {24, 20, 21.3},
    {32, 26, 28},
    {40, 31.6, 32},
    {48, 32, 32},
}};

sieve_lookup lookup_of(const BloomGroups& shape, std::uint64_t lines) {
    sieve_lookup lookup{};
    lookup.choices = static_cast<std::uint8_t>(shape.groups);
    lookup.hashes = static_cast<std::uint8_t>(shape.hashes);
    lookup.buckets = static_cast<std::uint32_t>(lines);
    return lookup;
}

} // namespace

std::uint32_t best_hashes(double bits_per_key, const BloomGroups& shape) {
    assert(bits_per_key > 0);
    if (shape.groups == 1)
        return std::min<std::uint32_t>(SIEVE_BLOOM_MAX_HASHES, analysis::less_hashing::best_k(bits_per_key));
    const double bits = std::clamp(bits_per_key, best_hashes_table.front().bits_per_key,
                                   best_hashes_table.back().bits_per_key);
    std::size_t i = 1;
    while (best_hashes_table[i].bits_per_key < bits) i++;
    const auto& from = best_hashes_table[i - 1];
    const auto& to = best_hashes_table[i];
    const double share = (bits - from.bits_per_key) / (to.bits_per_key - from.bits_per_key);
    return static_cast<std::uint32_t>(std::lround(
        shape.groups == 2 ? std::lerp(from.two, to.two, share) : std::lerp(from.three, to.three, share)));
}

double model_fpr(double bits_per_key, const BloomGroups& shape) {
    return analysis::two_choice::fpp(bits_per_key, shape.hashes, shape.groups);
}

double predict_fpr(std::uint64_t keys, std::uint64_t lines, const BloomGroups& shape, std::uint32_t rounds) {
    assert(keys > 0 && lines > 0 && shape.hashes > 0);
    if (keys == 0 || lines == 0) return 0;
    // Small filters are built in their own size, several of them; large filters are scaled down.
    const std::uint64_t filter_lines = std::min(lines, sample_lines);
    const std::uint64_t filter_keys =
        lines <= sample_lines ? keys
                              : std::max<std::uint64_t>(1, std::llround(static_cast<double>(keys) *
                                                                        static_cast<double>(filter_lines) /
                                                                        static_cast<double>(lines)));
    const std::uint64_t filters = std::clamp<std::uint64_t>(sample_lines / filter_lines, 1, most_filters);
    const sieve_lookup lookup = lookup_of(shape, filter_lines);
    std::mt19937_64 random(sample_seed);
    double rate = 0;
    for (std::uint64_t f = 0; f < filters; f++) {
        const std::vector<sieve_hash> hashes = sample_hashes(filter_keys, random);
        std::vector<sieve_line> filter(filter_lines);
        const auto placed = place_bloom(hashes, lookup, filter,
                                        {.search = shape.search, .rounds = rounds, .seed = random()}, {});
        rate += bloom_rate(placed.final_ones, shape.hashes, shape.groups);
    }
    return rate / static_cast<double>(filters);
}

Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr, const BloomGroups& shape,
                                    std::uint32_t rounds) {
    assert(keys > 0 && fpr > 0 && fpr < 1);
    const auto predicted = [&](std::uint64_t lines) {
        BloomGroups used = shape;
        const double bits = static_cast<double>(lines) * SIEVE_LINE_BITS / static_cast<double>(keys);
        if (used.hashes == 0) used.hashes = best_hashes(bits, shape);
        return predict_fpr(keys, lines, used, rounds);
    };
    // The largest size worth trying has 16 bits for each possible probe. Ones are then so few that even one
    // group's rate is far below any target.
    if (const auto lines = fewest_lines(fpr,
                                        {.least = lines_for_bits(keys, -std::log2(fpr)),
                                         .most = lines_for_bits(keys, 16.0 * SIEVE_BLOOM_MAX_HASHES)},
                                        predicted))
        return *lines;
    return invalid_request(fmt::format("a false positive rate of {:.3g} is out of reach of this kind of "
                                       "filter with {} bits set by a key",
                                       fpr, shape.hashes != 0 ? shape.hashes : SIEVE_BLOOM_MAX_HASHES));
}

} // namespace sieve
