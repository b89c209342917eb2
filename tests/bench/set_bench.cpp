// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Benchmarks for every kind in user space, with 10^6 keys, on one thread: building filters and asking them.
// They show what each effort costs and which rate it gives, at 16 bits a key. The counter `fpr` is exact,
// computed from the filter's bits. `strangers/` gives the rates at other sizes: it asks each filter for 10^7
// keys that it does not hold, and compares with what was predicted before the build. `scale/` builds the kind
// of most lists from 10^4 to 10^7 keys, beside the default filter; the counter `us_a_key` is processor time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/build/measure.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/choice.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve {

namespace {

constexpr std::uint64_t keys = 1'000'000;
constexpr std::uint64_t asked = 1 << 16;

// One form of a kind at one size.
struct Contestant {
    const FilterKind* kind;
    KindOptions form;
    std::optional<double> bits_per_key; // none: the list decides
};

// Every form of every kind of filter, at 16 bits a key, or at as many bits as the kind needs for all keys.
std::vector<Contestant> filters() {
    std::vector<Contestant> all;
    for (const FilterKind* kind : hashing_kinds())
        for (const KindOptions& form : kind->forms()) all.push_back({kind, form, kind->facts().bits_per_key});
    return all;
}

// The kinds that hold single addresses without error.
std::vector<Contestant> exact_sets() {
    std::vector<Contestant> all;
    for (const FilterKind* kind : filter_kinds())
        if (kind->exact() != nullptr && kind->exact()->is_of_keys())
            for (const KindOptions& form : kind->forms()) all.push_back({kind, form, {}});
    return all;
}

std::vector<Contestant> contestants() {
    std::vector<Contestant> all = exact_sets();
    const std::vector<Contestant> others = filters();
    all.insert(all.end(), others.begin(), others.end());
    return all;
}

std::string name_of(const Contestant& c) {
    const std::string name = fmt::format("{}/choices:{}", c.kind->facts().name, c.form.choices.value_or(0));
    return c.bits_per_key ? fmt::format("{}/bits:{:.0f}", name, *c.bits_per_key) : name;
}

BuildOptions options_for(const Contestant& contestant, Effort effort) {
    BuildOptions options;
    options.kind = contestant.form;
    options.kind.effort = effort;
    options.bits_per_key = contestant.bits_per_key;
    options.seed = 1;
    options.threads = 1;
    options.label = "benchmark";
    return options;
}

void build(benchmark::State& state, const BuildOptions& options, std::uint64_t count) {
    BuildReport report;
    for (auto _ : state) {
        state.PauseTiming();
        KeySet set = bench::member_keys(count);
        state.ResumeTiming();
        const Result<BuiltSet> built = build_set(std::move(set), options, {});
        if (!built) {
            state.SkipWithError(built.error().message.c_str());
            return;
        }
        report = built->report;
    }
    const auto total = state.iterations() * count;
    state.SetItemsProcessed(static_cast<std::int64_t>(total));
    state.counters["fpr"] = report.expected_fpr;
    state.counters["rounds"] = report.rounds;
    state.counters["bits_per_key"] = report.bits_per_key;
    state.counters["us_a_key"] = benchmark::Counter(
        static_cast<double>(total) / 1e6, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Members are the keys from the first index on; non-members are those from `keys` on.
void query(benchmark::State& state, const BuildOptions& options, bool members) {
    const Result<BuiltSet> built = build_set(bench::member_keys(keys), options, {});
    if (!built) {
        state.SkipWithError(built.error().message.c_str());
        return;
    }
    const KeySet candidates = bench::member_keys(keys + asked);
    std::vector<sieve_key> questions;
    for (std::uint64_t i = 0; i < asked; i++) {
        // Spread over the set, so that its lines are not in the cache.
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

// Asks a filter of 10^6 keys for ten times as many strangers. Fails where they match more or less often than
// the bits say, by four standard errors, and where the bits say something else than the prediction: by a
// tenth and three times what chance does to a filter of this size.
void ask_strangers(benchmark::State& state, BuildOptions options) {
    options.trials = 10'000'000;
    options.threads = 0;
    std::optional<Result<BuiltSet>> done;
    for (auto _ : state) done.emplace(build_set(bench::member_keys(keys), options, {}));
    const Result<BuiltSet>& built = *done;
    if (!built) {
        state.SkipWithError(built.error().message.c_str());
        return;
    }
    const BuildReport& report = built->report;
    const double expected = report.expected_fpr * static_cast<double>(report.measured_trials);
    const double sigma = std::sqrt(std::max(expected, 1.0));
    const double beyond = static_cast<double>(report.measured_hits) - expected;
    state.counters["predicted"] = report.predicted_fpr;
    state.counters["fpr"] = report.expected_fpr;
    state.counters["strangers"] = static_cast<double>(report.measured_trials);
    state.counters["matches"] = static_cast<double>(report.measured_hits);
    state.counters["sigmas"] = beyond / sigma;
    if (std::abs(beyond) > 4 * sigma)
        state.SkipWithError("strangers match more or less often than the bits say");
    if (std::abs(report.expected_fpr - report.predicted_fpr) >
        0.1 * report.predicted_fpr + 3 * scatter_of_expected_fpr(built->image))
        state.SkipWithError("the prediction is off by more than a tenth");
}

void add_build(const Contestant& contestant, Effort effort) {
    benchmark::RegisterBenchmark(
        fmt::format("build/{}/effort:{}", name_of(contestant), effort_name(effort)).c_str(),
        [contestant, effort](benchmark::State& state) {
            build(state, options_for(contestant, effort), keys);
        })
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
}

bool rebalanced(const Contestant& contestant) {
    return contestant.form.choices != 1U && contestant.kind->rounds(Effort::normal, 2) > 0;
}

void add_benchmarks() {
    for (const Contestant& contestant : contestants()) {
        const std::string name = name_of(contestant);
        for (const Effort effort : {Effort::fast, Effort::normal, Effort::best})
            if (rebalanced(contestant) || effort == Effort::normal) add_build(contestant, effort);
        for (const bool members : {false, true})
            benchmark::RegisterBenchmark(
                fmt::format("query/{}/{}", name, members ? "members" : "non_members").c_str(),
                [contestant, members](benchmark::State& state) {
                    query(state, options_for(contestant, Effort::fast), members);
                });
    }
    std::vector<Contestant> common = exact_sets();
    common.push_back(
        {.kind = &standard_kind(), .form = {.kind = standard_kind().facts().number}, .bits_per_key = 16});
    for (const std::uint64_t count : {10'000, 100'000, 1'000'000, 10'000'000})
        for (const Contestant& contestant : common)
            benchmark::RegisterBenchmark(
                fmt::format("scale/{}/keys:{}", contestant.kind->facts().name, count).c_str(),
                [contestant, count](benchmark::State& state) {
                    build(state, options_for(contestant, Effort::normal), count);
                })
                ->Unit(benchmark::kMillisecond);
    for (Contestant contestant : filters())
        for (const double bits : {8, 12, 16, 20, 24}) {
            contestant.bits_per_key = bits;
            benchmark::RegisterBenchmark(fmt::format("strangers/{}", name_of(contestant)).c_str(),
                                         [contestant](benchmark::State& state) {
                                             ask_strangers(state, options_for(contestant, Effort::normal));
                                         })
                ->Iterations(1)
                ->Unit(benchmark::kMillisecond);
        }
}

} // namespace

} // namespace sieve

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    sieve::add_benchmarks();
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
