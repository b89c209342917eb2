// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Runs independent trials on all cores. The result does not depend on the number of cores.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "libsieve/util/parallel/progress.hpp"
#include "sieve-lab/simulations/random.hpp"
#include "sieve-lab/simulations/statistics.hpp"

namespace sieve::experiments {

/// What a run of trials needs to know.
struct TrialPlan {
    std::uint64_t trials = 1;
    std::uint64_t seed = 1;
    unsigned threads = 0; ///< 0: as many as processors
    Progress progress{};  ///< may be empty
};

/// One trial: its observations, always equally many, in the same order.
using Trial = std::function<std::vector<double>(Random&)>;

/// The observations of all trials.
struct Observations {
    std::vector<std::vector<double>> by_trial;

    /// Mean and spread of observation `i`, summed in the order of the trials.
    Moments of(std::size_t i) const;
    /// Mean and spread of a function of a trial's observations, such as a difference of two that share their
    /// keys.
    Moments of(const std::function<double(const std::vector<double>&)>& value) const;
};

/// Runs the trials. The random numbers of trial t depend only on (seed, stage, t). `stage` names the work for
/// the progress bar and keeps the random numbers of different stages apart.
Observations run_trials(const TrialPlan& plan, std::string_view stage, const Trial& trial);

} // namespace sieve::experiments
