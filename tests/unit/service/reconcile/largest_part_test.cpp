// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A hook that refuses a table gets what it takes of it: what one set, or the default, is to blame for keeps
// no other set out, and holds up no other list.
#include "libsieve/service/reconcile/largest_part.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/service/reconcile/cycle.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"
#include "unit/service/in_process.hpp"
#include "unit/service/lists.hpp"

namespace sieve::service {
namespace {

using test::FakeKernel;
using test::Files;

// Friends who pass, and then foes who are dropped. An administrator is connected through eth0.
class LargestPart : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    test::FakeHost host;
    Configuration configuration;
    StateDirectory state =
        StateDirectory::open(files.path("state"), std::chrono::milliseconds(0), {}).value();

    LargestPart() {
        configuration.interfaces.push_back({.name = "eth0", .sets = {"friends", "foes"}});
        add("friends", SIEVE_ACTION_PASS, {"203.0.113.0/24"});
        add("foes", SIEVE_ACTION_DROP, {"192.0.2.1", "198.51.100.0/24"});
        host.addresses = {test::host_address("203.0.113.5", "an administrator's session (TCP port 22)")};
        host.addresses[0].role = control::HostRole::session;
        host.addresses[0].interface = "eth0";
    }
    void add(const std::string& name, sieve_action action, const std::vector<std::string>& entries) {
        SetConfiguration set;
        set.name = name;
        set.sources = {FileSpec{files.feed(name, entries)}};
        set.feed = Files::quick();
        set.action = control::WantedAction{action, {}};
        configuration.sets.push_back(std::move(set));
    }
    CycleReport run(CycleOptions options = {.on_failure = OnFailure::go_on}) {
        options.sandbox = test::in_process();
        auto report = run_cycle(kernel, configuration, state, host, options, {});
        if (!report) throw std::runtime_error(report.error().message);
        return std::move(*report);
    }
    // The names of the sets in force, in their order.
    [[nodiscard]] std::vector<std::string> in_force(kernel::HookPoint point = kernel::HookPoint::xdp) {
        std::vector<std::string> names;
        for (const kernel::SetInForce& set : kernel.at(point).table.sets) names.push_back(set.name);
        return names;
    }
    [[nodiscard]] std::uint32_t map_of(const std::string& set) const {
        const kernel::SetInForce* found = kernel.running.table.find(set);
        return found == nullptr ? 0 : found->map_id;
    }
};

using Names = std::vector<std::string>;

// An interface that is not there, say, or one that is down.
TEST_F(LargestPart, ASetWithoutATargetKeepsNoOtherOut) {
    host.addresses.clear();
    configuration.sets[0].action = control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, "eth9"};
    const CycleReport first = run();
    EXPECT_EQ(in_force(), Names{"foes"});
    EXPECT_EQ(first.sets[1].outcome, SetOutcome::replaced);
    EXPECT_EQ(first.sets[0].outcome, SetOutcome::failed);
    EXPECT_FALSE(first.sets[0].last_good) << "a list that is nowhere in force is no good list yet";
    EXPECT_FALSE(first.hooks[0].error);
    expect_says(first.hooks[0].trouble());
    // A person who applies it is told, and nothing changes.
    kernel.steps.clear();
    const auto applied = run_cycle(kernel, configuration, state, host, {.sandbox = test::in_process()}, {});
    expect_error(applied, ErrorKind::kernel_refused);
    EXPECT_FALSE(kernel.changed());

    configuration.sets[0].action->target = "eth1";
    EXPECT_EQ(run().hooks[0].trouble(), "");
    EXPECT_EQ(in_force(), (Names{"friends", "foes"}));
}

// What a set does already, it goes on doing.
TEST_F(LargestPart, ATargetThatGoesHoldsUpNoOtherList) {
    host.addresses.clear();
    configuration.sets[0].action = control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, "eth1"};
    run();
    const std::uint32_t friends = map_of("friends"), foes = map_of("foes");
    configuration.sets[0].action->target = "eth9";
    files.feed("friends", {"203.0.113.0/25"});
    files.feed("foes", {"192.0.2.7", "198.51.100.0/24"});
    const CycleReport report = run();
    EXPECT_EQ(map_of("friends"), friends);
    EXPECT_NE(map_of("foes"), foes);
    EXPECT_EQ(report.sets[0].outcome, SetOutcome::failed);
    EXPECT_EQ(report.sets[1].outcome, SetOutcome::replaced);
}

TEST_F(LargestPart, AListThatLocksOutHoldsUpNoOtherList) {
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    run();
    const std::uint32_t friends = map_of("friends"), foes = map_of("foes");
    files.feed("friends", {"203.0.113.128/25"});
    files.feed("foes", {"192.0.2.7", "198.51.100.0/24"});
    const CycleReport report = run();
    EXPECT_EQ(map_of("friends"), friends);
    EXPECT_NE(map_of("foes"), foes);
    EXPECT_EQ(report.sets[0].outcome, SetOutcome::refused);
    EXPECT_EQ(report.sets[0].guard, Guard::lockout);
    EXPECT_EQ(report.sets[1].outcome, SetOutcome::replaced);
    expect_says(report.hooks[0].trouble());
}

// The table as a whole stays: its default, its order, and the sets that were to go.
TEST_F(LargestPart, ADefaultThatLocksOutHoldsUpNoList) {
    files.feed("friends", {"203.0.113.128/25"});
    run();
    add("more", SIEVE_ACTION_DROP, {"192.0.2.9"});
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    configuration.interfaces[0].unreadable = SIEVE_ACTION_PASS;
    configuration.interfaces[0].sets = {"more", "friends"};
    files.feed("friends", {"203.0.113.192/26"});
    const std::uint32_t friends = map_of("friends");
    const CycleReport report = run();
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_PASS);
    EXPECT_EQ(kernel.running.table.unreadable, SIEVE_ACTION_DROP);
    EXPECT_EQ(in_force(), (Names{"more", "friends", "foes"}));
    EXPECT_NE(map_of("friends"), friends);
    EXPECT_FALSE(report.hooks[0].plan.default_waits()) << "it does not wait for a list";
    expect_says(report.hooks[0].trouble());
    EXPECT_FALSE(run().changed);
    // Now it locks nobody out.
    files.feed("friends", {"203.0.113.0/24"});
    EXPECT_EQ(run().hooks[0].trouble(), "");
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_DROP);
    EXPECT_EQ(in_force(), (Names{"more", "friends"}));
}

// Behind a set that is to pass and does not, no set begins to take packets, and the default does not.
TEST_F(LargestPart, FriendsWhoAreHeldBackKeepOutWhatWouldDropThem) {
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    configuration.interfaces[0].sets = {"seen", "friends", "foes"};
    add("seen", SIEVE_ACTION_COUNT, {"192.0.2.1"});
    kernel.refuse("test friends", ErrorKind::bad_input);
    const CycleReport report = run();
    EXPECT_EQ(in_force(), Names{"seen"});
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_PASS);
    ASSERT_EQ(report.hooks[0].plan.waiting.size(), 2U);
    EXPECT_EQ(report.hooks[0].plan.waiting[0].name, "friends");
    EXPECT_EQ(report.hooks[0].plan.waiting[1].behind, "friends");
    EXPECT_EQ(report.sets[0].outcome, SetOutcome::failed);
    EXPECT_EQ(report.sets[1].outcome, SetOutcome::replaced) << "it only waits";
    kernel.allow("test friends");
    run();
    EXPECT_EQ(in_force(), (Names{"seen", "friends", "foes"}));
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_DROP);
}

// A set that drops goes on doing so while its new action is held back, and so does what is behind it.
TEST_F(LargestPart, FoesWhoAreNotFriendsYetKeepTheDefault) {
    configuration.sets[0].action = control::WantedAction{SIEVE_ACTION_DROP, {}};
    host.addresses.clear();
    run();
    configuration.sets[0].action = control::WantedAction{SIEVE_ACTION_PASS, {}};
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    files.feed("friends", {"203.0.113.0/25"});
    kernel.refuse("test friends", ErrorKind::bad_input);
    EXPECT_EQ(run().sets[0].outcome, SetOutcome::failed);
    EXPECT_EQ(kernel.running.table.sets[0].action, SIEVE_ACTION_DROP);
    EXPECT_EQ(kernel.running.table.default_action, SIEVE_ACTION_PASS);
}

// Another hook has the list in force, so it is the last good one, and this one gets it later.
TEST_F(LargestPart, WhatOneHookHoldsBackComesLater) {
    configuration.interfaces.push_back(
        {.name = "eth0", .hook = kernel::HookPoint::ingress, .sets = {"friends"}});
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    run();
    kernel.at(kernel::HookPoint::ingress).program = 77;
    run();
    const std::uint32_t friends = map_of("friends");
    files.feed("friends", {"203.0.113.128/25"});
    EXPECT_EQ(run().sets[0].outcome, SetOutcome::replaced);
    EXPECT_EQ(map_of("friends"), friends);
    host.addresses.clear(); // the session is over
    const CycleReport report = run({.ask = Ask::nothing, .on_failure = OnFailure::go_on});
    EXPECT_NE(map_of("friends"), friends);
    EXPECT_EQ(report.hooks[0].trouble(), "");
}

// What it drops would pass.
TEST_F(LargestPart, ASetStaysWhereTheOneThatReplacesItIsHeldBack) {
    host.addresses.clear();
    const kernel::HookPoint ingress = kernel::HookPoint::ingress;
    configuration.interfaces.push_back({.name = "eth0", .hook = ingress, .sets = {"foes"}});
    run();
    SetConfiguration& set = configuration.sets[1];
    set.name = "enemies";
    set.sources.emplace_back(FileSpec{files.path("more")});
    for (InterfaceConfiguration& entry : configuration.interfaces) entry.sets.back() = "enemies";
    kernel.at(ingress).program = 77; // cannot be looked at now
    run();
    EXPECT_EQ(in_force(), (Names{"friends", "foes"}));
    files.feed("more", {"192.0.2.9"});
    set.action = control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, "eth9"};
    run();
    EXPECT_EQ(in_force(), (Names{"friends", "foes"}));
    set.action->target = "eth1";
    run();
    EXPECT_EQ(in_force(), (Names{"friends", "enemies"}));
}

// One hook takes the new set, and another has no room for it.
TEST_F(LargestPart, ASetStaysOnTheHookThatRefusesTheOneThatReplacesIt) {
    const kernel::HookPoint ingress = kernel::HookPoint::ingress;
    configuration.interfaces.push_back({.name = "eth0", .hook = ingress, .sets = {"foes"}});
    run();
    SetConfiguration& set = configuration.sets[1];
    set.name = "enemies";
    set.sources.emplace_back(FileSpec{files.feed("more", {"192.0.2.9"})});
    for (InterfaceConfiguration& entry : configuration.interfaces) entry.sets.back() = "enemies";
    kernel.before("test enemies", [&](const std::string&) -> Status {
        if (map_of("enemies") == 0) return {};
        return failure(ErrorKind::out_of_memory, "no room");
    });
    for (int i = 0; i < 3; i++) { // the record of the former set is still there
        const CycleReport report = run();
        EXPECT_EQ(report.sets[1].outcome, i == 0 ? SetOutcome::replaced : SetOutcome::unchanged);
        EXPECT_EQ(in_force(), (Names{"friends", "enemies"}));
        EXPECT_EQ(in_force(ingress), Names{"foes"});
        EXPECT_NE(report.hooks[1].trouble(), "");
    }
    kernel.allow("test enemies");
    EXPECT_EQ(run().hooks[1].trouble(), "");
    EXPECT_EQ(in_force(ingress), Names{"enemies"});
    EXPECT_FALSE(state.named("foes"));
}

// Somebody else is at work, or the program is not ours any more: no part of the table would fare better.
TEST_F(LargestPart, SomeErrorsAreNobodys) {
    run();
    files.feed("foes", {"192.0.2.7", "198.51.100.0/24"});
    files.feed("friends", {"203.0.113.0/25"});
    kernel.refuse("replace", ErrorKind::changed_meanwhile);
    kernel.steps.clear();
    const CycleReport report = run();
    ASSERT_TRUE(report.hooks[0].error);
    EXPECT_EQ(report.hooks[0].error->kind, ErrorKind::changed_meanwhile);
    EXPECT_EQ(kernel.count("trial"), 1U);
}

} // namespace
} // namespace sieve::service
