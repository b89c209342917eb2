// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Building filters and asking them in user space, at 10^6 keys and 16 bits a key.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/bench/bench_keys.hpp"
#include "libsieve/filters/set_builder.hpp"

namespace sieve {

namespace {

constexpr std::uint64_t keys = 1'000'000;
constexpr std::uint64_t asked = 1 << 16;

BuildOptions options_for(std::uint32_t choices, std::uint32_t rounds) {
    BuildOptions options;
    options.kind.choices = choices;
    options.kind.rounds = rounds;
    options.seed = 1;
    options.threads = 1;
    options.label = "benchmark";
    return options;
}

void build_blocked(benchmark::State& state) {
    const BuildOptions options =
        options_for(static_cast<std::uint32_t>(state.range(0)), static_cast<std::uint32_t>(state.range(1)));
    double fpr = 0;
    for (auto _ : state) {
        state.PauseTiming();
        KeySet set = bench::member_keys(keys);
        state.ResumeTiming();
        const Result<BuiltSet> built = build_set(std::move(set), options, [](std::string_view, double) {});
        if (!built) {
            state.SkipWithError(built.error().message.c_str());
            return;
        }
        fpr = built->report.expected_fpr;
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * keys));
    state.counters["fpr"] = fpr;
}
BENCHMARK(build_blocked)
    ->ArgNames({"choices", "rounds"})
    ->ArgsProduct({{1, 2, 3}, {0, 4, 16}})
    ->Unit(benchmark::kMillisecond);

// Members are the keys from the first index on, strangers those from `keys` on.
void query_blocked(benchmark::State& state) {
    const Result<BuiltSet> built =
        build_set(bench::member_keys(keys), options_for(static_cast<std::uint32_t>(state.range(0)), 2),
                  [](std::string_view, double) {});
    if (!built) {
        state.SkipWithError(built.error().message.c_str());
        return;
    }
    const bool members = state.range(1) != 0;
    const KeySet candidates = bench::member_keys(keys + asked);
    std::vector<sieve_key> questions;
    for (std::uint64_t i = 0; i < asked; i++) {
        // Spread over the set, so that its lines are not warm.
        const std::uint64_t member = i * (keys / asked);
        questions.push_back(candidates.at(members ? member : keys + i));
    }
    std::uint64_t found = 0;
    for (auto _ : state)
        for (const sieve_key& key : questions) found += built->image.contains(key) ? 1 : 0;
    const auto total = state.iterations() * asked;
    state.SetItemsProcessed(static_cast<std::int64_t>(total));
    state.counters["found"] = static_cast<double>(found) / static_cast<double>(total);
    if (members && found != total) state.SkipWithError("a member was not found");
}
BENCHMARK(query_blocked)->ArgNames({"choices", "members"})->ArgsProduct({{1, 2, 3}, {0, 1}});

} // namespace

} // namespace sieve

BENCHMARK_MAIN();
