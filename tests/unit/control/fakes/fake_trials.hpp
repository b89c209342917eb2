// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Filters on their way to the hooks of eth0, and copies of the program.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libsieve/control/access/trials.hpp"
#include "unit/control/fakes/fake_filters.hpp"
#include "unit/control/fakes/fake_hooks.hpp"

namespace sieve::test {

class FakeTrials : public virtual control::Trials, public virtual FakeHooks, public virtual FakeFilters {
  public:
    std::uint64_t replay_hits = 0; // slots of the sets that every replayed packet matches
    std::vector<kernel::AttachOptions> attached_with;
    std::optional<bool> with_frags; // of the last trial
    std::shared_ptr<int> open_maps = std::make_shared<int>(0);

    // Makes this the joint filter of the table at XDP, for its first sets.
    void put_joint(const JointFilter& joint) {
        running.table.joint_id = 900;
        put_filter(900, joint.lines());
        for (std::uint32_t number = 0; number < joint.sets(); number++)
            running.table.sets.at(number).joined = number;
    }

    Status may_load_programs() override { return meet("load programs"); }
    void expect_to_attach() override {}

    Result<control::SetMaps> bring_in(const Image& image, const std::vector<sieve_key>* exact,
                                      const std::string& name, std::uint64_t coming) override {
        SIEVE_TRY(take("bring in " + name));
        const int fd = next_fd_++;
        put_filter(id_of(fd), image);
        ++*open_maps;
        const int exact_fd = exact != nullptr ? next_fd_++ : -1;
        if (exact != nullptr) put_exact(id_of(exact_fd), *exact, coming + exact->size() / 2 + 1024);
        return control::SetMaps{
            .filter_fd = fd,
            .filter_id = id_of(fd),
            .exact_fd = exact_fd,
            .exact_bytes = exact != nullptr ? exact->size() * 100 : 0,
            .owner = std::shared_ptr<const void>(this, [open = open_maps](const void*) { --*open; })};
    }
    Result<control::SetMaps> bring_in_joint(kernel::HookPoint, const JointFilter& joint,
                                            std::span<const kernel::JoinedSet> sets) override {
        std::string step = "bring in joint of";
        for (const kernel::JoinedSet& set : sets) {
            step += " " + set.name;
            EXPECT_FALSE(set.members.empty());
        }
        steps.push_back(step);
        EXPECT_EQ(joint.sets(), sets.size());
        SIEVE_TRY(meet("test joint"));
        const int fd = next_fd_++;
        put_filter(id_of(fd), joint.lines());
        return control::SetMaps{.filter_fd = fd, .filter_id = id_of(fd)};
    }

    Result<std::unique_ptr<control::Trial>> start_trial(kernel::HookPoint, bool frags,
                                                        const MakeSets& make) override {
        SIEVE_TRY(take("trial"));
        with_frags = frags;
        SIEVE_ASSIGN(const std::vector<const control::ReadySet*> sets, make());
        std::vector<std::string> names;
        std::map<std::uint32_t, std::uint32_t> ids;
        for (const control::ReadySet* set : sets) {
            ids[static_cast<std::uint32_t>(names.size())] = set->maps.filter_id;
            names.push_back(set->name);
        }
        return std::make_unique<FakeTrial>(*this, std::move(names), std::move(ids));
    }
    Result<std::unique_ptr<control::Replayer>> start_replay(kernel::HookPoint,
                                                            const kernel::WantedTable& table) override {
        SIEVE_TRY(take("replay"));
        return std::make_unique<FakeReplayer>(live(table), replay_hits);
    }

  private:
    class FakeTrial final : public control::Trial {
      public:
        FakeTrial(FakeTrials& kernel, std::vector<std::string> names,
                  std::map<std::uint32_t, std::uint32_t> ids)
            : kernel_(kernel), names_(std::move(names)), ids_(std::move(ids)) {}

        Result<kernel::PreflightReport> test(std::uint32_t slot, const control::ReadySet& set) override {
            EXPECT_EQ(names_[slot], set.name);
            kernel_.steps.push_back("test " + set.name);
            SIEVE_TRY(kernel_.meet("test"));
            SIEVE_TRY(kernel_.meet("test " + set.name));
            return kernel::PreflightReport{.members = 1};
        }
        Result<bool> matches(std::uint32_t slot, bool, const sieve_key& key, std::uint32_t) override {
            SIEVE_TRY(kernel_.take("ask " + std::to_string(slot)));
            return kernel_.holds(ids_.at(slot), key);
        }
        Status include(std::uint32_t slot, std::uint32_t map_id, std::uint32_t) override {
            ids_[slot] = map_id;
            return {};
        }
        Status use(const control::ReadyReplies&) override { return {}; }
        Result<kernel::Attached> go_live(const kernel::Hook& before, const kernel::WantedTable& table,
                                         const kernel::AttachOptions& options) override {
            SIEVE_TRY(kernel::may_attach(before, options.force));
            SIEVE_TRY(kernel_.change("attach"));
            kernel_.attached_with.push_back(options);
            HookContent& there = kernel_.at(before.point);
            there = {.ours = true, .program = 41, .table = kernel_.live(table, before.point)};
            if (options.mode == kernel::ModeChoice::skb) there.mode = kernel::Mode::skb;
            SIEVE_ASSIGN(kernel::Hook now, kernel_.read_hook(before.interface, before.point));
            return kernel::Attached{.hook = std::move(now), .frags = false, .remarks = {"attached alone"}};
        }

      private:
        FakeTrials& kernel_;
        std::vector<std::string> names_;
        std::map<std::uint32_t, std::uint32_t> ids_; // of the filters, by slot
    };

    class FakeReplayer final : public control::Replayer {
      public:
        FakeReplayer(kernel::TableInForce table, std::uint64_t hits)
            : table_(std::move(table)), hits_(hits) {}
        Result<kernel::Replayed> run(std::span<const std::uint8_t>) override {
            kernel::Replayed replayed;
            replayed.trace.hits = hits_;
            return replayed;
        }
        const kernel::TableInForce& table() const override { return table_; }

      private:
        kernel::TableInForce table_;
        std::uint64_t hits_;
    };

    int next_fd_ = 10;
};

} // namespace sieve::test
