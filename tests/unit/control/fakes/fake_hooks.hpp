// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Hooks of one interface, eth0, with the tables in force there.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libsieve/control/access/hooks.hpp"
#include "libsieve/control/access/observation.hpp"
#include "unit/control/fakes/fake_steps.hpp"

namespace sieve::test {

class FakeInterfaces : public virtual control::Interfaces, public virtual FakeSteps {
  public:
    bool eth0_gone = false; // the interface was deleted
    int mtu_of_eth0 = 1500;
    // The interfaces that redirections see: packets come from eth0 and go to eth1.
    kernel::Device eth0 = ordinary_device(), eth1 = ordinary_device();
    // Interfaces besides eth0, without a program of ours. One named "gone" disappears when its hooks are
    // read.
    std::vector<std::string> more_interfaces;

    // A network card whose driver supports every feature.
    static kernel::Device ordinary_device() {
        return {.up = true,
                .carrier = true,
                .mtu = 1500,
                .link = SIEVE_LINK_ETHERNET,
                .xdp = kernel::XdpFeatures{.native = true, .sends = true, .sends_long = true},
                .unfinished_checksums = false,
                .tap = false};
    }

    Result<kernel::Interface> find_interface(const std::string& name) override {
        for (const kernel::Interface& interface : interfaces())
            if (interface.name == name && name != "gone") return interface;
        return kernel_refused("interface " + name);
    }
    std::vector<kernel::Interface> interfaces() override {
        std::vector<kernel::Interface> all;
        if (!meet("list interfaces")) return all;
        if (!eth0_gone) all.push_back({"eth0", 7});
        for (const std::string& name : more_interfaces)
            all.push_back({name, static_cast<std::uint32_t>(20 + all.size())});
        return all;
    }
    int mtu(const kernel::Interface&) override { return mtu_of_eth0; }
    Result<kernel::Device> read_device(const kernel::Interface& interface) override {
        if (interface.index == 7) return eth0;
        if (interface.index == 8) return eth1;
        return kernel_refused("interface " + interface.name);
    }
    Result<kernel::Target> find_target(const std::string& name) override {
        if (name == "eth0") return kernel::Target{SIEVE_ACTION_REDIRECT_DEVICE, 7};
        if (name == "eth1") return kernel::Target{SIEVE_ACTION_REDIRECT_DEVICE, 8};
        if (name == "cpu:3") return kernel::Target{SIEVE_ACTION_REDIRECT_CPU, 3};
        return kernel_refused("interface " + name);
    }
};

class FakeHooks : public virtual control::Hooks, public FakeInterfaces {
  public:
    // What a hook of eth0 has. A test sets it.
    struct HookContent {
        bool ours = false;
        bool foreign = false;
        bool other_version = false;
        kernel::Mode mode = kernel::Mode::native;
        std::uint32_t program = 0;
        std::vector<kernel::TcFilter> filters; // at tc
        kernel::TableInForce table;
        kernel::TableInForce returning; // while a change is on probation: what comes back
        kernel::Stats stats{};
        control::Watching watching{};
        kernel::Tally tally{};
    };
    HookContent running;                            // at XDP
    std::map<kernel::HookPoint, HookContent> at_tc; // at the other hooks
    bool notes = false;                             // the program that notes flows is attached to eth0
    std::vector<kernel::HookPoint> points;          // that hooks were read at

    [[nodiscard]] HookContent& at(kernel::HookPoint point) {
        return point == kernel::HookPoint::xdp ? running : at_tc[point];
    }
    [[nodiscard]] bool any_hook(const std::function<bool(const HookContent&)>& is) const {
        return is(running) || std::ranges::any_of(at_tc, [&](const auto& one) { return is(one.second); });
    }

    // Puts a set in force as if it had always been there.
    kernel::SetInForce& put(const std::string& name, sieve_action action = SIEVE_ACTION_DROP,
                            bool verified = false) {
        running.ours = true;
        if (running.program == 0) running.program = 40;
        const auto id = static_cast<std::uint32_t>(100 + running.table.sets.size());
        running.table.sets.push_back({.name = name,
                                      .action = action,
                                      .target = 0,
                                      .slot = static_cast<std::uint32_t>(running.table.sets.size()),
                                      .map_id = id,
                                      .exact_id = verified ? id + 50 : 0,
                                      .baseline = {},
                                      .verified_baseline = {}});
        return running.table.sets.back();
    }

    Result<control::Held> hold_lock(std::chrono::milliseconds,
                                    const std::function<void(const std::string&)>& waiting) override {
        if (Status free = take("lock"); !free) {
            waiting("process 1 (other)");
            return failure(free.error().kind, "process 1 (other) is at work");
        }
        EXPECT_FALSE(held_) << "the lock is taken twice";
        held_ = true;
        return control::Held(this, [this](const void*) {
            held_ = false;
            steps.emplace_back("unlock");
        });
    }

    Result<kernel::Hook> read_hook(const kernel::Interface& interface, kernel::HookPoint point) override {
        points.push_back(point);
        kernel::Hook hook;
        hook.interface = interface;
        hook.point = point;
        if (interface.name == "gone" || (eth0_gone && interface.name == "eth0"))
            return kernel_refused("reading the hook of an interface that is gone");
        SIEVE_TRY(meet("read hook"));
        if (interface.name != "eth0") return hook;
        const HookContent& there = at(point);
        hook.mode = there.mode;
        hook.filters = there.filters;
        const auto program = [&](const char* name) {
            return kernel::Program{.id = there.program, .name = name, .fd = UniqueFd()};
        };
        if (there.foreign) hook.attached = program("foreigner");
        if (there.ours) {
            hook.attached = program("xdp_sieve");
            hook.ours = program("xdp_sieve");
            if (there.other_version) hook.other_version = "it speaks version 1";
        }
        return hook;
    }
    Result<bool> has_program(std::uint32_t id) override {
        SIEVE_TRY(meet("find program"));
        return any_hook([id](const HookContent& one) { return one.ours && one.program == id; });
    }
    kernel::TableInForce read_table(const kernel::Hook& hook) override {
        EXPECT_TRUE(hook.speaks_our_version());
        return at(hook.point).table;
    }
    std::optional<kernel::TableInForce> read_returning(const kernel::Hook& hook) override {
        HookContent& there = at(hook.point);
        return there.table.probation ? std::optional(there.returning) : std::nullopt;
    }
    Status replace_table(const kernel::Hook& hook, const kernel::WantedTable& table) override {
        EXPECT_TRUE(hook.speaks_our_version());
        HookContent& there = at(hook.point);
        if (there.table.probation) return failure(ErrorKind::unconfirmed, "a change is on probation");
        Status done = change("replace");
        if (!is_done(done)) return done;
        kernel::TableInForce now = live(table, hook.point);
        there.returning = std::exchange(there.table, std::move(now));
        return done;
    }
    Status leave_joint_on_probation(const kernel::Hook& hook, std::uint32_t map_id) override {
        HookContent& there = at(hook.point);
        EXPECT_TRUE(there.table.probation);
        SIEVE_TRY(change("leave joint"));
        for (kernel::TableInForce* const table : {&there.table, &there.returning})
            for (kernel::SetInForce& set : table->sets)
                if (set.map_id == map_id) set.joined.reset();
        return {};
    }
    Status end_probation(const kernel::Hook& hook, bool keep) override {
        EXPECT_TRUE(at(hook.point).table.probation);
        Status done = change(keep ? "confirm" : "take back");
        HookContent& there = at(hook.point);
        if (!is_done(done)) return done;
        if (!keep) there.table = there.returning;
        there.table.probation.reset();
        return done;
    }
    Status detach(const kernel::Hook& hook) override {
        EXPECT_TRUE(hook.ours);
        Status done = change("detach");
        if (is_done(done)) at(hook.point) = {};
        return done;
    }

  protected:
    static std::uint32_t id_of(int fd) { return static_cast<std::uint32_t>(fd + 1000); }

    // What the real table makes of the wanted one.
    [[nodiscard]] kernel::TableInForce live(const kernel::WantedTable& wanted,
                                            kernel::HookPoint point = kernel::HookPoint::xdp) {
        const HookContent& there = at(point);
        kernel::TableInForce table;
        table.default_action = wanted.default_action;
        table.unreadable = wanted.unreadable;
        table.replies = wanted.replies;
        EXPECT_TRUE(wanted.replies == SIEVE_ACTION_DROP || notes || there.table.replies == SIEVE_ACTION_PASS)
            << "replies pass, and nobody notes flows";
        if (wanted.probation.count() != 0) table.probation = wanted.probation;
        table.baseline = wanted.reset_counters ? kernel::totals_of(there.stats) : there.table.baseline;
        for (const kernel::WantedSet& set : wanted.sets) {
            const kernel::SetInForce* before = there.table.find(set.name);
            kernel::SetInForce now = before != nullptr ? *before : kernel::SetInForce{};
            EXPECT_TRUE(before != nullptr || set.map_fd >= 0) << set.name;
            now.name = set.name;
            now.action = set.action;
            now.target = set.target;
            now.burst = set.burst;
            now.keeps_replies_out = set.keeps_replies_out;
            now.condition = set.condition;
            now.slot = static_cast<std::uint32_t>(table.sets.size());
            // A slot that no packet has used has counted something once.
            if (set.fresh_counters) now.baseline.packets += 1'000'000;
            if (wanted.reset_counters) {
                now.baseline = there.stats.hit[now.slot];
                now.verified_baseline = there.stats.verified[now.slot];
            }
            if (set.map_fd >= 0) {
                now.map_id = id_of(set.map_fd);
                now.exact_id = set.exact_fd >= 0 ? id_of(set.exact_fd) : 0;
                if (!set.keep_inserted) now.inserted_id = 0;
            }
            if (set.inserted_fd >= 0) now.inserted_id = id_of(set.inserted_fd);
            table.sets.push_back(now);
        }
        const auto numbers = kernel::joined_numbers(wanted, there.table);
        for (std::size_t i = 0; i < numbers.size(); i++) table.sets[i].joined = numbers[i];
        if (std::ranges::any_of(numbers, [](const auto& number) { return number.has_value(); }))
            table.joint_id = wanted.joint ? id_of(wanted.joint->map_fd) : there.table.joint_id;
        return table;
    }
};

} // namespace sieve::test
