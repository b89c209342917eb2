// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// S. Lumetta, M. Mitzenmacher, "Using the Power of Two Choices to Improve Bloom Filters" (Internet
// Mathematics 4, 2007): Tables 1, 2 and 3.
#include "libsieve/analysis/two_choice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/filters/kinds/bloom/bloom_placement.hpp"
#include "sieve-lab/experiment.hpp"
#include "sieve-lab/simulations/greedy_groups.hpp"

namespace sieve::lab {

namespace {

namespace two_choice = analysis::two_choice;
using experiments::GreedyGroups;
using experiments::GroupHashing;
using experiments::Moments;
using experiments::Random;
using experiments::TrialPlan;

constexpr std::uint32_t keys = 10'000;
constexpr std::uint64_t published_trials = 1000;

struct Filter {
    unsigned bits_per_key;
    unsigned groups;
    unsigned k;
    std::string name() const { return fmt::format("m/n = {}, c = {}, k = {}", bits_per_key, groups, k); }
};

/// Mean and deviation of what an online filling gives.
Moments online(const TrialPlan& plan, const Filter& f, bool rate, GroupHashing hashing) {
    const auto stage = f.name() + (hashing == GroupHashing::doubled ? ", double hashing" : "");
    return run_trials(plan, stage,
                      [&](Random& random) {
                          GreedyGroups filter(random, keys, f.bits_per_key * keys, f.k, f.groups, hashing);
                          filter.insert_all(random);
                          return std::vector<double>{rate ? filter.false_positive() : filter.ones()};
                      })
        .of(0);
}

/// The smallest and largest of 1000 trials, as expected from our trials. The rate is p^k, so its logarithm is
/// as normal as the number of ones. The extremes of 1000 normal variables lie 3.241 deviations from the mean,
/// give or take 0.352.
void extremes(Outcome& outcome, const TrialPlan& plan, const Filter& f, const char* least, const char* most) {
    const auto observed = run_trials(plan, f.name() + ", extremes", [&](Random& random) {
        GreedyGroups filter(random, keys, f.bits_per_key * keys, f.k, f.groups);
        filter.insert_all(random);
        return std::vector<double>{std::log(filter.false_positive())};
    });
    const Moments logs = observed.of(0);
    constexpr double away = 3.241;
    constexpr double scatter = 0.352;
    // The relative error of our deviation is 1 / sqrt(2 trials).
    const double known = away / std::sqrt(2.0 * static_cast<double>(logs.count()));
    for (const int side : {-1, 1}) {
        const double value = std::exp(logs.mean() + side * away * logs.deviation());
        outcome.rows.push_back(
            measured(fmt::format("{}: {} of 1000 trials", f.name(), side < 0 ? "smallest" : "largest"),
                     side < 0 ? least : most, value, value * logs.deviation() * known,
                     value * logs.deviation() * scatter));
    }
}

Outcome table_1(const TrialPlan& plan) {
    Outcome outcome;
    const struct {
        Filter filter;
        const char* rate;
    } printed[] = {
        {{8, 1, 6}, "2.159e-2"},   {{8, 2, 7}, "2.323e-2"},   {{8, 3, 7}, "2.389e-2"},
        {{16, 1, 11}, "4.588e-4"}, {{16, 2, 13}, "3.935e-4"}, {{16, 3, 13}, "3.607e-4"},
        {{32, 1, 22}, "2.106e-7"}, {{32, 2, 24}, "1.285e-7"}, {{32, 3, 25}, "9.980e-8"},
        {{16, 2, 12}, "3.954e-4"}, {{16, 2, 14}, "4.035e-4"}, // of the text
    };
    for (const auto& p : printed) {
        const Moments rate = online(plan, p.filter, true, GroupHashing::independent);
        outcome.rows.push_back(measured(p.filter.name(), p.rate, rate, published_trials));
    }
    for (const auto& p : printed) {
        if (p.filter.groups == 2 && p.filter.bits_per_key == 16 && p.filter.k != 13) continue;
        const auto best = two_choice::best_k(p.filter.bits_per_key, p.filter.groups);
        outcome.rows.push_back(
            computed(fmt::format("m/n = {}, c = {}: best k by (3.2)", p.filter.bits_per_key, p.filter.groups),
                     std::to_string(p.filter.k), best.k,
                     fmt::format("The minimum is flat: {:.4e} at our k, {:.4e} at the printed one.", best.fpp,
                                 two_choice::fpp(p.filter.bits_per_key, p.filter.k, p.filter.groups))));
    }
    extremes(outcome, plan, {32, 2, 24}, "1.206e-7", "1.378e-7");
    extremes(outcome, plan, {32, 1, 22}, "1.955e-7", "2.270e-7");
    outcome.notes.push_back(
        "n = 10,000 keys, independent random hashes. The rate of a trial follows from "
        "its fraction of ones, as in "
        "the paper. Differences are in standard errors of the difference between two means, ours and the "
        "paper's (1000 trials), both with the spread that we observe.");
    return outcome;
}

Outcome table_2(const TrialPlan& plan) {
    Outcome outcome;
    const struct {
        Filter filter;
        const char *observed, *predicted;
    } printed[] = {
        {{8, 2, 7}, "0.5296", "0.5296"},   {{8, 3, 7}, "0.5020", "0.5019"},
        {{16, 2, 13}, "0.5187", "0.5187"}, {{16, 3, 13}, "0.4994", "0.4994"},
        {{32, 2, 24}, "0.5016", "0.5016"}, {{32, 3, 25}, "0.5022", "0.5022"},
    };
    for (const auto& p : printed) {
        const auto& f = p.filter;
        const Moments independent = online(plan, f, false, GroupHashing::independent);
        const Moments doubled = online(plan, f, false, GroupHashing::doubled);
        outcome.rows.push_back(measured(f.name() + ", observed", p.observed, independent, published_trials));
        outcome.rows.push_back(measured(f.name() + ", observed, double hashing", p.observed, doubled,
                                        published_trials,
                                        "Two hashes that are equal modulo m except for their step share "
                                        "several bits; at n = 10,000 this shows in the fourth decimal."));
        outcome.rows.push_back(computed(f.name() + ", equation (3.2)", p.predicted,
                                        two_choice::fraction_of_ones(f.bits_per_key, f.k, f.groups)));
    }
    outcome.notes.push_back(
        "Fraction of ones after n = 10,000 keys, placed online. \"Double hashing\": a1 + i a2 "
        "mod m with odd a2 inside each group, which, the paper says, gives the same four digits.");
    return outcome;
}

/// The product's builder on random hashes: the rate after a number of rounds.
double product_rate(Random& random, const Filter& f, std::uint32_t rounds, BloomSearch search) {
    // Whole lines: with 10,048 keys, 157 lines give exactly 8 bits per key, 314 give 16, and 628 give 32.
    constexpr std::uint32_t product_keys = 10'048;
    std::vector<sieve_hash> hashes(product_keys);
    for (auto& hash : hashes) hash = {random(), random()};
    sieve_lookup lookup{};
    lookup.choices = static_cast<std::uint8_t>(f.groups);
    lookup.hashes = static_cast<std::uint8_t>(f.k);
    lookup.buckets = product_keys / SIEVE_LINE_BITS * f.bits_per_key +
                     product_keys % SIEVE_LINE_BITS * f.bits_per_key / SIEVE_LINE_BITS;
    std::vector<sieve_line> lines(lookup.buckets);
    const auto report =
        place_bloom(hashes, lookup, lines, {.search = search, .rounds = rounds, .seed = random()}, {});
    return bloom_rate(report.final_ones, f.k, f.groups);
}

/// A filter of Table 3, and the rates that the paper prints after some numbers of rounds.
struct OfflineFilter {
    Filter filter;
    std::vector<std::pair<unsigned, const char*>> printed; // rounds and rate
};

void add_simulation(const TrialPlan& plan, const OfflineFilter& run, std::vector<Row>& rows) {
    const auto& f = run.filter;
    const auto observed = run_trials(plan, f.name(), [&](Random& random) {
        GreedyGroups filter(random, keys, f.bits_per_key * keys, f.k, f.groups);
        filter.insert_all(random);
        std::vector<double> rate;
        unsigned round = 1;
        for (const auto& [rounds, print] : run.printed) {
            for (; round < rounds; ++round) filter.rebalance(random);
            rate.push_back(filter.false_positive());
        }
        return rate;
    });
    for (std::size_t i = 0; i < run.printed.size(); ++i)
        rows.push_back(
            measured(f.groups == 1 ? f.name() : fmt::format("{}, {} rounds", f.name(), run.printed[i].first),
                     run.printed[i].second, observed.of(i), published_trials));
}

/// The same filter, built by the product's builder.
void add_product(const TrialPlan& plan, const OfflineFilter& run, std::vector<Row>& rows) {
    const auto& f = run.filter;
    TrialPlan few = plan;
    few.trials = std::min<std::uint64_t>(plan.trials, 20);
    const unsigned rounds = run.printed.back().first - 1;
    const auto observed = run_trials(few, "the product, " + f.name(), [&](Random& random) {
        std::vector<double> rate;
        for (const auto search : {BloomSearch::greedy, BloomSearch::plateau, BloomSearch::annealed})
            rate.push_back(product_rate(random, f, rounds, search));
        return rate;
    });
    const char* names[] = {"greedy", "plateau", "annealed"};
    for (std::size_t i = 0; i < 3; ++i) {
        const Moments rate = observed.of(i);
        rows.push_back(
            only_ours(fmt::format("{}, {} rounds: the product's builder, {}", f.name(), rounds + 1, names[i]),
                      rate.mean(), rate.standard_error()));
    }
}

Outcome table_3(const TrialPlan& plan) {
    Outcome outcome;
    const OfflineFilter filters[] = {
        {{8, 1, 6}, {{1, "2.159e-2"}}},
        {{8, 2, 7}, {{10, "1.505e-2"}}},
        {{8, 2, 8}, {{15, "1.485e-2"}}},
        {{8, 3, 8}, {{30, "1.237e-2"}, {40, "1.222e-2"}}},
        {{16, 1, 11}, {{1, "4.588e-4"}}},
        {{16, 2, 14}, {{10, "2.259e-4"}, {15, "2.223e-4"}}},
        {{16, 3, 15}, {{30, "1.604e-4"}, {40, "1.582e-4"}}},
        {{32, 1, 22}, {{1, "2.106e-7"}}},
        {{32, 2, 26}, {{10, "6.260e-8"}, {15, "6.143e-8"}}},
        {{32, 3, 27}, {{30, "3.579e-8"}, {40, "3.525e-8"}}},
    };
    for (const OfflineFilter& run : filters) add_simulation(plan, run, outcome.rows);
    for (const OfflineFilter& run : filters)
        if (run.filter.groups > 1) add_product(plan, run, outcome.rows);
    outcome.notes.push_back(
        "n = 10,000 keys. Rounds are the number of times that each key is inserted, the "
        "online pass included. The "
        "rows of the product's builder (at most 20 trials, 10,048 keys so that lines are whole) show the "
        "same search with its own hashes, and what goes beyond the paper.");
    return outcome;
}

} // namespace

std::vector<Experiment> two_choice_experiments() {
    const std::string paper = "Lumetta, Mitzenmacher, Using the Power of Two Choices";
    return {
        {"two-choice-table-1", "Online, false positive rates", paper + ", Table 1", 1000, 1000, table_1},
        {"two-choice-table-2", "Online, fraction of ones", paper + ", Table 2", 1000, 1000, table_2},
        {"two-choice-table-3", "Offline, false positive rates", paper + ", Table 3", 100, 1000, table_3},
    };
}

} // namespace sieve::lab
