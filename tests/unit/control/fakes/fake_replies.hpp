// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The flow memory, and the program that notes flows at eth0.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "libsieve/control/access/replies.hpp"
#include "unit/control/fakes/fake_hooks.hpp"

namespace sieve::test {

class FakeReplies : public virtual control::Replies, public virtual FakeHooks {
  public:
    std::uint64_t memory_flows = 0;             // of the flow memory; 0: there is none
    std::vector<kernel::TcFilter> before_notes; // filters that are asked before the noting program

    Result<std::unique_ptr<control::ReadyReplies>> ready_replies(const kernel::Interface&,
                                                                 const control::WantedFlows& flows) override {
        EXPECT_TRUE(held_) << "replies are made ready without the lock";
        if (memory_flows != 0 && flows.most && !flows.if_new && *flows.most != memory_flows)
            return invalid_request("the flow memory has another size");
        control::RepliesMade made{.max_flows = memory_flows != 0 ? memory_flows : flows.most.value_or(1000),
                                  .memory_made = memory_flows == 0};
        const bool comes = !notes;
        if (comes) {
            SIEVE_TRY(take("attach notes"));
            SIEVE_TRY(take("seed"));
            made.seeded = 3;
        }
        notes = true;
        memory_flows = made.max_flows;
        return std::make_unique<Ready>(*this, made, comes);
    }
    Status end_replies(const kernel::Interface&) override {
        EXPECT_TRUE(held_) << "replies end without the lock";
        if (!notes || any_hook([](const HookContent& one) {
                return one.ours && (one.table.replies == SIEVE_ACTION_PASS || one.table.probation);
            }))
            return {};
        SIEVE_TRY(take("detach notes"));
        notes = false;
        memory_flows = 0;
        return {};
    }
    Result<control::RepliesState> read_replies(const kernel::Hook&) override {
        control::RepliesState state{.noting = notes, .before = before_notes};
        if (memory_flows != 0)
            state.memory = kernel::FlowMemoryFacts{.max_flows = memory_flows, .entries = 1};
        return state;
    }
    Result<bool> is_reply(const kernel::Hook&, const sieve_key&) override { return false; }

  private:
    class Ready final : public control::ReadyReplies {
      public:
        Ready(FakeReplies& kernel, control::RepliesMade made, bool brought)
            : kernel_(kernel), made_(made), brought_(brought) {}
        Ready(const Ready&) = delete;
        Ready& operator=(const Ready&) = delete;
        ~Ready() override {
            if (!brought_) return;
            kernel_.steps.emplace_back("detach notes");
            kernel_.notes = false;
            if (made_.memory_made) kernel_.memory_flows = 0;
        }
        const control::RepliesMade& made() const override { return made_; }
        Status serve(const kernel::Hook& hook) override {
            EXPECT_TRUE(hook.speaks_our_version());
            return {};
        }
        void keep() override {
            if (std::exchange(brought_, false)) kernel_.steps.emplace_back("learn");
        }

      private:
        FakeReplies& kernel_;
        control::RepliesMade made_;
        bool brought_;
    };
};

} // namespace sieve::test
