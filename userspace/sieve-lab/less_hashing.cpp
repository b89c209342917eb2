// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A. Kirsch, M. Mitzenmacher, "Less Hashing, Same Performance: Building a Better Bloom Filter" (RSA 33,
// 2008): Figures 1 and 2 (section 8) and Theorem 9.1.
#include "libsieve/analysis/less_hashing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
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

/// One trial of section 8: n keys into m = cn bits, then queries with non-members; the number Q that the
/// filter takes for members.
double false_positives(Random& random, Scheme scheme, std::uint64_t n, unsigned c, unsigned k,
                       std::uint64_t queries) {
    schemes::SchemeFilter filter(scheme, c * n, k);
    for (std::uint64_t i = 0; i < n; ++i) filter.insert(random());
    std::uint64_t hits = 0;
    for (std::uint64_t i = 0; i < queries; ++i) hits += filter.contains(random()) ? 1 : 0;
    return static_cast<double>(hits);
}

Outcome figure_1(const TrialPlan& plan) {
    constexpr std::array compared = {Scheme::standard,        Scheme::partition,     Scheme::double_hashing,
                                     Scheme::enhanced_square, Scheme::enhanced_cube, Scheme::triple_hashing};
    constexpr std::array<std::uint64_t, 5> sizes = {100, 300, 1000, 3000, 10000};
    Outcome outcome;
    for (const unsigned c : {4U, 8U, 12U, 16U}) {
        const unsigned k = less_hashing::best_k(c);
        const double p = less_hashing::false_positive_limit(c, k);
        const std::uint64_t queries = queries_for(p);
        Plot plot{.name = fmt::format("less-hashing-figure-1-c{}", c),
                  .title = fmt::format("Schemes at c = {}, k = {}", c, k),
                  .x_label = "n",
                  .y_label = "false positive probability",
                  .x_log = true};
        plot.curves.push_back(
            {.name = "limit (1 - e^(-k/c))^k",
             .line = true,
             .points = {{static_cast<double>(sizes.front()), p}, {static_cast<double>(sizes.back()), p}}});
        std::vector<std::vector<Moments>> rate; // by scheme and size
        for (const Scheme scheme : compared) {
            const std::string name(schemes::name(scheme));
            Curve curve{.name = name, .line = false};
            rate.emplace_back();
            for (const std::uint64_t n : sizes) {
                const auto observed =
                    run_trials(plan, fmt::format("c = {}, n = {}, {}", c, n, name), [&](Random& random) {
                        const double hits = false_positives(random, scheme, n, c, k, queries);
                        return std::vector<double>{hits / static_cast<double>(queries)};
                    });
                rate.back().push_back(observed.of(0));
                const Moments& m = rate.back().back();
                curve.points.push_back({static_cast<double>(n), m.mean(), m.standard_error()});
            }
            plot.curves.push_back(std::move(curve));
        }
        outcome.rows.push_back(only_ours(fmt::format("c = {}: k", c), k));
        outcome.rows.push_back(only_ours(fmt::format("c = {}: limit p", c), p));
        for (const std::size_t s : {std::size_t{0}, sizes.size() - 1})
            for (std::size_t i = 0; i < compared.size(); ++i)
                outcome.rows.push_back(
                    only_ours(fmt::format("c = {}, n = {}: {}", c, sizes[s], schemes::name(compared[i])),
                              rate[i][s].mean(), rate[i][s].standard_error()));

        const auto above_standard = [&](std::size_t scheme, std::size_t size) { // in sigma
            const Moments& a = rate[scheme][size];
            const Moments& b = rate[0][size];
            return (a.mean() - b.mean()) / std::hypot(a.standard_error(), b.standard_error());
        };
        if (c <= 8) {
            double worst = 0;
            for (const auto& of_scheme : rate)
                for (const auto& m : of_scheme)
                    worst = std::max(worst, (std::abs(m.mean() - p) - most_sigmas * m.standard_error()) / p);
            outcome.claims.push_back(
                {fmt::format("c = {}: the schemes are essentially indistinguishable and close to p", c),
                 fmt::format(
                     "beyond three standard errors no scheme at any n is more than {:.1f} % away from p; the "
                     "partition scheme lies {:.1f} % above the standard one at n = {} and {:.1f} % at n = {}",
                     100 * worst, 100 * (rate[1][0].mean() / rate[0][0].mean() - 1), sizes[0],
                     100 * (rate[1][2].mean() / rate[0][2].mean() - 1), sizes[2]),
                 worst < 0.1,
                 "Only the partition scheme stands out, and only at the smallest n: with m/k = 133 positions "
                 "for each hash, two keys are equal with a chance of n / 133^2. The text does not give the "
                 "smallest n of "
                 "the figure."});
        } else {
            double others = 0;
            for (std::size_t i = 2; i < compared.size(); ++i)
                others = std::max(others, rate[i][0].mean() / rate[0][0].mean() - 1);
            const double partition = rate[1][0].mean() / rate[0][0].mean() - 1;
            outcome.claims.push_back(
                {fmt::format("c = {}: at small n the partition scheme is worse, more than the others", c),
                 fmt::format(
                     "at n = {} it lies {:.0f} % above the standard scheme ({:.0f} sigma), the others at "
                     "most {:.0f} %",
                     sizes[0], 100 * partition, above_standard(1, 0), 100 * others),
                 above_standard(1, 0) > most_sigmas && partition > others, ""});
            const std::size_t last = sizes.size() - 1;
            outcome.claims.push_back(
                {fmt::format("c = {}: the difference vanishes as n grows", c),
                 fmt::format("at n = {} the partition scheme lies {:.1f} % above the standard one",
                             sizes[last], 100 * (rate[1][last].mean() / rate[0][last].mean() - 1)),
                 rate[1][last].mean() / rate[0][last].mean() - 1 < partition / 3, ""});
        }
        outcome.plots.push_back(std::move(plot));
    }
    outcome.notes.emplace_back(
        "The text does not give the figure's values of n; ours span the small ones that it discusses. As in "
        "the paper, a trial asks about 10/p non-members. The partition scheme leaves m mod k bits unused. We "
        "added triple hashing, which the paper mentions.");
    return outcome;
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
    constexpr int top = 30;
    for (const Scheme scheme : {Scheme::partition, Scheme::enhanced_square, Scheme::enhanced_cube}) {
        const std::string name(schemes::name(scheme));
        const auto observed = run_trials(plan, name, [&](Random& random) {
            return std::vector<double>{false_positives(random, scheme, n, c, k, queries)};
        });
        const Moments q = observed.of(0);
        const double expected = static_cast<double>(queries) * p;
        outcome.rows.push_back(measured(fmt::format("{}: mean of Q against 464 p", name),
                                        fmt::format("{:.4f}", expected), q, 0));
        // The error of a standard deviation: one part in sqrt(2 trials).
        outcome.rows.push_back(measured(
            fmt::format("{}: deviation of Q against sqrt(464 p (1-p))", name),
            fmt::format("{:.4f}", std::sqrt(expected * (1 - p))), q.deviation(),
            q.deviation() / std::sqrt(2.0 * static_cast<double>(q.count())), 0,
            "A little wider than a binomial distribution, because filters differ in their number of ones."));

        std::array<double, top + 1> histogram{};
        for (const auto& trial : observed.by_trial)
            histogram[static_cast<std::size_t>(std::min<double>(trial[0], top))] += 1;
        Plot plot{.name =
                      fmt::format("less-hashing-figure-2-{}", scheme == Scheme::partition ? "partition"
                                                              : scheme == Scheme::enhanced_square ? "square"
                                                                                                  : "cube"),
                  .title = fmt::format("False positives among {} queries, {} scheme, n = {}, c = {}, k = {}",
                                       queries, name, n, c, k),
                  .x_label = "Q",
                  .y_label = "trials"};
        const auto trials = static_cast<double>(plan.trials);
        Curve density{.name = "trials times the normal density, Theorem 7.2"};
        for (int i = 0; i <= 10 * top; ++i)
            density.points.push_back({i / 10.0, trials * less_hashing::false_positives_density(
                                                             i / 10.0, static_cast<double>(queries), p)});
        Curve counted{.name = "trials with Q false positives", .line = false};
        double worst = 0;
        for (int i = 0; i < top; ++i) {
            const double count = histogram[static_cast<std::size_t>(i)];
            counted.points.push_back({static_cast<double>(i), count, std::sqrt(count)});
            const double f =
                trials * less_hashing::false_positives_density(i, static_cast<double>(queries), p);
            worst = std::max(worst, std::abs(count - f) / trials);
        }
        outcome.claims.push_back(
            {fmt::format("{}: the normal density is a reasonable approximation of the histogram", name),
             fmt::format("no bin is off by more than {:.1f} % of all trials", 100 * worst), worst < 0.03,
             "Q is a count with mean 10, so its distribution is skewed against the normal one."});
        plot.curves = {density, counted};
        outcome.plots.push_back(std::move(plot));
    }
    return outcome;
}

Outcome count_min(const TrialPlan& plan) {
    struct Sketch {
        std::uint64_t width;
        std::uint32_t depth;
        double epsilon;
    };
    const auto advised = less_hashing::count_min_shape(0.05);
    const Sketch sketches[] = {{31, 2, 0.1},   {31, 3, 0.1},   {61, 2, 0.05},
                               {101, 2, 0.05}, {101, 4, 0.05}, {advised.width, advised.depth, 0.05}};
    Outcome outcome;
    std::uint64_t low = 0;
    for (const auto& s : sketches) {
        for (const bool heavy : {true, false}) {
            // Heavy: as many equal items as may each pass epsilon N alone, the hardest case for a sketch that
            // wide. Else: 2000 items, the i-th counted 1000/i + 1 times.
            const auto items = heavy ? static_cast<std::uint64_t>(std::ceil(1 / s.epsilon)) - 1 : 2000;
            const auto count_of = [heavy](std::uint64_t i) { return heavy ? 1 : 1000 / (i + 1) + 1; };
            constexpr std::uint64_t asked = 50;
            const auto stage = fmt::format("w = {}, d = {}, epsilon = {}, {}", s.width, s.depth, s.epsilon,
                                           heavy ? "few heavy items" : "Zipf");
            const auto observed = run_trials(plan, stage, [&](Random& random) {
                auto sketch = CountMin::create(s.width, s.depth, random());
                if (!sketch) return std::vector<double>{1, 1};
                std::vector<std::uint64_t> item(items + asked);
                for (auto& i : item) i = random();
                for (std::uint64_t i = 0; i < items; ++i) sketch->update(item[i], count_of(i));
                double high = 0;
                double below = 0;
                for (std::uint64_t i = 0; i < item.size(); ++i) {
                    const std::uint64_t truth = i < items ? count_of(i) : 0;
                    const std::uint64_t estimate = sketch->estimate(item[i]);
                    if (estimate < truth) below += 1;
                    // The theorem is about one item, any: non-members are the ones that all others can hit.
                    if (i >= items &&
                        static_cast<double>(estimate) >
                            static_cast<double>(truth) + s.epsilon * static_cast<double>(sketch->total()))
                        high += 1;
                }
                return std::vector<double>{high / asked, below};
            });
            const Moments high = observed.of(0);
            low += static_cast<std::uint64_t>(observed.of(1).mean() * static_cast<double>(plan.trials) + 0.5);
            const double bound =
                less_hashing::count_min_overestimate_bound(static_cast<double>(s.width), s.depth, s.epsilon);
            outcome.rows.push_back(
                only_ours(stage + ": share above a + epsilon N", high.mean(), high.standard_error()));
            outcome.claims.push_back({fmt::format("{}: Pr(est > a + epsilon N) <= {:.4g}", stage, bound),
                                      fmt::format("{:.4g} +- {:.1g}", high.mean(), high.standard_error()),
                                      high.mean() <= bound + most_sigmas * high.standard_error(), ""});
        }
    }
    outcome.claims.push_back(
        {"the estimate is never low", fmt::format("{} estimates were", low), low == 0, ""});
    outcome.claims.push_back(
        {"w >= 2e/epsilon and d >= ln(1 / (epsilon (1 - 1/2e^2))) give Pr(est > a + epsilon N) <= epsilon",
         fmt::format("for epsilon = 0.05: w = {}, d = {}, bound {:.4g}", advised.width, advised.depth,
                     less_hashing::count_min_overestimate_bound(static_cast<double>(advised.width),
                                                                advised.depth, 0.05)),
         less_hashing::count_min_overestimate_bound(static_cast<double>(advised.width), advised.depth,
                                                    0.05) <= 0.05,
         ""});
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
