// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/blocked_placement.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include <sieve/blocked.h>

#include "libsieve/filters/line_counters.hpp"
#include "libsieve/filters/pattern_rate.hpp"

namespace sieve {

namespace {

// Where the annealing starts, in units of the mean added rate of a key, and the share of the rounds that it
// takes. Both found by measurement (docs/performance.md).
constexpr double start_temperature = 1.2;
constexpr double cooling_share = 0.85;

// How many keys ahead the lines are requested from memory.
constexpr std::size_t lookahead = 6;

constexpr std::uint8_t unplaced = 0xff;

// The hot loop, compiled for what newer processors have as well; the loader picks.
#define SIEVE_CLONES [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]

// A step that visits all of n keys in an order unlike their own: the online rule is at its best when keys
// come from everywhere, and they are sorted by line. Coprime to n, near n divided by the golden ratio.
std::size_t scattering_stride(std::size_t n) {
    if (n < 3) return 1;
    auto stride = static_cast<std::size_t>(static_cast<double>(n) * 0.6180339887498949);
    while (std::gcd(stride, n) != 1) stride++;
    return stride;
}

// Standard Gumbel noise from a table: argmax(-cost/T + Gumbel) draws from the Boltzmann distribution at
// temperature T.
class GumbelNoise {
  public:
    explicit GumbelNoise(std::mt19937_64& random) {
        for (std::size_t i = 0; i < table_.size(); i++)
            table_[i] =
                static_cast<float>(-std::log(-std::log((static_cast<double>(i) + 0.5) / table_.size())));
        std::shuffle(table_.begin(), table_.end(), random);
    }
    [[nodiscard]] float operator()(std::uint64_t bits) const { return table_[bits % table_.size()]; }

  private:
    std::array<float, 4096> table_{};
};

// A small fast generator for ties and noise (SplitMix64: the mix of sieve/hash.h over a counter).
class TieBreaker {
  public:
    explicit TieBreaker(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()() { return sieve_mix(state_ += 0x9e3779b97f4a7c15ULL); }

  private:
    std::uint64_t state_;
};

// A line under construction.
struct alignas(64) Line {
    LineCounters counters;
    WordFill fill;
    float rate;
};

class Placement {
  public:
    Placement(std::span<const sieve_hash> keys, const sieve_lookup& lookup, std::uint64_t seed)
        : keys_(keys), lookup_(lookup), rate_(lookup.hashes), lines_(lookup.buckets),
          choice_(keys.size(), unplaced), random_(seed), noise_(random_), ties_(random_()) {}

    // One pass over all keys at a temperature (0 = greedy), every `stride`-th first. Returns the sum of the
    // added rates.
    SIEVE_CLONES double pass(float temperature, std::size_t stride, const Progress& progress,
                             std::string_view stage, double from, double to) {
        double added = 0;
        const std::size_t n = keys_.size();
        std::size_t ahead = 0;
        std::size_t index = 0;
        for (std::size_t i = 0; i < n + lookahead; i++) {
            if (i < n) {
                prefetch(keys_[ahead], stride != 1);
                ahead = ahead + stride < n ? ahead + stride : ahead + stride - n;
            }
            if (i < lookahead) continue;
            if (progress && ((i - lookahead) & 0xffff) == 0)
                progress(stage, from + (to - from) * static_cast<double>(i) / static_cast<double>(n));
            added += place(index, temperature);
            index = index + stride < n ? index + stride : index + stride - n;
        }
        return added;
    }

    [[nodiscard]] double mean_rate() const {
        double sum = 0;
        for (const Line& line : lines_) sum += line.rate;
        return sum / static_cast<double>(lines_.size());
    }

    void write(std::span<sieve_line> lines) const {
        for (std::size_t l = 0; l < lines_.size(); l++)
            for (int w = 0; w < SIEVE_LINE_WORDS; w++) lines[l].word[w] = lines_[l].counters.set(w);
    }

    [[nodiscard]] std::uint64_t saturated() const {
        std::uint64_t count = 0;
        for (const Line& line : lines_)
            for (int w = 0; w < SIEVE_LINE_WORDS; w++) {
                std::uint64_t all = ~std::uint64_t{0};
                for (const auto& plane : line.counters.plane) all &= plane[w];
                count += static_cast<std::uint64_t>(std::popcount(all));
            }
        return count;
    }

  private:
    void prefetch(const sieve_hash& hash, bool first_too) const {
        std::uint32_t at[SIEVE_MAX_CHOICES];
        sieve_blocked_locate(&lookup_, hash, at);
        for (std::uint32_t c = first_too ? 0 : 1; c < lookup_.choices; c++) {
            const char* line = reinterpret_cast<const char*>(&lines_[at[c]]);
            for (std::size_t offset = 0; offset < sizeof(Line); offset += 64)
                __builtin_prefetch(line + offset, 1);
        }
    }

    void refresh(Line& line) const {
        for (int w = 0; w < SIEVE_LINE_WORDS; w++)
            line.fill[static_cast<std::size_t>(w)] =
                static_cast<std::uint8_t>(std::popcount(line.counters.set(w)));
        line.rate = rate_(line.fill);
    }

    // What the line's rate would be with the pattern in it, less what it is.
    [[nodiscard]] float added_rate(const Line& line, const sieve_line& pattern) const {
        WordFill fill = line.fill;
        std::uint64_t any = 0;
        for (int w = 0; w < SIEVE_LINE_WORDS; w++) {
            const std::uint64_t fresh = pattern.word[w] & ~line.counters.set(w);
            any |= fresh;
            fill[static_cast<std::size_t>(w)] =
                static_cast<std::uint8_t>(fill[static_cast<std::size_t>(w)] + std::popcount(fresh));
        }
        return any == 0 ? 0.0F : rate_(fill) - line.rate;
    }

    float place(std::size_t index, float temperature) {
        const sieve_hash hash = keys_[index];
        std::uint32_t at[SIEVE_MAX_CHOICES];
        sieve_line pattern;
        sieve_blocked_locate(&lookup_, hash, at);
        sieve_pattern_mask(hash.test, lookup_.hashes, &pattern);

        if (choice_[index] != unplaced) {
            Line& old = lines_[at[choice_[index]]];
            old.counters.remove(pattern);
            refresh(old);
        }
        std::uint8_t best = 0;
        float best_added = added_rate(lines_[at[0]], pattern);
        float best_score = best_added;
        std::uint64_t random = ties_();
        if (temperature > 0) best_score -= temperature * noise_(random);
        for (std::uint8_t c = 1; c < lookup_.choices; c++) {
            const float added = added_rate(lines_[at[c]], pattern);
            float score = added;
            random >>= 16;
            if (temperature > 0) score -= temperature * noise_(random);
            // Among equals each must have the same chance: the c-th of them takes over with probability
            // 1/(c+1).
            const bool tie = score == best_score && random % (c + 1U) == 0;
            if (score < best_score || tie) {
                best = c;
                best_added = added;
                best_score = score;
            }
        }
        choice_[index] = best;
        Line& line = lines_[at[best]];
        line.counters.add(pattern);
        refresh(line);
        return best_added;
    }

    std::span<const sieve_hash> keys_;
    const sieve_lookup& lookup_;
    PatternRate rate_;
    std::vector<Line> lines_;
    std::vector<std::uint8_t> choice_;
    std::mt19937_64 random_;
    GumbelNoise noise_;
    TieBreaker ties_;
};

} // namespace

PlacementReport place_blocked(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                              std::span<sieve_line> lines, const PlacementOptions& options,
                              const Progress& progress) {
    assert(lines.size() == lookup.buckets);
    Placement placement(keys, lookup, options.seed);
    PlacementReport report;

    const bool has_choice = lookup.choices > 1 && !keys.empty();
    const std::uint32_t planned = has_choice ? options.rounds : 0;
    const double passes = planned + 1.0;
    const double added =
        placement.pass(0, scattering_stride(keys.size()), progress, "placing", 0, 1 / passes);
    report.online_rate = report.final_rate = placement.mean_rate();

    const double mean_added = keys.empty() ? 0 : added / static_cast<double>(keys.size());
    for (; report.rounds < planned; report.rounds++) {
        const double heat = 1 - (report.rounds + 1) / (planned * cooling_share);
        placement.pass(static_cast<float>(start_temperature * mean_added * std::max(0.0, heat)), 1, progress,
                       "rebalancing", (report.rounds + 1) / passes, (report.rounds + 2) / passes);
    }
    report.final_rate = placement.mean_rate();
    for (double before = 2 * report.final_rate; planned > 0 && report.rounds < options.most_rounds;
         report.rounds++) {
        if (before - report.final_rate < options.least_gain * before) break;
        before = report.final_rate;
        placement.pass(0, 1, progress, "rebalancing", 1, 1);
        report.final_rate = placement.mean_rate();
    }
    placement.write(lines);
    report.saturated = placement.saturated();
    return report;
}

} // namespace sieve
