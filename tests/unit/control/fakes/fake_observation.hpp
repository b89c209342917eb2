// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the programs at eth0 report: counters, heavy keys, sampled matches.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "libsieve/control/access/observation.hpp"
#include "unit/control/fakes/fake_hooks.hpp"

namespace sieve::test {

class FakeObservation : public virtual control::Observation, public virtual FakeHooks {
  public:
    // The program's samples while a listener polls, a list for each poll. After the last list, polling fails.
    std::vector<std::vector<sieve_event>> samples;
    std::uint64_t samples_lost = 0;
    std::optional<std::size_t> taken_over_after; // polls; then another listener is in place

    Result<kernel::Stats> read_stats(const kernel::Hook& hook) override { return at(hook.point).stats; }
    control::Watching watching(const kernel::Hook& hook) override {
        EXPECT_TRUE(hook.speaks_our_version());
        return at(hook.point).watching;
    }
    Result<kernel::Tally> read_tally(const kernel::Hook& hook, std::size_t most) override {
        kernel::Tally tally = at(hook.point).tally;
        if (tally.keys.size() > most) tally.keys.resize(most);
        return tally;
    }
    Status start_tally(const kernel::Hook& hook) override { return switch_tally(hook, true); }
    Status stop_tally(const kernel::Hook& hook) override { return switch_tally(hook, false); }
    Result<std::unique_ptr<control::EventStream>>
    start_events(const kernel::Hook& hook, const kernel::Sampling& sampling, VisitEvent visit) override {
        SIEVE_TRY(change("start events"));
        at(hook.point).watching.sample = sampling.sample;
        return std::make_unique<FakeEventStream>(*this, hook.point, std::move(visit));
    }

  private:
    Status switch_tally(const kernel::Hook& hook, bool on) {
        SIEVE_TRY(change(on ? "start tally" : "stop tally"));
        at(hook.point).watching.counts_keys = on;
        return {};
    }

    class FakeEventStream final : public control::EventStream {
      public:
        FakeEventStream(FakeObservation& kernel, kernel::HookPoint point, VisitEvent visit)
            : kernel_(kernel), point_(point), visit_(std::move(visit)) {}

        Status poll(int milliseconds) override {
            SIEVE_TRY(kernel_.take(milliseconds == 0 ? "drain" : "poll"));
            if (polls_ == kernel_.samples.size()) {
                if (milliseconds == 0) return {};
                return kernel_refused("reading events");
            }
            for (const sieve_event& event : kernel_.samples[polls_++])
                if (!visit_(event)) break;
            return {};
        }
        bool in_place() const override {
            return !kernel_.taken_over_after || polls_ < *kernel_.taken_over_after;
        }
        Status stop() override {
            SIEVE_TRY(kernel_.change("stop events"));
            if (in_place()) kernel_.at(point_).watching.sample = 0;
            return {};
        }
        Result<std::uint64_t> lost() const override { return kernel_.samples_lost; }

      private:
        FakeObservation& kernel_;
        kernel::HookPoint point_;
        VisitEvent visit_;
        std::size_t polls_ = 0;
    };
};

} // namespace sieve::test
