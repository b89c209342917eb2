// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/dleft/dleft_plan.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <fmt/core.h>

#include "libsieve/analysis/d_left.hpp"
#include "libsieve/filters/kinds/dleft/dleft_builder.hpp"
#include "libsieve/filters/placement/sample_hashes.hpp"
#include "libsieve/filters/sizing.hpp"

namespace sieve {

namespace {

constexpr std::uint64_t sample_keys = 1U << 15;
// Lower rates come from a few overfull buckets. More sample filters are needed to contain enough of these
// buckets.
constexpr double rare_rate = 1e-5;
constexpr std::uint64_t filters_for_rare = 8;
constexpr double most_bits = 256;

double bucket_bits(const DleftShape& shape) {
    return static_cast<double>(SIEVE_LINE_BITS) / shape.buckets_per_line();
}

// The exact rate of one filter of random hashes, filled like a real one.
double sample_rate(std::uint64_t keys, std::uint64_t lines, const DleftShape& shape, std::uint32_t rounds,
                   std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<sieve_hash> hashes = sample_hashes(keys, random);
    sieve_lookup lookup{};
    store_shape(shape, lookup);
    lookup.buckets = static_cast<__u32>(lines);
    std::vector<sieve_line> filter(lines * shape.subtables);
    if (!place_dleft(hashes, lookup, filter, {.rounds = rounds, .scatter = rounds == 0, .seed = seed}, {}))
        return 1;
    return expected_dleft_fpr(lookup, filter);
}

// The shape in the terms of the paper's analysis.
analysis::d_left::BucketLayout layout_of(const DleftShape& shape) {
    if (shape.sorting == 0) return {shape.wide() ? 120U : 60U, [](unsigned) { return 0U; }};
    if (!shape.wide()) return analysis::d_left::layout_64_semi_sorted();
    return shape.sorting == 1 ? analysis::d_left::layout_128_one_bit()
                              : analysis::d_left::layout_128_two_bits();
}

} // namespace

std::uint64_t dleft_lines_for_bits(std::uint64_t keys, double bits_per_key, const DleftShape& shape) {
    const double lines = static_cast<double>(keys) * bits_per_key / SIEVE_LINE_BITS / shape.subtables;
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(lines)));
}

double model_dleft_fpr(double bits_per_key, const DleftShape& shape) {
    const auto loads =
        analysis::d_left::load_distribution(shape.subtables, bucket_bits(shape) / bits_per_key);
    if (shape.grouped)
        return std::min(1.0,
                        analysis::d_left::false_positive_grouped(loads, layout_of(shape), SIEVE_DLEFT_GROUP));
    return analysis::d_left::false_positive_independent(loads, [&shape](unsigned load) {
        return load > shape.most_load() ? 0 : shape.fingerprint_length(load);
    });
}

double predict_dleft_fpr(std::uint64_t keys, std::uint64_t lines, const DleftShape& shape,
                         std::uint32_t rounds) {
    // With so much room, a rate needs no digits, and each filter may take a gigabyte.
    if (keys <= sample_keys && bits_per_key_of(keys, lines) > most_bits_per_key)
        return sample_rate(keys, lines, shape, rounds, 1);
    std::uint64_t filters = std::clamp<std::uint64_t>(sample_keys / std::max<std::uint64_t>(keys, 1), 1, 256);
    if (keys > sample_keys) {
        const double share = static_cast<double>(sample_keys) / static_cast<double>(keys);
        // Chooses the number of keys that gives the sample exactly the same load.
        const double load = static_cast<double>(keys) / static_cast<double>(lines);
        lines = std::max<std::uint64_t>(
            1, static_cast<std::uint64_t>(std::llround(static_cast<double>(lines) * share)));
        keys = static_cast<std::uint64_t>(std::llround(load * static_cast<double>(lines)));
    }
    double sum = 0;
    for (std::uint64_t i = 1; i <= filters; i++) {
        sum += sample_rate(keys, lines, shape, rounds, i);
        if (i == filters && filters < filters_for_rare * sample_keys / keys &&
            sum / static_cast<double>(filters) < rare_rate)
            filters = std::min<std::uint64_t>(256, filters_for_rare * sample_keys / keys);
    }
    return sum / static_cast<double>(filters);
}

Result<std::uint64_t> dleft_lines_for_fpr(std::uint64_t keys, double fpr, const DleftShape& shape,
                                          std::uint32_t rounds) {
    SIEVE_TRY(shape.check());
    const auto lines =
        fewest_lines(fpr,
                     {.least = dleft_lines_for_bits(keys, std::clamp(-std::log2(fpr), 1.0, most_bits), shape),
                      .most = dleft_lines_for_bits(keys, most_bits, shape),
                      .precision = 0.005},
                     [&](std::uint64_t some) { return predict_dleft_fpr(keys, some, shape, rounds); });
    if (lines) return *lines;
    return invalid_request(
        fmt::format("a false positive rate of {} takes more than {} bits a key", fpr, most_bits));
}

} // namespace sieve
