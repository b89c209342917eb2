// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `exact` beside the theory of cuckoo hashing and the least size of any exact set: docs/exact.md.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/filters/kinds/exact/exact_geometry.hpp"
#include "libsieve/filters/kinds/exact/exact_ipv4.hpp"
#include "libsieve/filters/kinds/exact/exact_lanes.hpp"
#include "libsieve/filters/kinds/exact/exact_table.hpp"
#include "sieve-lab/analysis/cuckoo.hpp"
#include "sieve-lab/experiment.hpp"

namespace sieve::lab {

namespace {

using exact::Shape;
using experiments::Random;
using experiments::TrialPlan;

std::string power(std::uint64_t keys) {
    return fmt::format("10^{}", std::lround(std::log10(static_cast<double>(keys))));
}

std::string name_of(const Shape& shape) {
    return fmt::format("{} x {}", shape.lanes, shape.width);
}

/// The shapes of which tables of up to 10^7 keys are made.
std::span<const Shape> usual_shapes() {
    constexpr std::size_t usual = 4;
    return exact::shapes().first(usual);
}

double threshold_of(const Shape& shape) {
    return analysis::cuckoo_threshold(static_cast<int>(shape.lanes));
}

double bits_per_key(std::uint64_t keys) {
    return static_cast<double>(exact::table_lines(keys, 0)) * SIEVE_LINE_BITS / static_cast<double>(keys);
}

Outcome sizes(const TrialPlan&) {
    Outcome outcome;
    for (const std::uint64_t keys : {10'000ULL, 100'000ULL, 1'000'000ULL, 10'000'000ULL, 100'000'000ULL}) {
        const double limit = analysis::least_exact_bits(keys);
        const Shape& shape = exact::best_shape(keys);
        outcome.rows.push_back(
            only_ours(fmt::format("{} addresses, least bits per key", power(keys)), limit));
        outcome.rows.push_back(only_ours(fmt::format("{} addresses, exact", power(keys)), bits_per_key(keys),
                                         0,
                                         fmt::format("words of {} lanes x bits, {:.2f} times the least",
                                                     name_of(shape), bits_per_key(keys) / limit)));
    }
    for (const auto& [keys, most] : {std::pair{1'000'000ULL, 1.25}, {10'000'000ULL, 1.35}}) {
        const double ratio = bits_per_key(keys) / analysis::least_exact_bits(keys);
        outcome.claims.push_back(
            {fmt::format("{} addresses take at most {} times the least", power(keys), most),
             fmt::format("{:.3f} times", ratio), ratio <= most, ""});
    }
    Curve least{.name = "least of any exact set, log2 C(2^32, n) / n"};
    Curve ours{.name = "exact"};
    Curve filter{.name = "least of a filter of one in a million, log2 10^6"};
    Curve plain{.name = "the addresses themselves"};
    constexpr int steps = 40; // a decade
    for (int step = 3 * steps; step <= 8 * steps; step++) {
        const double keys = std::pow(10, static_cast<double>(step) / steps);
        const auto count = static_cast<std::uint64_t>(keys);
        least.points.push_back({keys, analysis::least_exact_bits(count)});
        ours.points.push_back({keys, bits_per_key(count)});
        filter.points.push_back({keys, std::log2(1e6)});
        plain.points.push_back({keys, 32});
    }
    outcome.plots.push_back({.name = "exact-sizes",
                             .title = "Exact sets of IPv4 addresses",
                             .x_label = "addresses",
                             .y_label = "bits per key",
                             .x_log = true,
                             .curves = {least, ours, filter, plain}});
    return outcome;
}

/// The load at which a table of so many lines first has no room for the next of random addresses.
double first_failure(const Shape& shape, std::uint64_t lines, Random& trial) {
    std::mt19937_64 random(trial());
    sieve_exact exact = exact::geometry_of(shape, lines);
    exact::draw_secrets(exact, random);
    const exact::Lanes lanes(exact);
    std::vector<__u64> words(exact.words, lanes.empty_word());
    exact::RoomSearch search;
    std::uint64_t keys = 0;
    for (;;) {
        const auto address = static_cast<std::uint32_t>(random());
        const sieve_exact_place at = sieve_exact_locate(&exact, sieve_exact_permute(&exact, address));
        switch (exact::place(lanes, words, at, 0, {0, exact.words}, search)) {
        case exact::Placed::now:
            keys++;
            break;
        case exact::Placed::before:
            break;
        case exact::Placed::nowhere:
            return static_cast<double>(keys) / (static_cast<double>(exact.words) * shape.lanes);
        }
    }
}

/// The lines of a table that about so many keys fill up to the threshold; none if its lanes are too narrow
/// for so few words.
std::optional<std::uint64_t> lines_at_threshold(const Shape& shape, std::uint64_t keys) {
    const auto lines = static_cast<std::uint64_t>(static_cast<double>(keys) /
                                                  (shape.lanes * SIEVE_LINE_WORDS * threshold_of(shape)));
    return lines < exact::lines_for(shape, 0) ? std::nullopt
                                              : std::optional(std::max<std::uint64_t>(lines, 1));
}

Outcome loads(const TrialPlan& plan) {
    // Mean degree of the graph at its threshold, as the literature has it: 2 x lanes x load.
    constexpr std::array<const char*, 4> degrees = {"3.588", "5.755", "7.843", "9.896"};
    Outcome outcome;
    Plot plot{.name = "exact-loads",
              .title = "Load at which a table first has no room",
              .x_label = "keys",
              .y_label = "load",
              .x_log = true};
    for (std::size_t i = 0; i < usual_shapes().size(); i++) {
        const Shape& shape = usual_shapes()[i];
        outcome.rows.push_back(computed(fmt::format("{} lanes, mean degree at the threshold", shape.lanes),
                                        degrees[i], 2 * shape.lanes * threshold_of(shape)));
    }
    bool room_for_all = true;
    bool near_threshold = true;
    for (const Shape& shape : usual_shapes()) {
        const double threshold = threshold_of(shape);
        outcome.rows.push_back(only_ours(name_of(shape) + ", threshold", threshold));
        outcome.rows.push_back(only_ours(name_of(shape) + ", load of the builder", shape.load));
        Curve found{.name = fmt::format("{} lanes", shape.lanes), .line = false};
        Curve limit{.name = fmt::format("threshold, {} lanes", shape.lanes)};
        for (const std::uint64_t keys : {1'000ULL, 10'000ULL, 100'000ULL, 1'000'000ULL, 10'000'000ULL}) {
            limit.points.push_back({static_cast<double>(keys), threshold});
            const std::optional<std::uint64_t> lines = lines_at_threshold(shape, keys);
            if (!lines) continue;
            const auto observed = experiments::run_trials(
                plan, fmt::format("{}, {} keys", name_of(shape), power(keys)),
                [&](Random& random) { return std::vector<double>{first_failure(shape, *lines, random)}; });
            const auto load = observed.of(0);
            outcome.rows.push_back(only_ours(
                fmt::format("{}, {} keys, first without room at a load of", name_of(shape), power(keys)),
                load.mean(), load.standard_error(), fmt::format("at the least {:.3f}", load.smallest())));
            found.points.push_back({static_cast<double>(keys), load.mean(), load.deviation()});
            constexpr std::uint64_t large = 100'000;
            if (keys < large) continue;
            room_for_all = room_for_all && load.smallest() > shape.load;
            near_threshold = near_threshold && load.mean() < threshold && load.mean() > threshold - 0.02;
        }
        plot.curves.push_back(std::move(limit));
        plot.curves.push_back(std::move(found));
    }
    outcome.claims.push_back({"tables of 10^5 keys and more have room below the builder's load",
                              "the least load without room of all trials, above", room_for_all, ""});
    outcome.claims.push_back({"the mean load without room is below the threshold, by 0.02 at most",
                              "tables of 10^5 keys and more, above", near_threshold, ""});
    outcome.plots.push_back(std::move(plot));
    outcome.notes.push_back(
        "A table is filled with random addresses until one finds no room: a search that has seen 2^14 words "
        "gives up. From 2^20 words on, a key's second word is within 2^15 of its first, which costs a little "
        "load. Points of the figure have the deviation between tables as their bars.");
    return outcome;
}

/// Whether one draw of secrets has room for the list at the builder's size.
bool has_room(std::span<const std::uint32_t> list, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const Shape& shape = exact::best_shape(list.size());
    sieve_exact exact = exact::geometry_of(shape, exact::lines_for(shape, list.size()));
    exact::draw_secrets(exact, random);
    std::vector<__u64> words(exact.words, exact::Lanes(exact).empty_word());
    std::vector<std::uint32_t> repeated;
    return exact::place_all(exact, words, list, {}, repeated);
}

Outcome draws(const TrialPlan& plan) {
    Outcome outcome;
    double worst = 0;
    for (const std::size_t keys : {10, 14, 20, 50, 100, 200, 500, 1'000, 10'000}) {
        const auto observed =
            experiments::run_trials(plan, fmt::format("{} keys", keys), [&](Random& random) {
                std::vector<std::uint32_t> list(keys);
                for (auto& address : list) address = static_cast<std::uint32_t>(random());
                return std::vector<double>{has_room(list, random()) ? 0.0 : 1.0};
            });
        const double failed = observed.of(0).mean();
        worst = std::max(worst, failed);
        outcome.rows.push_back(
            only_ours(fmt::format("{} keys, {:.1f} bits per key, share of draws without room", keys,
                                  bits_per_key(keys)),
                      failed, experiments::counting_error(failed, static_cast<double>(plan.trials))));
    }
    constexpr int tries = 8; // before a table grows
    outcome.claims.push_back({"a table hardly ever has to grow for want of a draw that fits",
                              fmt::format("eight draws in a row fail once in {:.0e} builds, at most",
                                          1 / std::pow(std::max(worst, 1e-6), tries)),
                              std::pow(worst, tries) < 1e-9, ""});
    return outcome;
}

/// As many independent vectors over GF(2) as span at least so many addresses.
std::vector<std::uint32_t> random_basis(std::uint64_t addresses, Random& random) {
    std::vector<std::uint32_t> basis;
    std::vector<std::uint32_t> reduced; // by their highest bits, all different
    while (basis.size() < static_cast<std::size_t>(std::bit_width(addresses - 1))) {
        const auto vector = static_cast<std::uint32_t>(random());
        std::uint32_t rest = vector;
        for (const std::uint32_t other : reduced) rest = std::min(rest, rest ^ other);
        if (rest == 0) continue;
        basis.push_back(vector);
        reduced.push_back(rest);
        std::sort(reduced.rbegin(), reduced.rend());
    }
    return basis;
}

/// A list that somebody chooses who knows the builder but not the secrets: its address number i of `count`.
struct Hostile {
    const char* name;
    std::function<std::uint32_t(std::uint32_t i)> address;
};

std::vector<Hostile> hostile_lists(std::uint32_t count, Random& random) {
    const auto bits = static_cast<std::uint32_t>(std::bit_width(count - 1));
    const std::vector<std::uint32_t> basis = random_basis(count, random);
    const std::uint32_t factor = static_cast<std::uint32_t>(random()) | 1;
    const std::uint32_t run = (count >> 16) + 1;
    std::vector<Hostile> lists = {
        {"a dense range", [](std::uint32_t i) { return 0x0a000000 + i; }},
        {"equal lower bits", [bits](std::uint32_t i) { return i << (32 - bits) | (0x2aU >> (bits / 5)); }},
        {"a stride of 256", [](std::uint32_t i) { return 256 * i; }},
        {"a stride of 65,537", [](std::uint32_t i) { return 65'537 * i; }},
        {"a stride of FNV's prime", [](std::uint32_t i) { return 0x01000193 * i; }},
        {"whole /24s", [factor](std::uint32_t i) { return ((i >> 8) * factor) << 8 | (i & 255); }},
        {"middle octets", [](std::uint32_t i) { return (i & 0xffff) << 8 | i >> 16; }},
        {"a subspace over GF(2)",
         [basis](std::uint32_t i) {
             std::uint32_t sum = 0;
             for (std::size_t bit = 0; i >> bit != 0; bit++)
                 if ((i >> bit & 1) != 0) sum ^= basis[bit];
             return sum;
         }},
        {"runs in each /16", [run](std::uint32_t i) { return (i / run) << 16 | i % run; }},
    };
    if (bits <= 16)
        lists.push_back({"even bits", [](std::uint32_t i) {
                             std::uint32_t spread = 0;
                             for (std::uint32_t bit = 0; bit < 16; bit++)
                                 spread |= (i >> bit & 1) << (2 * bit);
                             return spread;
                         }});
    return lists;
}

Outcome hostile(const TrialPlan& plan) {
    Outcome outcome;
    std::uint64_t failures = 0;
    std::uint64_t builds = 0;
    bool distinct = true;
    for (const std::uint32_t keys : {10'000U, 1'000'000U, 10'000'000U}) {
        TrialPlan own = plan;
        // The largest take most of the time.
        constexpr std::uint64_t fewer = 20;
        if (keys == 10'000'000U) own.trials = std::max<std::uint64_t>(1, plan.trials / fewer);
        Random names(plan.seed);
        const std::vector<Hostile> kinds = hostile_lists(keys, names);
        for (std::size_t kind = 0; kind < kinds.size(); kind++) {
            const auto observed = experiments::run_trials(
                own, fmt::format("{} keys, {}", power(keys), kinds[kind].name), [&](Random& random) {
                    const Hostile list = hostile_lists(keys, random)[kind];
                    std::vector<std::uint32_t> addresses(keys);
                    for (std::uint32_t i = 0; i < keys; i++) addresses[i] = list.address(i);
                    const bool room = has_room(addresses, random());
                    std::sort(addresses.begin(), addresses.end());
                    const bool all_differ =
                        std::adjacent_find(addresses.begin(), addresses.end()) == addresses.end();
                    return std::vector<double>{room ? 0.0 : 1.0, all_differ ? 1.0 : 0.0};
                });
            const auto failed = observed.of(0);
            failures +=
                static_cast<std::uint64_t>(std::lround(failed.mean() * static_cast<double>(own.trials)));
            builds += own.trials;
            distinct = distinct && observed.of(1).smallest() == 1;
            outcome.rows.push_back(only_ours(fmt::format("{}, {}: share of {} draws without room",
                                                         power(keys), kinds[kind].name, own.trials),
                                             failed.mean()));
        }
    }
    outcome.claims.push_back({"no list that is chosen without the secrets takes more room than a random one",
                              fmt::format("{} of {} draws failed at the builder's loads", failures, builds),
                              failures == 0, ""});
    outcome.claims.push_back(
        {"the lists are what they are meant to be", "their addresses are all different", distinct, ""});
    return outcome;
}

} // namespace

std::vector<Experiment> exact_experiments() {
    return {
        {"exact-sizes", "Exact sets against the least size", "kind exact; counting sets", 0, 0, sizes},
        {"exact-loads", "How full a table gets",
         "Fernholz, Ramachandran; Cain, Sanders, Wormald: thresholds for k-orientability, SODA 2007", 4, 20,
         loads},
        {"exact-draws", "How often small sets draw their secrets again", "kind exact", 1'000, 10'000, draws},
        {"exact-hostile", "Lists that an attacker chooses", "kind exact", 5, 100, hostile}};
}

} // namespace sieve::lab
