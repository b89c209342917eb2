// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/blocked/blocked_placement.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <mutex>
#include <numeric>
#include <vector>

#include <sieve/blocked.h>

#include "libsieve/filters/line_counters.hpp"
#include "libsieve/filters/noise_table.hpp"
#include "libsieve/filters/scatter.hpp"
#include "libsieve/filters/shards.hpp"
#include "libsieve/util/huge_array.hpp"
#include "libsieve/util/parallel.hpp"
#include "libsieve/util/splitmix64.hpp"

namespace sieve {

namespace {

// The annealing's start temperature, in units of the mean rate that a key adds, and the share of the rounds
// that annealing takes. Both found by measurement (docs/performance.md); the optimum is flat.
constexpr double start_temperature = 1.0;
constexpr double cooling_share = 0.95;

// How many keys ahead the lines are prefetched.
constexpr std::size_t lookahead = 8;

using Noise = NoiseTable<10>;

// What the placement of one shard works on.
struct Shard {
    const sieve_lookup& lookup;
    const WideRate& rate;
    const Noise& exponential;
    std::span<const sieve_hash> keys;
    std::uint32_t first_line; // of the shard
    // By line of the shard, and by key.
    LineCounters* lines;
    float* rates;
    std::uint8_t* choice;
    // By key, for moves: what they need of its hash, and the lines that may hold it, relative to the shard's
    // first. Rounds read them one after the other, so that no line has to be located again.
    const std::uint64_t* tests;
    const std::uint32_t* places;
};

struct Pass {
    bool online;       // insert instead of moving
    float temperature; // of moves, in the unit of rates
    std::uint64_t seed;
};

// The lines that may hold the key, relative to the shard's first.
SIEVE_ALWAYS_INLINE void locate(const Shard& shard, const sieve_hash& hash,
                                std::uint32_t at[SIEVE_MAX_CHOICES]) {
    sieve_blocked_locate(&shard.lookup, hash, at);
    for (int c = 0; c < SIEVE_MAX_CHOICES; c++) at[c] -= shard.first_line;
}

template <std::uint32_t Choices>
SIEVE_ALWAYS_INLINE void request(const Shard& shard, const std::uint32_t* at) {
    for (std::uint32_t c = 0; c < Choices; c++) {
        const char* line = reinterpret_cast<const char*>(&shard.lines[at[c]]);
        for (std::size_t offset = 0; offset < sizeof(LineCounters); offset += 64)
            __builtin_prefetch(line + offset, 1);
        __builtin_prefetch(&shard.rates[at[c]], 1);
    }
}

// Puts a key into the line where it adds least to the sum of the lines' rates; ties at random.
template <std::uint32_t Choices>
SIEVE_ALWAYS_INLINE void put(Shard& shard, std::size_t index, SplitMix64& random) {
    const sieve_hash hash = shard.keys[index];
    std::uint32_t at[SIEVE_MAX_CHOICES];
    locate(shard, hash, at);
    const WideLine pattern = wide_pattern(hash.test, shard.lookup.hashes);
    float with[4];
    shard.rate(shard.lines[at[0]].set() | pattern, shard.lines[at[1]].set() | pattern, with[0], with[1]);
    if constexpr (Choices == 3) shard.rate(shard.lines[at[2]].set() | pattern, WideLine{}, with[2], with[3]);
    std::uint32_t best = 0;
    float best_added = with[0] - shard.rates[at[0]];
    std::uint64_t ties = random();
    for (std::uint32_t c = 1; c < Choices; c++) {
        const float added = with[c] - shard.rates[at[c]];
        // Each of several equal lines must have the same chance: the c-th of them takes over with probability
        // 1/(c+1).
        ties >>= 16;
        if (added < best_added || (added == best_added && ties % (c + 1) == 0)) {
            best = c;
            best_added = added;
        }
    }
    shard.choice[index] = static_cast<std::uint8_t>(best);
    shard.lines[at[best]].add(pattern);
    shard.rates[at[best]] = with[best];
}

// Moves a key to another of its lines unless that costs too much: Metropolised Gibbs sampling.
template <std::uint32_t Choices>
SIEVE_ALWAYS_INLINE void move(Shard& shard, std::size_t index, float temperature, SplitMix64& random) {
    const std::uint32_t* at = shard.places + index * Choices;
    const std::uint32_t own = shard.choice[index];
    std::uint64_t draw = random();
    std::uint32_t other = own ^ 1;
    if constexpr (Choices == 3) {
        other = own + 1 + (draw >> 63);
        other = other >= 3 ? other - 3 : other;
    }
    const std::uint32_t from = at[own];
    const std::uint32_t to = at[other];
    if (from == to) return;
    const WideLine pattern = wide_pattern(shard.tests[index], shard.lookup.hashes);
    float without = 0;
    float with = 0;
    shard.rate(shard.lines[from].set_without(pattern), shard.lines[to].set() | pattern, without, with);
    const float loss = (with - shard.rates[to]) - (shard.rates[from] - without);
    if (loss > temperature * shard.exponential(draw)) return;
    shard.choice[index] = static_cast<std::uint8_t>(other);
    shard.lines[from].remove(pattern);
    shard.lines[to].add(pattern);
    shard.rates[from] = without;
    shard.rates[to] = with;
}

template <std::uint32_t Choices>
SIEVE_ALWAYS_INLINE void visit(Shard& shard, const Pass& pass) {
    const std::size_t n = shard.keys.size();
    SplitMix64 random(pass.seed);
    if (pass.online) {
        ScatteredOrder ahead(n);
        ScatteredOrder order(n);
        for (std::size_t i = 0; i < n + lookahead; i++) {
            if (i < n) {
                std::uint32_t at[SIEVE_MAX_CHOICES];
                locate(shard, shard.keys[ahead.next()], at);
                request<Choices>(shard, at);
            }
            if (i >= lookahead) put<Choices>(shard, order.next(), random);
        }
        return;
    }
    for (std::size_t i = 0; i < n; i++) {
        if (i + lookahead < n) request<Choices>(shard, shard.places + (i + lookahead) * Choices);
        move<Choices>(shard, i, pass.temperature, random);
    }
}

SIEVE_ALWAYS_INLINE void visit_any(Shard& shard, const Pass& pass) {
    if (shard.lookup.choices == 3)
        visit<3>(shard, pass);
    else
        visit<2>(shard, pass); // also for one choice: locate repeats its line
}

#ifdef __x86_64__
// The hot loop is also compiled for newer processors. clang has no attribute for the preferred vector width.
#ifdef __clang__
#define SIEVE_NEWEST "arch=x86-64-v4,avx512vpopcntdq"
#else
#define SIEVE_NEWEST "arch=x86-64-v4,avx512vpopcntdq,prefer-vector-width=512"
#endif
[[gnu::target(SIEVE_NEWEST)]] void visit_newest(Shard& shard, const Pass& pass) {
    visit_any(shard, pass);
}
[[gnu::target("arch=x86-64-v3")]] void visit_newer(Shard& shard, const Pass& pass) {
    visit_any(shard, pass);
}
#endif
void visit_plain(Shard& shard, const Pass& pass) {
    visit_any(shard, pass);
}

using Visit = void (*)(Shard&, const Pass&);

Visit best_visit() {
#ifdef __x86_64__
    if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vpopcntdq")) return visit_newest;
    if (__builtin_cpu_supports("x86-64-v3")) return visit_newer;
#endif
    return visit_plain;
}

// Places the keys of one shard and fills its lines. The rates of the report are sums over the lines.
PlacementReport place_shard(std::span<const sieve_hash> keys, std::uint32_t number,
                            const sieve_lookup& lookup, std::span<sieve_line> filled,
                            const PlacementOptions& options) {
    static const Noise exponential = Noise::exponential();
    static const Visit visit_keys = best_visit();
    const WideRate rate(lookup.hashes);
    HugeArray<LineCounters> lines(filled.size());
    std::vector<float> rates(filled.size());
    std::vector<std::uint8_t> choice(keys.size());
    Shard shard{.lookup = lookup,
                .rate = rate,
                .exponential = exponential,
                .keys = keys,
                .first_line = number * static_cast<std::uint32_t>(filled.size()),
                .lines = lines.data(),
                .rates = rates.data(),
                .choice = choice.data(),
                .tests = nullptr,
                .places = nullptr};
    SplitMix64 seeds(sieve_mix(options.seed + number));
    const auto sum_of_rates = [&] { return std::accumulate(rates.begin(), rates.end(), 0.0); };

    PlacementReport report;
    visit_keys(shard, {.online = true, .temperature = 0, .seed = seeds()});
    report.online_rate = report.final_rate = sum_of_rates();
    // The lines' rates started at zero, so all added rates sum up to the sum of the lines' rates.
    const double mean_added = keys.empty() ? 0 : report.online_rate / static_cast<double>(keys.size());
    const std::size_t moving = options.rounds > 0 ? keys.size() : 0;
    HugeArray<std::uint64_t> tests(moving);
    HugeArray<std::uint32_t> places(moving * lookup.choices);
    for (std::size_t i = 0; i < moving; i++) {
        std::uint32_t at[SIEVE_MAX_CHOICES];
        locate(shard, keys[i], at);
        tests[i] = keys[i].test;
        std::copy_n(at, lookup.choices, &places[i * lookup.choices]);
    }
    shard.tests = tests.data();
    shard.places = places.data();
    for (; report.rounds < options.rounds; report.rounds++) {
        const double heat = std::max(0.0, 1 - (report.rounds + 0.5) / (options.rounds * cooling_share));
        visit_keys(shard, {.online = false,
                           .temperature = static_cast<float>(start_temperature * mean_added * heat),
                           .seed = seeds()});
    }
    if (options.rounds > 0) report.final_rate = sum_of_rates();
    for (std::size_t l = 0; l < filled.size(); l++) {
        const WideLine set = lines[l].set();
        const WideLine saturated = lines[l].saturated();
        for (int w = 0; w < SIEVE_LINE_WORDS; w++) {
            filled[l].word[w] = set[w];
            report.saturated += static_cast<std::uint64_t>(std::popcount(saturated[w]));
        }
    }
    return report;
}

// Tells what share of the keys is placed. Called from any thread.
class PlacedKeys {
  public:
    PlacedKeys(std::size_t all, const Progress& progress) : all_(all), progress_(progress) {}
    void add(std::size_t keys) {
        if (!progress_ || all_ == 0) return;
        const std::lock_guard lock(mutex_);
        placed_ += keys;
        progress_("placing", static_cast<double>(placed_) / static_cast<double>(all_));
    }

  private:
    std::mutex mutex_;
    std::size_t placed_ = 0;
    std::size_t all_;
    const Progress& progress_;
};

} // namespace

PlacementReport place_shards(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                             std::span<sieve_line> lines, std::uint32_t first, std::uint32_t count,
                             const PlacementOptions& options, const Progress& progress) {
    assert(lines.size() == lookup.buckets);
    PlacementOptions each = options;
    if (lookup.choices < 2 || keys.empty()) each.rounds = 0;
    const std::size_t shard_lines = lines.size() >> lookup.shard_bits;
    std::vector<PlacementReport> reports(count);
    PlacedKeys placed(keys.size(), progress);
    for_each_index(count, [&](std::size_t i) {
        const std::uint32_t number = first + static_cast<std::uint32_t>(i);
        const auto own = keys_of_shard(keys, lookup.shard_bits, number);
        reports[i] = place_shard(own, number, lookup, lines.subspan(number * shard_lines, shard_lines), each);
        placed.add(own.size());
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
