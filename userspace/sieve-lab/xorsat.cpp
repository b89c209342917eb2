// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `xorsat` beside the information limit and the static filters of the literature: docs/xorsat.md.
#include "libsieve/analysis/xorsat.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/filters/kinds/xorsat/xorsat_builder.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_plan.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_rate.hpp"
#include "libsieve/filters/placement/sample_hashes.hpp"
#include "sieve-lab/experiment.hpp"

namespace sieve::lab {

namespace {

using experiments::Random;
using experiments::TrialPlan;

constexpr std::uint32_t lines = 2048;
constexpr std::uint32_t sweeps = 10; // as `build` does by default

struct Built {
    double rate;     // exact
    double exported; // share of the hashes that are looked up in a second line
};

/// A filter of random keys.
Built build(std::uint64_t seed, double bits_per_key, std::uint32_t its_sweeps) {
    std::mt19937_64 random(seed);
    const auto keys =
        sample_hashes(static_cast<std::uint64_t>(lines * SIEVE_LINE_BITS / bits_per_key), random);
    sieve_lookup lookup{};
    lookup.kind = SIEVE_KIND_XORSAT;
    lookup.choices = its_sweeps > 0 ? 2 : 1;
    lookup.buckets = lines;
    std::vector<sieve_line> filter(lines);
    fill_xorsat(keys, lookup, filter, its_sweeps, {});
    return {.rate = expected_xorsat_rate(lookup, filter), .exported = xorsat_exported(filter)};
}

Curve formula(const std::string& name, const std::function<double(double)>& rate) {
    Curve curve{.name = name};
    for (double bits = 4; bits <= 28; bits += 0.5) curve.points.push_back({bits, rate(bits)});
    return curve;
}

Outcome rates(const TrialPlan& plan) {
    Outcome outcome;
    Plot plot{.name = "xorsat-rates",
              .title = "False positive rates of static filters",
              .x_label = "bits per key",
              .y_label = "false positive rate",
              .y_log = true};
    Curve measured_curve{.name = "xorsat, filters built", .line = false};
    Curve alone_curve{.name = "xorsat without exports, built", .line = false};
    bool predicted = true;
    for (const double bits : {6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0}) {
        const auto observed =
            experiments::run_trials(plan, fmt::format("{} bits", bits), [&](Random& random) {
                const std::uint64_t seed = random();
                const Built usual = build(seed, bits, sweeps);
                return std::vector<double>{usual.rate, build(seed, bits, 0).rate, usual.exported};
            });
        const auto with = observed.of(0);
        const auto without = observed.of(1);
        const auto keys = static_cast<std::uint64_t>(lines * SIEVE_LINE_BITS / bits);
        const double promised = predict_xorsat_fpr(keys, lines, sweeps);
        outcome.rows.push_back(
            only_ours(fmt::format("{} bits per key, with exports", bits), with.mean(), with.standard_error(),
                      fmt::format("predicted {:.3e}; {:.1f}% of lookups take a second line", promised,
                                  100 * observed.of(2).mean())));
        outcome.rows.push_back(only_ours(
            fmt::format("{} bits per key, one line", bits), without.mean(), without.standard_error(),
            fmt::format("predicted {:.3e}", predict_xorsat_fpr(keys, lines, 0))));
        predicted = predicted && std::abs(with.mean() / promised - 1) < 0.1;
        measured_curve.points.push_back({bits, with.mean(), with.standard_error()});
        alone_curve.points.push_back({bits, without.mean(), without.standard_error()});
    }
    outcome.claims.push_back({"predictions are right within 10% at every size",
                              "rates of filters built, beside their predictions above", predicted, ""});
    plot.curves = {
        formula("limit 2^-b", [](double bits) { return std::exp2(-bits); }),
        formula("bumped ribbon, 1.01 (paper)", [](double bits) { return std::exp2(-bits / 1.01); }),
        formula("3-wise binary fuse, 1.125 (paper)", [](double bits) { return std::exp2(-bits / 1.125); }),
        formula("xorsat without exports", analysis::xorsat::rate_without_exports),
        formula("xorsat",
                [](double bits) {
                    return predict_xorsat_fpr(static_cast<std::uint64_t>(lines * SIEVE_LINE_BITS / bits),
                                              lines, sweeps);
                }),
        measured_curve,
        alone_curve};
    outcome.plots.push_back(std::move(plot));
    outcome.notes.push_back(fmt::format("Filters of {} lines; the rates are exact, from the bits. The "
                                        "papers' curves take fingerprints of fractional size.",
                                        lines));
    return outcome;
}

} // namespace

std::vector<Experiment> xorsat_experiments() {
    return {{"xorsat-rates", "Static filters against the information limit",
             "Dillinger et al., Fast Succinct Retrieval; Graf, Lemire, Binary Fuse Filters; Weaver et al., "
             "XORSAT Filters",
             4, 16, rates}};
}

} // namespace sieve::lab
