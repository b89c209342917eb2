// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/timed_kernel.hpp"

#include <chrono>
#include <memory>
#include <utility>

namespace sieve::service::watching {

namespace {

using Steady = std::chrono::steady_clock;

class TimedTrial final : public control::Trial {
  public:
    TimedTrial(std::unique_ptr<control::Trial> trial, Statistics& statistics)
        : trial_(std::move(trial)), statistics_(&statistics) {}

    Result<kernel::PreflightReport> test(std::uint32_t slot, const control::ReadySet& set) override {
        const auto begin = Steady::now();
        auto report = trial_->test(slot, set);
        statistics_->note_test(set.name, Steady::now() - begin);
        return report;
    }
    Result<bool> matches(std::uint32_t slot, bool verified, const sieve_key& key,
                         std::uint32_t fields) override {
        return trial_->matches(slot, verified, key, fields);
    }
    Status include(std::uint32_t slot, std::uint32_t map_id, std::uint32_t exact_id) override {
        return trial_->include(slot, map_id, exact_id);
    }
    Status use(const control::ReadyReplies& replies) override { return trial_->use(replies); }
    Result<kernel::Attached> go_live(const kernel::Hook& before, const kernel::WantedTable& table,
                                     const kernel::AttachOptions& options) override {
        const auto begin = Steady::now();
        auto attached = trial_->go_live(before, table, options);
        if (attached) statistics_->note_swap({before.interface.name, before.point}, Steady::now() - begin);
        return attached;
    }

  private:
    std::unique_ptr<control::Trial> trial_;
    Statistics* statistics_;
};

} // namespace

Result<std::unique_ptr<control::Trial>> TimedKernel::start_trial(kernel::HookPoint point, bool frags,
                                                                 const MakeSets& make) {
    SIEVE_ASSIGN(std::unique_ptr<control::Trial> trial, RealKernel::start_trial(point, frags, make));
    return std::unique_ptr<control::Trial>(std::make_unique<TimedTrial>(std::move(trial), *statistics_));
}

Status TimedKernel::replace_table(const kernel::Hook& hook, const kernel::WantedTable& table) {
    const auto begin = Steady::now();
    Status done = RealKernel::replace_table(hook, table);
    if (done || done.error().kind == ErrorKind::unfinished)
        statistics_->note_swap({hook.interface.name, hook.point}, Steady::now() - begin);
    return done;
}

} // namespace sieve::service::watching
