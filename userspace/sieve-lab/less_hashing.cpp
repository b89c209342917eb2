// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A. Kirsch, M. Mitzenmacher, "Less Hashing, Same Performance: Building a Better Bloom Filter" (RSA 33,
// 2008): Figures 1 and 2 (section 8) and Theorem 9.1.
#include "libsieve/analysis/less_hashing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sieve-lab/experiment.hpp"
#include "sieve-lab/simulations/bloom_schemes.hpp"
#include "sieve-lab/simulations/count_min.hpp"

namespace sieve::lab {

namespace {

namespace less_hashing = analysis::less_hashing;
using experiments::Moments;
using experiments::Random;
using experiments::TrialPlan;
using schemes::Scheme;

/// ceil(10/p), the number of queries of a trial in section 8.
std::uint64_t queries_for(double p) {
    return static_cast<std::uint64_t>(std::ceil(10 / p));
}

/// One trial of section 8: inserts n keys into m = cn bits, then queries non-members. Q is the number that
/// the filter takes for members.
double false_positives(Random& random, Scheme scheme, std::uint64_t n, unsigned c, unsigned k,
                       std::uint64_t queries) {
    schemes::SchemeFilter filter(scheme, c * n, k);
    for (std::uint64_t i = 0; i < n; ++i) filter.insert(random());
    std::uint64_t hits = 0;
    for (std::uint64_t i = 0; i < queries; ++i) hits += filter.contains(random()) ? 1 : 0;
    return static_cast<double>(hits);
}

constexpr std::array compared = {Scheme::standard,        Scheme::partition,     Scheme::double_hashing,
                                 Scheme::enhanced_square, Scheme::enhanced_cube, Scheme::triple_hashing};
constexpr std::array<std::uint64_t, 5> sizes = {100, 300, 1000, 3000, 10000};

/// What Figure 1 shows for one number of bits per key: the rate of each compared scheme at each size.
struct SchemeRates {
    unsigned c = 0;
    unsigned k = 0;
    double limit = 0;                         // p
    std::vector<std::vector<Moments>> rate{}; // by scheme and size

    /// How far the scheme's rate lies above the standard scheme's: relatively, and in sigma.
    [[nodiscard]] double excess(std::size_t scheme, std::size_t size) const {
        return rate[scheme][size].mean() / rate[0][size].mean() - 1;
    }
    [[nodiscard]] double excess_sigmas(std::size_t scheme, std::size_t size) const {
        const Moments& a = rate[scheme][size];
        const Moments& b = rate[0][size];
        return (a.mean() - b.mean()) / std::hypot(a.standard_error(), b.standard_error());
    }
};

SchemeRates simulate_schemes(const TrialPlan& plan, unsigned c) {
    const unsigned k = less_hashing::best_k(c);
    SchemeRates rates{.c = c, .k = k, .limit = less_hashing::false_positive_limit(c, k)};
    const std::uint64_t queries = queries_for(rates.limit);
    for (const Scheme scheme : compared) {
        rates.rate.emplace_back();
        for (const std::uint64_t n : sizes) {
            const auto stage = fmt::format("c = {}, n = {}, {}", c, n, schemes::name(scheme));
            const auto observed = run_trials(plan, stage, [&](Random& random) {
                const double hits = false_positives(random, scheme, n, c, k, queries);
                return std::vector<double>{hits / static_cast<double>(queries)};
            });
            rates.rate.back().push_back(observed.of(0));
        }
    }
    return rates;
}

Plot plot_of(const SchemeRates& rates) {
    Plot plot{.name = fmt::format("less-hashing-figure-1-c{}", rates.c),
              .title = fmt::format("Schemes at c = {}, k = {}", rates.c, rates.k),
              .x_label = "n",
              .y_label = "false positive probability",
              .x_log = true};
    plot.curves.push_back({.name = "limit (1 - e^(-k/c))^k",
                           .line = true,
                           .points = {{static_cast<double>(sizes.front()), rates.limit},
                                      {static_cast<double>(sizes.back()), rates.limit}}});
    for (std::size_t i = 0; i < compared.size(); ++i) {
        Curve curve{.name = std::string(schemes::name(compared[i])), .line = false};
        for (std::size_t n = 0; n < sizes.size(); ++n)
            curve.points.push_back(
                {static_cast<double>(sizes[n]), rates.rate[i][n].mean(), rates.rate[i][n].standard_error()});
        plot.curves.push_back(std::move(curve));
    }
    return plot;
}

void add_rows(const SchemeRates& rates, Outcome& outcome) {
    outcome.rows.push_back(only_ours(fmt::format("c = {}: k", rates.c), rates.k));
    outcome.rows.push_back(only_ours(fmt::format("c = {}: limit p", rates.c), rates.limit));
    for (const std::size_t s : {std::size_t{0}, sizes.size() - 1})
        for (std::size_t i = 0; i < compared.size(); ++i)
            outcome.rows.push_back(
                only_ours(fmt::format("c = {}, n = {}: {}", rates.c, sizes[s], schemes::name(compared[i])),
                          rates.rate[i][s].mean(), rates.rate[i][s].standard_error()));
}

/// At few bits per key, all schemes are alike.
Claim claim_of_likeness(const SchemeRates& rates) {
    double worst = 0;
    for (const auto& of_scheme : rates.rate)
        for (const auto& m : of_scheme)
            worst = std::max(worst, (std::abs(m.mean() - rates.limit) - most_sigmas * m.standard_error()) /
                                        rates.limit);
    return {
        fmt::format("c = {}: the schemes are essentially indistinguishable and close to p", rates.c),
        fmt::format("beyond three standard errors no scheme at any n is more than {:.1f} % away from p; the "
                    "partition scheme lies {:.1f} % above the standard one at n = {} and {:.1f} % at n = {}",
                    100 * worst, 100 * rates.excess(1, 0), sizes[0], 100 * rates.excess(1, 2), sizes[2]),
        worst < 0.1,
        "Only the partition scheme stands out, and only at the smallest n: with m/k = 133 positions "
        "for each hash, two keys are equal with a chance of n / 133^2. The text does not give the "
        "smallest n of the figure."};
}

/// At many bits per key, the partition scheme is worse until n is large.
void add_claims_of_partition(const SchemeRates& rates, Outcome& outcome) {
    double others = 0;
    for (std::size_t i = 2; i < compared.size(); ++i) others = std::max(others, rates.excess(i, 0));
    const double partition = rates.excess(1, 0);
    outcome.claims.push_back(
        {fmt::format("c = {}: at small n the partition scheme is worse, more than the others", rates.c),
         fmt::format("at n = {} it lies {:.0f} % above the standard scheme ({:.0f} sigma), the others at "
                     "most {:.0f} %",
                     sizes[0], 100 * partition, rates.excess_sigmas(1, 0), 100 * others),
         rates.excess_sigmas(1, 0) > most_sigmas && partition > others, ""});
    const std::size_t last = sizes.size() - 1;
    outcome.claims.push_back(
        {fmt::format("c = {}: the difference vanishes as n grows", rates.c),
         fmt::format("at n = {} the partition scheme lies {:.1f} % above the standard one", sizes[last],
                     100 * rates.excess(1, last)),
         rates.excess(1, last) < partition / 3, ""});
}

Outcome figure_1(const TrialPlan& plan) {
    Outcome outcome;
    for (const unsigned c : {4U, 8U, 12U, 16U}) {
        const SchemeRates rates = simulate_schemes(plan, c);
        add_rows(rates, outcome);
        if (c <= 8)
            outcome.claims.push_back(claim_of_likeness(rates));
        else
            add_claims_of_partition(rates, outcome);
        outcome.plots.push_back(plot_of(rates));
    }
    outcome.notes.emplace_back(
        "The text does not give the figure's values of n; ours span the small ones that it discusses. As in "
        "the paper, a trial asks about 10/p non-members. The partition scheme leaves m mod k bits unused. We "
        "added triple hashing, which the paper mentions.");
    return outcome;
}

/// Figure 2 for one scheme: how often Q false positives were counted, next to the normal density.
struct CountOfQueries {
    Scheme scheme{};
    std::uint64_t queries = 0;
    double p = 0;
    double trials = 0;

    [[nodiscard]] double density(double q) const {
        return trials * less_hashing::false_positives_density(q, static_cast<double>(queries), p);
    }
};

constexpr int most_counted = 30; // the last Q in the figure

void add_rows(const CountOfQueries& count, const Moments& q, Outcome& outcome) {
    const std::string name(schemes::name(count.scheme));
    const double expected = static_cast<double>(count.queries) * count.p;
    outcome.rows.push_back(
        measured(fmt::format("{}: mean of Q against 464 p", name), fmt::format("{:.4f}", expected), q, 0));
    // The relative error of a standard deviation is 1 / sqrt(2 trials).
    outcome.rows.push_back(measured(
        fmt::format("{}: deviation of Q against sqrt(464 p (1-p))", name),
        fmt::format("{:.4f}", std::sqrt(expected * (1 - count.p))), q.deviation(),
        q.deviation() / std::sqrt(2.0 * static_cast<double>(q.count())), 0,
        "A little wider than a binomial distribution, because filters differ in their number of ones."));
}

/// The curves of the density and the histogram, and the claim that they are alike.
void add_histogram(const CountOfQueries& count, const std::vector<std::vector<double>>& by_trial, Plot plot,
                   Outcome& outcome) {
    std::array<double, most_counted + 1> histogram{};
    for (const auto& trial : by_trial)
        histogram[static_cast<std::size_t>(std::min<double>(trial[0], most_counted))] += 1;
    Curve density{.name = "trials times the normal density, Theorem 7.2"};
    for (int i = 0; i <= 10 * most_counted; ++i)
        density.points.push_back({i / 10.0, count.density(i / 10.0)});
    Curve counted{.name = "trials with Q false positives", .line = false};
    double worst = 0;
    for (int i = 0; i < most_counted; ++i) {
        const double times = histogram[static_cast<std::size_t>(i)];
        counted.points.push_back({static_cast<double>(i), times, std::sqrt(times)});
        worst = std::max(worst, std::abs(times - count.density(i)) / count.trials);
    }
    outcome.claims.push_back(
        {fmt::format("{}: the normal density is a reasonable approximation of the histogram",
                     schemes::name(count.scheme)),
         fmt::format("no bin is off by more than {:.1f} % of all trials", 100 * worst), worst < 0.03,
         "Q is a count with mean 10, so its distribution is skewed against the normal one."});
    plot.curves = {density, counted};
    outcome.plots.push_back(std::move(plot));
}

Outcome figure_2(const TrialPlan& plan) {
    constexpr std::uint64_t n = 5000;
    constexpr unsigned c = 8;
    const unsigned k = less_hashing::best_k(c);
    const double p = less_hashing::false_positive_limit(c, k);
    const std::uint64_t queries = queries_for(p);
    Outcome outcome;
    outcome.rows.push_back(computed("k", "6", k));
    outcome.rows.push_back(computed("p", "0.021577", p));
    outcome.rows.push_back(computed("queries, 10/p", "464", static_cast<double>(queries)));
    const std::pair<Scheme, const char*> shown[] = {{Scheme::partition, "partition"},
                                                    {Scheme::enhanced_square, "square"},
                                                    {Scheme::enhanced_cube, "cube"}};
    for (const auto& [scheme, file] : shown) {
        const std::string name(schemes::name(scheme));
        const auto observed = run_trials(plan, name, [&, s = scheme](Random& random) {
            return std::vector<double>{false_positives(random, s, n, c, k, queries)};
        });
        const CountOfQueries count{
            .scheme = scheme, .queries = queries, .p = p, .trials = static_cast<double>(plan.trials)};
        add_rows(count, observed.of(0), outcome);
        add_histogram(
            count, observed.by_trial,
            {.name = fmt::format("less-hashing-figure-2-{}", file),
             .title = fmt::format("False positives among {} queries, {} scheme, n = {}, c = {}, k = {}",
                                  queries, name, n, c, k),
             .x_label = "Q",
             .y_label = "trials"},
            outcome);
    }
    return outcome;
}

/// A sketch's shape and the stream that it counts.
struct SketchCase {
    std::uint64_t width = 0;
    std::uint32_t depth = 0;
    double epsilon = 0;
    // Heavy: the largest number of equal items that can each exceed epsilon N, the hardest case for a sketch
    // of that width. Otherwise: 2000 items, the i-th counted 1000/i + 1 times.
    bool heavy = false;

    [[nodiscard]] std::uint64_t items() const {
        return heavy ? static_cast<std::uint64_t>(std::ceil(1 / epsilon)) - 1 : 2000;
    }
    [[nodiscard]] std::uint64_t count_of(std::uint64_t i) const { return heavy ? 1 : 1000 / (i + 1) + 1; }
    [[nodiscard]] std::string name() const {
        return fmt::format("w = {}, d = {}, epsilon = {}, {}", width, depth, epsilon,
                           heavy ? "few heavy items" : "Zipf");
    }
};

/// One trial: the share of non-members whose estimate is above a + epsilon N, and the number of estimates
/// that are too low.
std::vector<double> estimate_all(const SketchCase& s, Random& random) {
    constexpr std::uint64_t asked = 50;
    auto sketch = CountMin::create(s.width, s.depth, random());
    if (!sketch) return {1, 1};
    std::vector<std::uint64_t> item(s.items() + asked);
    for (auto& i : item) i = random();
    for (std::uint64_t i = 0; i < s.items(); ++i) sketch->update(item[i], s.count_of(i));
    double high = 0;
    double below = 0;
    for (std::uint64_t i = 0; i < item.size(); ++i) {
        const bool counted = i < s.items();
        const std::uint64_t truth = counted ? s.count_of(i) : 0;
        const std::uint64_t estimate = sketch->estimate(item[i]);
        if (estimate < truth) below += 1;
        // The theorem is about any single item. For a non-member, all other items may collide with it.
        if (!counted && static_cast<double>(estimate) > s.epsilon * static_cast<double>(sketch->total()))
            high += 1;
    }
    return {high / asked, below};
}

Claim claim_of_advice(const less_hashing::CountMinShape& advised) {
    const double bound =
        less_hashing::count_min_overestimate_bound(static_cast<double>(advised.width), advised.depth, 0.05);
    return {
        "w >= 2e/epsilon and d >= ln(1 / (epsilon (1 - 1/2e^2))) give Pr(est > a + epsilon N) <= epsilon",
        fmt::format("for epsilon = 0.05: w = {}, d = {}, bound {:.4g}", advised.width, advised.depth, bound),
        bound <= 0.05, ""};
}

Outcome count_min(const TrialPlan& plan) {
    const auto advised = less_hashing::count_min_shape(0.05);
    const SketchCase sketches[] = {{31, 2, 0.1},   {31, 3, 0.1},   {61, 2, 0.05},
                                   {101, 2, 0.05}, {101, 4, 0.05}, {advised.width, advised.depth, 0.05}};
    Outcome outcome;
    std::uint64_t low = 0;
    for (SketchCase s : sketches)
        for (const bool heavy : {true, false}) {
            s.heavy = heavy;
            const auto observed =
                run_trials(plan, s.name(), [&s](Random& random) { return estimate_all(s, random); });
            const Moments high = observed.of(0);
            low += static_cast<std::uint64_t>(observed.of(1).mean() * static_cast<double>(plan.trials) + 0.5);
            const double bound =
                less_hashing::count_min_overestimate_bound(static_cast<double>(s.width), s.depth, s.epsilon);
            outcome.rows.push_back(
                only_ours(s.name() + ": share above a + epsilon N", high.mean(), high.standard_error()));
            outcome.claims.push_back({fmt::format("{}: Pr(est > a + epsilon N) <= {:.4g}", s.name(), bound),
                                      fmt::format("{:.4g} +- {:.1g}", high.mean(), high.standard_error()),
                                      high.mean() <= bound + most_sigmas * high.standard_error(), ""});
        }
    outcome.claims.push_back(
        {"the estimate is never low", fmt::format("{} estimates were", low), low == 0, ""});
    outcome.claims.push_back(claim_of_advice(advised));
    outcome.notes.emplace_back(
        "Each trial draws new hash functions, fills the product's sketch and asks about 50 items that were "
        "not counted; any counted item may collide with them.");
    return outcome;
}

} // namespace

std::vector<Experiment> less_hashing_experiments() {
    const std::string paper = "Kirsch, Mitzenmacher, Less Hashing, Same Performance";
    return {
        {"less-hashing-figure-1", "False positives of the schemes", paper + ", Figure 1", 1000, 10'000,
         figure_1},
        {"less-hashing-figure-2", "Distribution of the number of false positives", paper + ", Figure 2",
         10'000, 10'000, figure_2},
        {"count-min", "The Count-Min sketch on two hash functions", paper + ", Theorem 9.1", 2000, 10'000,
         count_min},
    };
}

} // namespace sieve::lab
