// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/apply.hpp"

#include <gtest/gtest.h>

#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;

class Apply : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;

    TableSpec table(std::vector<SetSpec> sets) const {
        TableSpec spec;
        spec.interface = "eth0";
        spec.sets = std::move(sets);
        spec.replace = true;
        return spec;
    }
    SetSpec bad() const { return Files::set("bad", files.feed("bad", {"192.0.2.1"})); }

    // Expects an error of that kind, and that nothing was changed, loaded or left behind.
    Error refused(const TableSpec& spec, ErrorKind kind, bool before_any_work = true) {
        const auto applied = apply(kernel, spec, {});
        EXPECT_FALSE(applied);
        if (applied) return {};
        EXPECT_EQ(applied.error().kind, kind) << applied.error().message;
        EXPECT_FALSE(kernel.changed());
        EXPECT_EQ(kernel.count("trial"), before_any_work ? 0U : 1U);
        EXPECT_EQ(*kernel.open_maps, 0);
        return applied.error();
    }
};

TEST_F(Apply, AttachesWhereNothingRuns) {
    const auto applied = apply(kernel, table({bad()}), {});
    ASSERT_TRUE(applied) << applied.error().message;
    EXPECT_TRUE(applied->attached_now);
    EXPECT_EQ(applied->remarks, std::vector<std::string>{"attached alone"});
    EXPECT_EQ(kernel.steps,
              (std::vector<std::string>{"trial", "bring in bad", "test bad", "lock", "attach", "unlock"}));
    ASSERT_EQ(kernel.running.table.sets.size(), 1U);
    EXPECT_EQ(kernel.running.table.sets[0].map_id, applied->sets[0].maps.filter_id);
}

TEST_F(Apply, ReplacesTheTableOfAProgramThatRuns) {
    kernel.put("old");
    const auto applied = apply(kernel, table({bad()}), {});
    ASSERT_TRUE(applied) << applied.error().message;
    EXPECT_FALSE(applied->attached_now);
    EXPECT_EQ(kernel.count("attach"), 0U);
    ASSERT_EQ(kernel.running.table.sets.size(), 1U);
    EXPECT_EQ(kernel.running.table.sets[0].name, "bad");
    EXPECT_EQ(kernel.running.program, 40U);
}

TEST_F(Apply, NoSetGoesWithoutHavingBeenNamed) {
    kernel.put("old");
    kernel.put("older");
    kernel.put("bad");
    TableSpec spec = table({bad()});
    spec.replace = false;
    const Error error = refused(spec, ErrorKind::wants_force);
    expect_error(error, ErrorKind::wants_force);
    EXPECT_EQ(error.facts.in_force, (std::vector<std::string>{"old", "older"}));
    spec.force = true; // is about other things
    EXPECT_EQ(refused(spec, ErrorKind::wants_force).facts.in_force.size(), 2U);
}

TEST_F(Apply, TheSameNamesAndFurtherOnesNeedNothing) {
    kernel.put("bad");
    TableSpec spec = table({bad(), Files::set("more", files.feed("more", {"192.0.2.2"}))});
    spec.replace = false;
    const auto applied = apply(kernel, spec, {});
    ASSERT_TRUE(applied) << applied.error().message;
    EXPECT_EQ(kernel.running.table.sets.size(), 2U);
}

TEST_F(Apply, SaysThatTheTableIsInForceWhenWhatFollowsFails) {
    kernel.put("old");
    kernel.refuse("replace", ErrorKind::unfinished);
    const auto applied = apply(kernel, table({bad()}), {});
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().kind, ErrorKind::unfinished);
    EXPECT_EQ(kernel.running.table.sets[0].name, "bad");
}

TEST_F(Apply, KeepsOrderAndActions) {
    std::vector<SetSpec> sets;
    for (const char* name : {"a", "b", "c", "d", "e"})
        sets.push_back(Files::set(name, files.feed(name, {"192.0.2.1"})));
    sets[1].action = WantedAction{SIEVE_ACTION_COUNT, {}};
    sets[2].action = WantedAction{SIEVE_ACTION_PASS, {}};
    sets[3].action = WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, "eth1"};
    sets[4].action = WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, "cpu:3"};
    ASSERT_TRUE(apply(kernel, table(sets), {}));
    const auto& live = kernel.running.table.sets;
    ASSERT_EQ(live.size(), 5U);
    const std::vector<std::pair<sieve_action, std::uint32_t>> expected{{SIEVE_ACTION_DROP, 0},
                                                                       {SIEVE_ACTION_COUNT, 0},
                                                                       {SIEVE_ACTION_PASS, 0},
                                                                       {SIEVE_ACTION_REDIRECT_DEVICE, 8},
                                                                       {SIEVE_ACTION_REDIRECT_CPU, 3}};
    for (std::size_t i = 0; i < live.size(); i++) {
        EXPECT_EQ(live[i].name, sets[i].name);
        EXPECT_EQ(live[i].action, expected[i].first) << i;
        EXPECT_EQ(live[i].target, expected[i].second) << i;
    }
}

TEST_F(Apply, WithoutAnActionAMatchDoesWhatTheDefaultDoesNot) {
    for (const auto& [otherwise, match] :
         {std::pair{SIEVE_ACTION_PASS, SIEVE_ACTION_DROP}, {SIEVE_ACTION_DROP, SIEVE_ACTION_PASS}}) {
        TableSpec spec = table({bad()});
        spec.default_action = otherwise;
        ASSERT_TRUE(apply(kernel, spec, {}));
        EXPECT_EQ(kernel.running.table.default_action, otherwise);
        EXPECT_EQ(kernel.running.table.sets[0].action, match);
    }
}

// What is loaded over an allowlist by mistake: the default of `load` is pass.
TEST_F(Apply, AnAllowlistIsNotTurnedAroundWithoutForce) {
    kernel.put("friends", SIEVE_ACTION_PASS);
    kernel.running.table.default_action = SIEVE_ACTION_DROP;
    TableSpec friends = table({Files::set("friends", files.feed("friends", {"192.0.2.1"}))});
    EXPECT_EQ(refused(friends, ErrorKind::wants_force).facts.interface, "eth0");
    friends.default_action = SIEVE_ACTION_DROP;
    friends.sets[0].action = WantedAction{SIEVE_ACTION_DROP, {}};
    EXPECT_EQ(refused(friends, ErrorKind::wants_force).facts.set, "friends");
    TableSpec others = table({bad()});
    others.default_action = SIEVE_ACTION_DROP;
    others.sets[0].action = WantedAction{SIEVE_ACTION_COUNT, {}};
    refused(others, ErrorKind::wants_force);
    friends.sets[0].action.reset();
    EXPECT_TRUE(apply(kernel, friends, {})) << "an allowlist again";
    // Somebody makes an allowlist of it while the sets are built.
    kernel.running.table.default_action = SIEVE_ACTION_PASS;
    kernel.steps.clear();
    kernel.once("lock", [this] { kernel.running.table.default_action = SIEVE_ACTION_DROP; });
    refused(table({bad()}), ErrorKind::wants_force, false);
    friends.default_action = SIEVE_ACTION_PASS;
    friends.force = true;
    EXPECT_TRUE(apply(kernel, friends, {}));
    EXPECT_EQ(kernel.running.table.sets[0].action, SIEVE_ACTION_DROP);
}

TEST_F(Apply, CountersStartAtZeroUnderAnotherListOrAction) {
    const std::string image = files.image("bad.sieve", {"192.0.2.1"});
    const std::string other = files.image("other.sieve", {"192.0.2.1"});
    ASSERT_TRUE(apply(kernel, table({Files::set("bad", image)}), {}));
    const auto counted_before = [this] { return kernel.running.table.sets[0].baseline.packets; };
    ASSERT_TRUE(apply(kernel, table({Files::set("bad", image)}), {}));
    EXPECT_EQ(counted_before(), 0U) << "the same list, the same action";
    ASSERT_TRUE(apply(kernel, table({Files::set("bad", other)}), {}));
    EXPECT_EQ(counted_before(), 1'000'000U) << "another list";
    SetSpec counts = Files::set("bad", other);
    counts.action = WantedAction{SIEVE_ACTION_COUNT, {}};
    ASSERT_TRUE(apply(kernel, table({counts}), {}));
    EXPECT_EQ(counted_before(), 2'000'000U) << "another action";
    TableSpec keeping = table({Files::set("bad", image)});
    keeping.keep_counters = true;
    ASSERT_TRUE(apply(kernel, keeping, {}));
    EXPECT_EQ(counted_before(), 2'000'000U) << "kept";
}

TEST_F(Apply, UnreadablePacketsAreDroppedIfNothingElseIsSaid) {
    TableSpec spec = table({bad()});
    ASSERT_TRUE(apply(kernel, spec, {}));
    EXPECT_EQ(kernel.running.table.unreadable, SIEVE_ACTION_DROP);
    spec.unreadable = SIEVE_ACTION_PASS;
    ASSERT_TRUE(apply(kernel, spec, {}));
    EXPECT_EQ(kernel.running.table.unreadable, SIEVE_ACTION_PASS);
}

// Those behind ours see only what it passes, and are nobody's concern.
TEST_F(Apply, FiltersThatAreAskedBeforeAreWarnedOf) {
    auto& there = kernel.at_tc[kernel::HookPoint::egress];
    there.ours = true;
    there.program = 50;
    there.filters = {{.priority = 10, .kind = "flower"},
                     {.priority = 50, .kind = "bpf", .program_id = 50, .name = "sieve_egress"},
                     {.priority = 60, .kind = "u32"}};
    TableSpec spec = table({bad()});
    spec.point = kernel::HookPoint::egress;
    const auto warned = apply(kernel, spec, {});
    ASSERT_TRUE(warned) << warned.error().message;
    ASSERT_EQ(warned->warnings.size(), 1U);
    EXPECT_EQ(warned->warnings[0].kind, WarningKind::filters_before);
    expect_says(warned->warnings[0]);
    there.filters.erase(there.filters.begin());
    const auto silent = apply(kernel, spec, {});
    ASSERT_TRUE(silent) << silent.error().message;
    EXPECT_TRUE(silent->warnings.empty());
}

TEST_F(Apply, AForeignProgramIsRefusedBeforeAnyWork) {
    kernel.running = {.foreign = true, .program = 17, .table = {}};
    const Error error = refused(table({bad()}), ErrorKind::foreign_program);
    EXPECT_EQ(error.facts.program, "foreigner");
    EXPECT_EQ(error.facts.program_id, 17U);
    EXPECT_EQ(error.message.find("--force"), std::string::npos) << "advice on flags is the front end's";
    EXPECT_TRUE(kernel.running.foreign);

    TableSpec forced = table({bad()});
    forced.force = true;
    ASSERT_TRUE(apply(kernel, forced, {}));
    ASSERT_EQ(kernel.attached_with.size(), 1U);
    EXPECT_TRUE(kernel.attached_with[0].force);
}

TEST_F(Apply, AForeignProgramThatCameMeanwhileStays) {
    kernel.once("lock", [this] { kernel.running = {.foreign = true, .program = 18, .table = {}}; });
    const Error error = refused(table({bad()}), ErrorKind::foreign_program, false);
    EXPECT_EQ(error.facts.program_id, 18U);
    EXPECT_EQ(kernel.steps.back(), "unlock");
}

TEST_F(Apply, OurProgramThatCameMeanwhileInAnotherModeKeepsItsTable) {
    kernel.once("lock", [this] {
        kernel.put("theirs");
        kernel.running.mode = kernel::Mode::skb;
    });
    TableSpec spec = table({bad()});
    spec.mode = kernel::ModeChoice::native;
    refused(spec, ErrorKind::attached_otherwise, false);
    EXPECT_EQ(kernel.running.table.sets[0].name, "theirs");
}

TEST_F(Apply, OurProgramOfAnotherVersionTakesForce) {
    kernel.running = {.ours = true, .other_version = true, .program = 9, .table = {}};
    EXPECT_EQ(refused(table({bad()}), ErrorKind::other_version).facts.interface, "eth0");
    TableSpec forced = table({bad()});
    forced.force = true;
    const auto applied = apply(kernel, forced, {});
    ASSERT_TRUE(applied) << applied.error().message;
    EXPECT_TRUE(applied->attached_now);
}

TEST_F(Apply, ModeAndRankOfARunningProgramStay) {
    kernel.put("old");
    TableSpec other = table({bad()});
    other.mode = kernel::ModeChoice::skb;
    refused(other, ErrorKind::attached_otherwise);
    TableSpec same = table({bad()});
    same.mode = kernel::ModeChoice::native;
    EXPECT_TRUE(apply(kernel, same, {}));
    kernel.steps.clear();
    TableSpec ranked = table({bad()});
    ranked.priority = 10;
    refused(ranked, ErrorKind::attached_otherwise);
}

TEST_F(Apply, OptionsOfAttachingArrive) {
    TableSpec spec = table({bad()});
    spec.mode = kernel::ModeChoice::skb;
    spec.priority = 7;
    spec.chain = 6;
    kernel.mtu_of_eth0 = 9000;
    const auto applied = apply(kernel, spec, {});
    ASSERT_TRUE(applied) << applied.error().message;
    ASSERT_EQ(kernel.attached_with.size(), 1U);
    EXPECT_EQ(kernel.attached_with[0].mode, kernel::ModeChoice::skb);
    EXPECT_EQ(kernel.attached_with[0].rank.priority, 7U);
    EXPECT_EQ(kernel.attached_with[0].rank.chain, 6U);
    EXPECT_TRUE(applied->place_ignored) << "it is alone";
    EXPECT_EQ(kernel.with_frags, true);
    EXPECT_EQ(kernel.points, std::vector<kernel::HookPoint>(3, kernel::HookPoint::xdp));
}

TEST_F(Apply, TheHookPointArrives) {
    TableSpec spec = table({bad()});
    spec.point = kernel::HookPoint::egress;
    ASSERT_TRUE(apply(kernel, spec, {}));
    EXPECT_EQ(kernel.points[0], kernel::HookPoint::egress);
    EXPECT_EQ(kernel.points[1], kernel::HookPoint::egress);
    EXPECT_TRUE(kernel.at(kernel::HookPoint::egress).ours);
    EXPECT_FALSE(kernel.running.ours);
}

TEST_F(Apply, ModeAndChainBelongToXdp) {
    TableSpec spec = table({bad()});
    spec.point = kernel::HookPoint::egress;
    spec.mode = kernel::ModeChoice::skb;
    refused(spec, ErrorKind::invalid_request);
    spec.mode = kernel::ModeChoice::automatic;
    spec.chain = 6;
    refused(spec, ErrorKind::invalid_request);
    spec.chain.reset();
    spec.priority = 7;
    const auto applied = apply(kernel, spec, {});
    ASSERT_TRUE(applied) << applied.error().message;
    EXPECT_FALSE(applied->place_ignored) << "tc's filters have priorities";
}

TEST_F(Apply, ASetThatFailsChangesNothing) {
    kernel.put("old");
    const SetSpec wrong = Files::set("wrong", files.feed("wrong", {"no address"}));
    refused(table({bad(), wrong}), ErrorKind::bad_input, false);
    kernel.steps.clear();
    kernel.refuse("test bad", ErrorKind::bad_input);
    refused(table({bad()}), ErrorKind::bad_input, false);
    EXPECT_EQ(kernel.count("lock"), 0U);
    ASSERT_EQ(kernel.running.table.sets.size(), 1U);
    EXPECT_EQ(kernel.running.table.sets[0].name, "old");
}

TEST_F(Apply, ATableThatTheKernelRefusesGivesTheLockBack) {
    kernel.put("old");
    kernel.refuse("replace");
    refused(table({bad()}), ErrorKind::kernel_refused, false);
    EXPECT_EQ(kernel.steps.back(), "unlock");
}

TEST_F(Apply, WithoutRightsNothingIsRead) {
    kernel.refuse("load programs", ErrorKind::not_permitted);
    // The feed is wrong as well, but nothing reads it.
    refused(table({Files::set("bad", files.path("missing"))}), ErrorKind::not_permitted);
}

TEST_F(Apply, AnotherControllerAtWorkIsNamed) {
    kernel.refuse("lock", ErrorKind::busy);
    std::string holder;
    Observer observer;
    observer.waiting = [&](const std::string& name) { holder = name; };
    const auto applied = apply(kernel, table({bad()}), observer);
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().kind, ErrorKind::busy);
    EXPECT_EQ(holder, "process 1 (other)");
    EXPECT_FALSE(kernel.changed());
}

TEST_F(Apply, NoTableHasANameTwiceOrTooManySets) {
    refused(table({bad(), bad()}), ErrorKind::invalid_request);
    SetSpec misnamed = bad();
    misnamed.name = "a set";
    refused(table({misnamed}), ErrorKind::invalid_request);
    std::vector<SetSpec> many;
    for (int i = 0; i <= SIEVE_MAX_SETS; i++) {
        many.push_back(bad());
        many.back().name = "s" + std::to_string(i);
    }
    refused(table(many), ErrorKind::invalid_request);
}

TEST_F(Apply, WhatIsNotThereIsFoundBeforeAnyWork) {
    TableSpec nowhere = table({bad()});
    nowhere.interface = "eth9";
    refused(nowhere, ErrorKind::kernel_refused);
    SetSpec astray = bad();
    astray.action = WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, "eth9"};
    refused(table({astray}), ErrorKind::kernel_refused);
}

} // namespace
} // namespace sieve::control
