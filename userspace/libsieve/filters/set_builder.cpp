// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/set_builder.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <execution>
#include <limits>
#include <random>
#include <vector>

#include <fmt/core.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>

#include <sieve/blocked.h>

#include "libsieve/analysis/binomial.hpp"
#include "libsieve/filters/blocked_placement.hpp"
#include "libsieve/filters/measure.hpp"
#include "libsieve/util/secret.hpp"

namespace sieve {

namespace {

constexpr double default_bits_per_key = 16;

// A real set may be this much worse than predicted before it is refused; only sets of that many keys are
// large enough for the comparison to mean anything (twenty standard deviations).
constexpr double most_excess = 1.5;
constexpr std::uint64_t least_keys_to_compare = 4096;

// All randomness of a build, in the order in which it is drawn.
struct BuildSecret {
    std::array<__u64, SIEVE_HASH_KEY_WORDS> hash_key;
    std::array<std::uint64_t, 2> identity;
    std::uint64_t placement;
    std::uint64_t witnesses;
    std::uint64_t measurement;
};

Result<BuildSecret> draw_build_secret(std::optional<std::uint64_t> seed) {
    std::array<std::uint64_t, sizeof(BuildSecret) / sizeof(std::uint64_t)> words{};
    SIEVE_TRY(draw_secret(seed, words));
    BuildSecret secret{};
    static_assert(sizeof(words) == sizeof(secret));
    std::memcpy(&secret, words.data(), sizeof(secret));
    return secret;
}

// One witness for a thousand keys, within bounds that keep small sets small and the preflight short.
std::uint32_t witness_count(std::uint64_t keys) {
    return static_cast<std::uint32_t>(std::min(keys, std::clamp<std::uint64_t>(keys / 1024, 64, 1024)));
}

std::vector<sieve_hash> hash_all(const KeySet& keys, const __u64* hash_key) {
    std::vector<sieve_hash> hashes(keys.size());
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, keys.size(), 1 << 14), [&](const auto& range) {
        for (std::size_t i = range.begin(); i < range.end(); i++) {
            const sieve_key key = keys.at(i);
            hashes[i] = sieve_hash_key(&key, hash_key, keys.fields());
        }
    });
    return hashes;
}

// How many lines the options ask for.
Result<std::uint64_t> choose_lines(std::uint64_t keys, const BuildOptions& options) {
    if (options.fpr) return lines_for_fpr(keys, *options.fpr, options.shape, options.rounds);
    if (options.memory) {
        const std::uint64_t overhead = SIEVE_FIRST_LINE + witness_count(keys);
        const std::uint64_t total = *options.memory / sizeof(sieve_line);
        const std::uint64_t least = lines_for_bits(keys, least_bits_per_key);
        if (total < overhead + least)
            return usage_error(
                fmt::format("{} bytes are too few for {} keys; the least is {} bytes (1 bit per key)",
                            *options.memory, keys, (overhead + least) * sizeof(sieve_line)));
        return total - overhead;
    }
    return lines_for_bits(keys, options.bits_per_key.value_or(default_bits_per_key));
}

Status check_options(const BuildOptions& options) {
    if ((options.bits_per_key ? 1 : 0) + (options.fpr ? 1 : 0) + (options.memory ? 1 : 0) > 1)
        return usage_error("give only one of bits per key, false positive rate and memory");
    if (options.bits_per_key &&
        !(*options.bits_per_key >= least_bits_per_key && *options.bits_per_key <= most_bits_per_key))
        return usage_error(fmt::format("{} bits per key, expected {} to {}", *options.bits_per_key,
                                       least_bits_per_key, most_bits_per_key));
    if (options.fpr && !(*options.fpr >= least_fpr && *options.fpr < 1))
        return usage_error(fmt::format("a false positive rate of {}, expected one from {} to below 1",
                                       *options.fpr, least_fpr));
    if (!(options.shape.alpha >= 0 && options.shape.alpha <= 1))
        return usage_error(fmt::format("alpha {}, expected 0 to 1", options.shape.alpha));
    if (options.shape.choices < 1 || options.shape.choices > SIEVE_MAX_CHOICES)
        return usage_error(
            fmt::format("{} choices, expected 1 to {}", options.shape.choices, SIEVE_MAX_CHOICES));
    if (options.shape.hashes != 0 && !sieve_pattern_valid(options.shape.hashes))
        return usage_error(fmt::format("{} bits set by a key, expected {} to {}", options.shape.hashes,
                                       SIEVE_PATTERN_MIN_HASHES, SIEVE_PATTERN_MAX_HASHES));
    return {};
}

// The last word: what was measured must be what the bits promise, and that must be what was predicted.
Status confront(const BuildReport& report) {
    if (!analysis::fits_rate(report.measured_hits, report.measured_trials, report.expected_fpr))
        return bad_input(fmt::format("refused: {} of {} random keys matched, which contradicts the expected "
                                     "rate {:.3g} by more than six sigma; "
                                     "build again (a new seed is drawn), and report it if it happens twice",
                                     report.measured_hits, report.measured_trials, report.expected_fpr));
    if (report.keys >= least_keys_to_compare && report.expected_fpr > report.predicted_fpr * most_excess)
        return bad_input(
            fmt::format("refused: the filter's rate {:.3g} is far above the predicted {:.3g}; build again (a "
                        "new seed is drawn), and report it if it happens twice",
                        report.expected_fpr, report.predicted_fpr));
    return {};
}

} // namespace

Result<BuiltSet> build_set(KeySet keys, const BuildOptions& options, const Progress& progress) {
    const auto start = std::chrono::steady_clock::now();
    SIEVE_TRY(check_options(options));
    if (keys.empty()) return bad_input("no keys to build a set of");
    const tbb::global_control threads(
        tbb::global_control::max_allowed_parallelism,
        options.threads != 0 ? options.threads : static_cast<std::size_t>(tbb::info::default_concurrency()));
    SIEVE_ASSIGN(const BuildSecret secret, draw_build_secret(options.seed));
    const std::uint32_t fields = keys.fields();
    const std::uint64_t entries = keys.size();

    std::mt19937_64 pick(secret.witnesses);
    std::vector<sieve_key> sample(witness_count(entries));
    for (auto& key : sample) key = keys.at(pick() % entries);

    // From here on a key is its hash: two keys that agree in all 128 bits are one to the filter, too.
    std::vector<sieve_hash> hashes = hash_all(keys, secret.hash_key.data());
    keys.clear();
    std::sort(std::execution::par_unseq, hashes.begin(), hashes.end(), first_line_order);
    hashes.erase(
        std::unique(hashes.begin(), hashes.end(),
                    [](const auto& a, const auto& b) { return a.locate == b.locate && a.test == b.test; }),
        hashes.end());

    BuildReport report;
    report.keys = hashes.size();
    report.duplicates = entries - hashes.size();
    SIEVE_ASSIGN(const std::uint64_t lines, choose_lines(report.keys, options));
    if (lines > std::numeric_limits<std::uint32_t>::max() - SIEVE_FIRST_LINE - sample.size())
        return usage_error(fmt::format("{} lines of 64 bytes are more than a BPF map can hold", lines));
    report.bits_per_key = static_cast<double>(lines) * SIEVE_LINE_BITS / static_cast<double>(report.keys);
    report.shape = options.shape;
    if (report.shape.choices == 1) report.shape.alpha = 0;
    if (report.shape.hashes == 0) report.shape.hashes = best_hashes(report.bits_per_key, report.shape);
    report.online_model_fpr = model_fpr(report.bits_per_key, report.shape);
    report.predicted_fpr = predict_fpr(report.keys, lines, report.shape, options.rounds);

    SIEVE_ASSIGN(Image image, Image::create(lines, static_cast<std::uint32_t>(sample.size())));
    sieve_lookup& lookup = image.lookup();
    lookup.kind = SIEVE_KIND_BLOCKED;
    lookup.fields = static_cast<std::uint8_t>(fields);
    lookup.choices = static_cast<std::uint8_t>(report.shape.choices);
    lookup.hashes = static_cast<std::uint8_t>(report.shape.hashes);
    lookup.buckets = static_cast<std::uint32_t>(lines);
    lookup.alpha = alpha_to_image(report.shape.alpha);
    std::copy(secret.hash_key.begin(), secret.hash_key.end(), lookup.hash_key);
    for (std::size_t i = 0; i < sample.size(); i++) image.witnesses()[i].key = sample[i];

    const PlacementReport placed = place_blocked(
        hashes, lookup, image.filter(), {.rounds = options.rounds, .seed = secret.placement}, progress);
    report.rounds = placed.rounds;

    image.file().keys = report.keys;
    report.expected_fpr = expected_fpr(image);
    const auto is_member = [&](const sieve_key& key) {
        const sieve_hash hash = sieve_hash_key(&key, lookup.hash_key, fields);
        return std::binary_search(hashes.begin(), hashes.end(), hash, first_line_order);
    };
    const Measurement measured = measure_fpr(image, options.trials, secret.measurement, is_member);
    report.measured_hits = measured.hits;
    report.measured_trials = measured.trials;
    report.measured_fpr = measured.rate();
    SIEVE_TRY(confront(report));

    sieve_file& file = image.file();
    file.duplicates = report.duplicates;
    file.skipped = options.skipped;
    file.rounds = report.rounds;
    // With a seed the build is to be the same again, to the byte.
    file.built_at = options.seed ? 0 : static_cast<std::uint64_t>(std::time(nullptr));
    std::copy(secret.identity.begin(), secret.identity.end(), file.identity);
    file.predicted_fpr = rate_to_bits(report.predicted_fpr);
    file.expected_fpr = rate_to_bits(report.expected_fpr);
    file.measured_fpr = rate_to_bits(report.measured_fpr);
    file.measured_trials = report.measured_trials;
    std::memcpy(file.label, options.label.data(), std::min(options.label.size(), sizeof(file.label) - 1));
    image.seal();
    SIEVE_TRY(image.check("built image"));
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return BuiltSet{std::move(image), report};
}

} // namespace sieve
