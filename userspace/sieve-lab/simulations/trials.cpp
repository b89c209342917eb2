// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/simulations/trials.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace sieve::experiments {

Moments Observations::of(std::size_t i) const {
    return of([i](const std::vector<double>& observed) { return observed.at(i); });
}

Moments Observations::of(const std::function<double(const std::vector<double>&)>& value) const {
    Moments moments;
    for (const auto& observed : by_trial) moments.add(value(observed));
    return moments;
}

namespace {

/// FNV-1a: what the stage contributes to a trial's seed.
std::uint64_t hash_text(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

} // namespace

Observations run_trials(const TrialPlan& plan, std::string_view stage, const Trial& trial) {
    Observations result;
    result.by_trial.resize(plan.trials);
    const std::uint64_t stage_seed = mix(plan.seed ^ hash_text(stage));

    std::atomic<std::uint64_t> next = 0;
    std::mutex mutex; // guards done, failure and progress
    std::uint64_t done = 0;
    std::exception_ptr failure;
    const auto work = [&] {
        try {
            for (std::uint64_t t = next++; t < plan.trials; t = next++) {
                Random random(mix(stage_seed + t));
                result.by_trial[t] = trial(random);
                const std::scoped_lock lock(mutex);
                ++done;
                if (plan.progress)
                    plan.progress(stage, static_cast<double>(done) / static_cast<double>(plan.trials));
            }
        } catch (...) {
            const std::scoped_lock lock(mutex);
            if (!failure) failure = std::current_exception();
            next = plan.trials;
        }
    };

    const unsigned wanted =
        plan.threads > 0 ? plan.threads : std::max(1U, std::thread::hardware_concurrency());
    const auto threads = static_cast<unsigned>(std::min<std::uint64_t>(wanted, plan.trials));
    if (threads <= 1) {
        work();
    } else {
        std::vector<std::jthread> pool;
        for (unsigned i = 0; i < threads; ++i) pool.emplace_back(work);
    }
    if (failure) std::rethrow_exception(failure);
    return result;
}

} // namespace sieve::experiments
