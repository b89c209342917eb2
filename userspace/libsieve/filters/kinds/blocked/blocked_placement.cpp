// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/blocked/blocked_placement.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>
#include <string_view>

#include <sieve/blocked.h>

#include "libsieve/filters/line_counters.hpp"
#include "libsieve/filters/line_tasks.hpp"
#include "libsieve/filters/noise_table.hpp"
#include "libsieve/filters/scatter.hpp"
#include "libsieve/util/huge_array.hpp"
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

// The data that all tasks of a pass work on. Tasks of the same step never share a line or a key's choice.
struct Work {
    const sieve_lookup& lookup;
    WideRate rate;
    const HugeArray<sieve_hash>& keys;
    HugeArray<LineCounters> lines;
    HugeArray<float> rates; // of the lines
    HugeArray<std::uint8_t> choice;
    Noise exponential = Noise::exponential();
    Noise gumbel = Noise::gumbel();
};

struct Order {
    LineTasks::Task task;
    bool online;       // insert instead of moving
    float temperature; // of moves, in the unit of rates
    std::uint64_t seed;
};

SIEVE_ALWAYS_INLINE void request(const Work& work, const sieve_hash& hash) {
    std::uint32_t at[SIEVE_MAX_CHOICES];
    sieve_blocked_locate(&work.lookup, hash, at);
    for (std::uint32_t c = 0; c < work.lookup.choices; c++) {
        const char* line = reinterpret_cast<const char*>(&work.lines[at[c]]);
        for (std::size_t offset = 0; offset < sizeof(LineCounters); offset += 64)
            __builtin_prefetch(line + offset, 1);
        __builtin_prefetch(&work.rates[at[c]], 1);
    }
}

// Puts a key into the line where it adds least to the sum of the lines' rates; ties at random.
template <std::uint32_t Choices>
SIEVE_ALWAYS_INLINE void put(Work& work, std::size_t index, SplitMix64& random) {
    const sieve_hash hash = work.keys[index];
    std::uint32_t at[SIEVE_MAX_CHOICES];
    sieve_blocked_locate(&work.lookup, hash, at);
    const WideLine pattern = wide_pattern(hash.test, work.lookup.hashes);
    float with[4];
    work.rate(work.lines[at[0]].set() | pattern, work.lines[at[1]].set() | pattern, with[0], with[1]);
    if constexpr (Choices == 3) work.rate(work.lines[at[2]].set() | pattern, WideLine{}, with[2], with[3]);
    std::uint32_t best = 0;
    float best_added = with[0] - work.rates[at[0]];
    std::uint64_t ties = random();
    for (std::uint32_t c = 1; c < Choices; c++) {
        const float added = with[c] - work.rates[at[c]];
        // Each of several equal lines must have the same chance: the c-th of them takes over with probability
        // 1/(c+1).
        ties >>= 16;
        if (added < best_added || (added == best_added && ties % (c + 1) == 0)) {
            best = c;
            best_added = added;
        }
    }
    work.choice[index] = static_cast<std::uint8_t>(best);
    work.lines[at[best]].add(pattern);
    work.rates[at[best]] = with[best];
}

// Moves a key to another of its lines unless that costs too much: Metropolised Gibbs sampling.
template <std::uint32_t Choices>
SIEVE_ALWAYS_INLINE void move(Work& work, std::size_t index, float temperature, SplitMix64& random) {
    const sieve_hash hash = work.keys[index];
    std::uint32_t at[SIEVE_MAX_CHOICES];
    sieve_blocked_locate(&work.lookup, hash, at);
    const std::uint32_t own = work.choice[index];
    std::uint64_t draw = random();
    std::uint32_t other = own ^ 1;
    if constexpr (Choices == 3) {
        other = own + 1 + (draw >> 63);
        other = other >= 3 ? other - 3 : other;
    }
    const std::uint32_t from = at[own];
    const std::uint32_t to = at[other];
    if (from == to) return;
    const WideLine pattern = wide_pattern(hash.test, work.lookup.hashes);
    float without = 0;
    float with = 0;
    work.rate(work.lines[from].set_without(pattern), work.lines[to].set() | pattern, without, with);
    const float loss = (with - work.rates[to]) - (work.rates[from] - without);
    if (loss > temperature * work.exponential(draw)) return;
    work.choice[index] = static_cast<std::uint8_t>(other);
    work.lines[from].remove(pattern);
    work.lines[to].add(pattern);
    work.rates[from] = without;
    work.rates[to] = with;
}

template <std::uint32_t Choices>
SIEVE_ALWAYS_INLINE void visit(Work& work, const Order& order) {
    const std::size_t n = order.task.end - order.task.begin;
    SplitMix64 random(order.seed);
    if (order.online) {
        const std::size_t stride = scattering_stride(n);
        std::size_t ahead = 0;
        std::size_t index = 0;
        for (std::size_t i = 0; i < n + lookahead; i++) {
            if (i < n) {
                request(work, work.keys[order.task.begin + ahead]);
                ahead = scattered_next(ahead, stride, n);
            }
            if (i < lookahead) continue;
            put<Choices>(work, order.task.begin + index, random);
            index = scattered_next(index, stride, n);
        }
        return;
    }
    for (std::size_t i = order.task.begin; i < order.task.end; i++) {
        if (i + lookahead < order.task.end) request(work, work.keys[i + lookahead]);
        move<Choices>(work, i, order.temperature, random);
    }
}

SIEVE_ALWAYS_INLINE void visit_any(Work& work, const Order& order) {
    if (work.lookup.choices == 3)
        visit<3>(work, order);
    else
        visit<2>(work, order); // also for one choice: locate repeats its line
}

#ifdef __x86_64__
// The hot loop is also compiled for newer processors. clang has no attribute for the preferred vector width.
#ifdef __clang__
#define SIEVE_NEWEST "arch=x86-64-v4,avx512vpopcntdq"
#else
#define SIEVE_NEWEST "arch=x86-64-v4,avx512vpopcntdq,prefer-vector-width=512"
#endif
[[gnu::target(SIEVE_NEWEST)]] void visit_newest(Work& work, const Order& order) {
    visit_any(work, order);
}
[[gnu::target("arch=x86-64-v3")]] void visit_newer(Work& work, const Order& order) {
    visit_any(work, order);
}
#endif
void visit_plain(Work& work, const Order& order) {
    visit_any(work, order);
}

using Visit = void (*)(Work&, const Order&);

Visit best_visit() {
#ifdef __x86_64__
    if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vpopcntdq")) return visit_newest;
    if (__builtin_cpu_supports("x86-64-v3")) return visit_newer;
#endif
    return visit_plain;
}

double mean_rate(const HugeArray<float>& rates) {
    return std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
}

} // namespace

PlacementReport place_blocked(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                              std::span<sieve_line> lines, const PlacementOptions& options,
                              const Progress& progress) {
    assert(lines.size() == lookup.buckets);
    const LineTasks tasks(keys, lookup);
    Work work{.lookup = lookup,
              .rate = WideRate(lookup.hashes),
              .keys = tasks.keys(),
              .lines = HugeArray<LineCounters>(lines.size()),
              .rates = HugeArray<float>(lines.size()),
              .choice = HugeArray<std::uint8_t>(keys.size())};
    const Visit visit_task = best_visit();
    const bool has_choice = lookup.choices > 1 && !keys.empty();
    const std::uint32_t planned = has_choice ? options.rounds : 0;
    const double passes = planned + 1.0;
    std::uint64_t pass_number = 0;
    const auto pass = [&](bool online, double temperature) {
        const std::uint64_t pass_seed = sieve_mix(options.seed + ++pass_number);
        tasks.run(
            [&](std::uint32_t task) {
                visit_task(work, {.task = tasks.tasks()[task],
                                  .online = online,
                                  .temperature = static_cast<float>(temperature),
                                  .seed = sieve_mix(pass_seed + task)});
            },
            [&](std::size_t done) {
                if (progress)
                    progress(online ? "placing" : "rebalancing",
                             std::min(1.0, (static_cast<double>(pass_number - 1) +
                                            static_cast<double>(done) / static_cast<double>(keys.size())) /
                                               passes));
            });
    };

    PlacementReport report;
    pass(true, 0);
    report.online_rate = report.final_rate = mean_rate(work.rates);
    // The lines' rates started at zero, so all added rates sum up to the sum of the lines' rates.
    const double mean_added = keys.empty() ? 0
                                           : report.online_rate * static_cast<double>(lines.size()) /
                                                 static_cast<double>(keys.size());
    for (; report.rounds < planned; report.rounds++) {
        const double heat = std::max(0.0, 1 - (report.rounds + 0.5) / (planned * cooling_share));
        pass(false, start_temperature * mean_added * heat);
    }
    if (planned > 0) report.final_rate = mean_rate(work.rates);
    for (std::size_t l = 0; l < lines.size(); l++) {
        const WideLine set = work.lines[l].set();
        const WideLine saturated = work.lines[l].saturated();
        for (int w = 0; w < SIEVE_LINE_WORDS; w++) {
            lines[l].word[w] = set[w];
            report.saturated += static_cast<std::uint64_t>(std::popcount(saturated[w]));
        }
    }
    return report;
}

} // namespace sieve
