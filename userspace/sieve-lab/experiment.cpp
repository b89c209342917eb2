// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sieve::lab {

using experiments::Moments;

bool stands(const Outcome& outcome) {
    return std::none_of(outcome.rows.begin(), outcome.rows.end(),
                        [](const Row& row) { return row.verdict == Verdict::differs; }) &&
           std::all_of(outcome.claims.begin(), outcome.claims.end(),
                       [](const Claim& claim) { return claim.holds || !claim.explanation.empty(); });
}

const std::vector<Experiment>& all_experiments() {
    static const std::vector<Experiment> all = [] {
        std::vector<Experiment> list;
        for (auto part : {two_choice_experiments(), less_hashing_experiments(), bloom_analysis_experiments(),
                          d_left_experiments(), one_plus_alpha_experiments(), xorsat_experiments(),
                          exact_experiments(), security_experiments()})
            std::move(part.begin(), part.end(), std::back_inserter(list));
        return list;
    }();
    return all;
}

Outcome run(const Experiment& experiment, std::optional<std::uint64_t> trials, bool full,
            experiments::TrialPlan plan) {
    plan.trials = experiment.trials == 0 ? 0
                  : trials               ? *trials
                  : full                 ? experiment.full_trials
                                         : experiment.trials;
    Outcome outcome = experiment.run(plan);
    outcome.name = experiment.name;
    outcome.trials = plan.trials;
    outcome.full_trials = experiment.full_trials;
    outcome.seed = plan.seed;
    return outcome;
}

Row computed(std::string quantity, std::string_view published, double ours, std::string explanation) {
    return measured(std::move(quantity), published, ours, 0, 0, std::move(explanation));
}

Row measured(std::string quantity, std::string_view published, const Moments& ours,
             std::uint64_t published_trials, std::string explanation) {
    const double published_error =
        published_trials > 0 ? ours.deviation() / std::sqrt(static_cast<double>(published_trials)) : 0;
    return measured(std::move(quantity), published, ours.mean(), ours.standard_error(), published_error,
                    std::move(explanation));
}

Row measured(std::string quantity, std::string_view published, double ours, double standard_error,
             double published_error, std::string explanation) {
    Row row{.quantity = std::move(quantity),
            .published = std::string(published),
            .ours = ours,
            .standard_error = standard_error,
            .explanation = std::move(explanation)};
    row.sigma = experiments::sigmas(experiments::printed(published), ours, standard_error, published_error);
    row.verdict = std::abs(row.sigma) <= most_sigmas ? Verdict::agrees
                  : row.explanation.empty()          ? Verdict::differs
                                                     : Verdict::explained;
    return row;
}

Row only_ours(std::string quantity, double ours, double standard_error, std::string explanation) {
    return {.quantity = std::move(quantity),
            .published = {},
            .ours = ours,
            .standard_error = standard_error,
            .explanation = std::move(explanation)};
}

} // namespace sieve::lab
