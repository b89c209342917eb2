// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/blocked/blocked_placement.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <vector>

#include <sieve/blocked.h>

#include "libsieve/filters/kinds/blocked/blocked_passes.hpp"
#include "libsieve/filters/placement/line_counters.hpp"
#include "libsieve/filters/placement/placed_shards.hpp"
#include "libsieve/filters/placement/shards.hpp"
#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "libsieve/util/parallel/reused.hpp"
#include "libsieve/util/random/splitmix64.hpp"

namespace sieve {

namespace {

// The annealing's start temperature, in units of the mean rate that a key adds, and the share of the rounds
// that annealing takes. Both found by measurement (docs/performance.md); the optimum is flat.
constexpr double start_temperature = 1.0;
constexpr double cooling_share = 0.95;

// What a thread needs to place the keys of a shard, at least as large as its shards.
class Bench {
  public:
    // For a shard of so many lines, all of them empty, and keys.
    void prepare(std::size_t lines, std::size_t keys, std::uint32_t choices) {
        grow(lines_, lines);
        grow(rates_, lines);
        grow(choice_, keys);
        grow(tests_, keys);
        grow(places_, (keys + 1) * choices);
        std::fill_n(lines_.data(), lines, LineCounters{});
        std::fill_n(rates_.data(), lines, 0.0F);
    }

    // `keys` are those of shard `number`.
    BlockedShard shard(std::span<const sieve_hash> keys, std::uint32_t number, std::size_t lines,
                       const sieve_lookup& lookup) {
        prepare(lines, keys.size(), lookup.choices);
        const std::uint32_t first = number * static_cast<std::uint32_t>(lines);
        for (std::size_t i = 0; i < keys.size(); i++) {
            std::uint32_t at[SIEVE_MAX_CHOICES];
            sieve_blocked_locate(&lookup, keys[i], at);
            tests_[i] = keys[i].test;
            for (std::uint32_t c = 0; c < lookup.choices; c++)
                places_[i * lookup.choices + c] = at[c] - first;
        }
        std::fill_n(&places_[keys.size() * lookup.choices], lookup.choices, 0);
        return {.lookup = lookup,
                .keys = keys.size(),
                .tests = tests_.data(),
                .places = places_.data(),
                .choice = choice_.data(),
                .lines = lines_.data(),
                .rates = rates_.data()};
    }

  private:
    template <class T>
    static void grow(HugeArray<T>& array, std::size_t size) {
        if (array.size() >= size) return;
        array = {};
        array = HugeArray<T>(size + size / 16);
    }

    HugeArray<LineCounters> lines_;
    HugeArray<float> rates_;
    HugeArray<std::uint8_t> choice_;
    HugeArray<std::uint64_t> tests_;
    HugeArray<std::uint32_t> places_;
};

// How often a shard of many rounds reports its progress.
constexpr std::uint32_t reports_of_shard = 16;

// Places the keys of one shard and fills its lines. The rates of the report are sums over the lines.
PlacementReport place_shard(std::span<const sieve_hash> keys, std::uint32_t number,
                            const sieve_lookup& lookup, std::span<sieve_line> filled,
                            const PlacementOptions& options, Bench& bench, PlacedShards& placed) {
    const BlockedShard shard = bench.shard(keys, number, filled.size(), lookup);
    SplitMix64 seeds(sieve_mix(options.seed + number));
    const auto sum_of_rates = [&] { return std::accumulate(shard.rates, shard.rates + filled.size(), 0.0); };

    PlacementReport report;
    put_keys(shard, seeds());
    report.online_rate = report.final_rate = sum_of_rates();
    // The lines' rates started at zero, so all added rates sum up to the sum of the lines' rates.
    const double mean_added = keys.empty() ? 0 : report.online_rate / static_cast<double>(keys.size());
    // Only many rounds are told one by one, and not each: one over few keys takes less time than telling.
    const std::uint32_t step = options.rounds / reports_of_shard + 1;
    std::uint32_t left = PlacedShards::parts;
    for (; report.rounds < options.rounds; report.rounds++) {
        if (step > 1 && report.rounds % step == step - 1) {
            left -= PlacedShards::parts / (reports_of_shard + 1);
            placed.add(PlacedShards::parts / (reports_of_shard + 1));
        }
        const double heat = std::max(0.0, 1 - (report.rounds + 0.5) / (options.rounds * cooling_share));
        move_keys(shard, static_cast<float>(start_temperature * mean_added * heat), seeds());
    }
    if (options.rounds > 0) report.final_rate = sum_of_rates();
    for (std::size_t l = 0; l < filled.size(); l++) {
        const WideLine set = shard.lines[l].set();
        const WideLine saturated = shard.lines[l].saturated();
        for (int w = 0; w < SIEVE_LINE_WORDS; w++) {
            filled[l].word[w] = set[w];
            report.saturated += static_cast<std::uint64_t>(std::popcount(saturated[w]));
        }
    }
    placed.add(left);
    return report;
}

} // namespace

PlacementReport place_shards(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                             std::span<sieve_line> lines, std::uint32_t first, std::uint32_t count,
                             const PlacementOptions& options, const Progress& progress) {
    assert(lines.size() == lookup.buckets);
    PlacementOptions each = options;
    if (lookup.choices < 2 || keys.empty()) each.rounds = 0;
    const std::size_t shard_lines = lines.size() >> lookup.shard_bits;
    std::vector<PlacementReport> reports(count);
    PlacedShards placed(count, progress);
    Reused<Bench> benches;
    for_each_index(count, [&](std::size_t i) {
        const std::uint32_t number = first + static_cast<std::uint32_t>(i);
        const auto own = keys_of_shard(keys, lookup.shard_bits, number);
        benches.with([&](Bench& bench) {
            reports[i] = place_shard(own, number, lookup, lines.subspan(number * shard_lines, shard_lines),
                                     each, bench, placed);
        });
    });

    PlacementReport report{.rounds = each.rounds};
    for (const PlacementReport& shard : reports) {
        report.online_rate += shard.online_rate;
        report.final_rate += shard.final_rate;
        report.saturated += shard.saturated;
    }
    report.online_rate /= static_cast<double>(count * shard_lines);
    report.final_rate /= static_cast<double>(count * shard_lines);
    return report;
}

PlacementReport place_blocked(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                              std::span<sieve_line> lines, const PlacementOptions& options,
                              const Progress& progress) {
    return place_shards(keys, lookup, lines, 0, 1U << lookup.shard_bits, options, progress);
}

} // namespace sieve
