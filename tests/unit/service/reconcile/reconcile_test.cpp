// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/reconcile/reconcile.hpp"

#include <gtest/gtest.h>

#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::service {
namespace {

using test::FakeKernel;
using test::Files;

class Reconcile : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    Configuration configuration;
    WantedVersions wanted;

    Reconcile() {
        kernel.running.table.unreadable = SIEVE_ACTION_DROP; // the configuration's default
        configuration.interfaces.push_back({.name = "eth0", .sets = {"a", "b"}});
        for (const char* name : {"a", "b"}) add_set(name);
    }

    void add_set(const std::string& name) {
        SetConfiguration set;
        set.name = name;
        configuration.sets.push_back(std::move(set));
        const Image image = Image::load(files.image(name, {"192.0.2.1"})).value();
        wanted[name] = {WantedFilter::last_good, identity_text(image.file())};
    }
    // Puts the set in force with the wanted image.
    kernel::SetInForce& run(const std::string& name, sieve_action action = SIEVE_ACTION_DROP,
                            bool verified = false) {
        kernel::SetInForce& set = kernel.put(name, action, verified);
        if (std::filesystem::exists(files.path(name)))
            kernel.put_filter(set.map_id, Image::load(std::filesystem::path(files.path(name))).value());
        return set;
    }
    void lose(const std::string& name) { wanted[name] = {WantedFilter::in_force, {}}; }
    ReconcilePlan plan(const std::vector<ManagedHook>& managed = {}) {
        return make_plan(kernel, configuration, wanted, managed);
    }
    HookPlan only_hook(const std::vector<ManagedHook>& managed = {}) {
        ReconcilePlan all = plan(managed);
        EXPECT_EQ(all.hooks.size(), 1U);
        EXPECT_FALSE(all.hooks.at(0).obstacle) << all.hooks.at(0).obstacle->message;
        return all.hooks.at(0);
    }
    ErrorKind obstacle() {
        const ReconcilePlan all = plan();
        EXPECT_FALSE(all.nothing_to_do());
        EXPECT_TRUE(all.hooks.at(0).obstacle);
        EXPECT_EQ(all.hooks.at(0).step, HookStep::nothing);
        return all.hooks.at(0).obstacle ? all.hooks.at(0).obstacle->kind : ErrorKind::no;
    }
};

TEST_F(Reconcile, WhatRunsAsWantedNeedsNothing) {
    run("a");
    run("b");
    const HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::nothing);
    EXPECT_TRUE(plan().nothing_to_do());
    EXPECT_TRUE(kernel.steps.empty());
}

// Whatever has changed since an image was made has to be in it before packets meet it.
TEST_F(Reconcile, WhatComesCatchesUpUnderTheLockAndBeforeItsTable) {
    const auto state = StateDirectory::open(files.path("state"), {}, {}).value();
    std::map<std::string, std::string> identities;
    for (const char* name : {"a", "b"}) {
        Image image = Image::load(std::filesystem::path(files.path(name))).value();
        identities[name] = identity_text(image.file());
        ASSERT_TRUE(state.stage(name, image, -1, {}));
    }
    for (const HookStep step : {HookStep::attach, HookStep::change}) {
        kernel.steps.clear();
        if (step == HookStep::change) {
            kernel.running = {};
            run("b");
        }
        const HookPlan hook = only_hook();
        ASSERT_EQ(hook.step, step);
        std::map<std::string, std::vector<std::string>> before;
        const auto done = carry_out(kernel, configuration, hook, identities, state, {}, {},
                                    [&](const std::string& set, std::uint32_t map_id) {
                                        EXPECT_TRUE(kernel.open_filter(map_id)) << set;
                                        before[set] = kernel.steps;
                                    });
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(before.size(), step == HookStep::attach ? 2U : 1U) << "one that stays is left alone";
        for (const auto& [set, steps] : before) {
            EXPECT_EQ(std::count(steps.begin(), steps.end(), "lock"), 1) << set;
            EXPECT_EQ(std::count(steps.begin(), steps.end(), "attach"), 0) << set;
            EXPECT_EQ(std::count(steps.begin(), steps.end(), "replace"), 0) << set;
        }
        EXPECT_TRUE(kernel.changed());
    }
}

TEST_F(Reconcile, RepliesAsConfigured) {
    run("a");
    run("b");
    configuration.interfaces[0].replies = SIEVE_ACTION_PASS;
    HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::change);
    EXPECT_EQ(hook.replies_before, SIEVE_ACTION_DROP);
    EXPECT_EQ(hook.replies, SIEVE_ACTION_PASS);
    kernel.running.table.replies = SIEVE_ACTION_PASS;
    kernel.notes = true;
    kernel.memory_flows = 1000;
    EXPECT_EQ(only_hook().step, HookStep::nothing);
    // Somebody took the noting program away.
    kernel.notes = false;
    hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::change);
    EXPECT_TRUE(hook.notes_gone);
    // Another size is no obstacle, and is said.
    kernel.notes = true;
    configuration.interfaces[0].max_flows = 2000;
    hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::nothing);
    ASSERT_TRUE(hook.otherwise);
    expect_error(*hook.otherwise, ErrorKind::attached_otherwise);
    configuration.interfaces[0] = {.name = "eth0", .sets = {"a", "b"}};
    EXPECT_EQ(only_hook().replies_before, SIEVE_ACTION_PASS) << "a default of pass is without them";
}

TEST_F(Reconcile, AnInterfaceWithoutOurProgramGetsIt) {
    const HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::attach);
    ASSERT_EQ(hook.sets.size(), 2U);
    EXPECT_TRUE(hook.sets[0].comes);
    EXPECT_EQ(hook.sets[0].action->action, SIEVE_ACTION_DROP); // the opposite of the default
}

TEST_F(Reconcile, WhereAnInterfaceIsPausedNothingComesAndOursGoes) {
    const auto paused = [&](const Pauses& pauses) {
        return make_plan(kernel, configuration, wanted, {}, pauses).hooks.at(0);
    };
    for (const Pauses& pauses :
         {Pauses{.everywhere = true, .interfaces = {}}, Pauses{.interfaces = {"eth0"}}}) {
        kernel.running = {};
        const HookPlan none = paused(pauses);
        EXPECT_TRUE(none.paused);
        EXPECT_EQ(none.step, HookStep::nothing);
        run("a");
        const HookPlan ours = paused(pauses);
        EXPECT_TRUE(ours.paused);
        EXPECT_EQ(ours.step, HookStep::unload);
        EXPECT_NE(ours.program_id, 0U);
        ASSERT_EQ(ours.sets.size(), 1U);
        EXPECT_TRUE(ours.sets[0].goes);
    }
    const HookPlan other = paused({.interfaces = {"eth1"}});
    EXPECT_FALSE(other.paused);
    EXPECT_EQ(other.step, HookStep::change);
}

TEST_F(Reconcile, OneOtherFilterIsSwapped) {
    run("a");
    kernel::SetInForce& b = run("b");
    kernel.put_filter(b.map_id, Image::load(files.image("other", {"192.0.2.1"})).value());
    const HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::change);
    EXPECT_FALSE(hook.sets[0].changes());
    EXPECT_EQ(hook.sets[0].kept->map_id, kernel.running.table.find("a")->map_id);
    EXPECT_TRUE(hook.sets[1].new_filter);
    EXPECT_FALSE(hook.sets[1].kept);
    EXPECT_TRUE(hook.order_before.empty());
}

TEST_F(Reconcile, ANewBuildIsInForceNowhere) {
    run("a");
    run("b");
    wanted["a"].filter = WantedFilter::new_build;
    EXPECT_TRUE(only_hook().sets[0].new_filter);
}

TEST_F(Reconcile, AFilterWhoseSourceWasNotAskedStays) {
    run("a");
    kernel::SetInForce& b = run("b");
    kernel.put_filter(b.map_id, Image::load(files.image("newer", {"192.0.2.1"})).value());
    wanted["b"].filter = WantedFilter::in_force; // a controller died before it wrote its record
    EXPECT_EQ(only_hook().step, HookStep::nothing);
    wanted["b"].identity.clear();
    EXPECT_EQ(only_hook().step, HookStep::nothing);
}

TEST_F(Reconcile, ASetWithoutAListKeepsNobodyOut) {
    lose("b");
    for (const sieve_action action : {SIEVE_ACTION_DROP, SIEVE_ACTION_COUNT}) {
        configuration.sets[1].action = {.action = action};
        kernel.running = {};
        const HookPlan first = only_hook();
        EXPECT_EQ(first.step, HookStep::attach);
        EXPECT_EQ(first.names(), std::vector<std::string>{"a"});
        EXPECT_EQ(first.waiting, (std::vector<WaitingSet>{{"b", ""}}));
        kernel.running.table.unreadable = SIEVE_ACTION_DROP;
        run("a");
        const HookPlan later = only_hook();
        EXPECT_EQ(later.step, HookStep::nothing);
        EXPECT_EQ(later.waiting, (std::vector<WaitingSet>{{"b", ""}}));
    }
    expect_says(waiting_text({"b", ""}));
}

TEST_F(Reconcile, WhereNoSetHasAListNothingComes) {
    lose("a");
    lose("b");
    EXPECT_EQ(obstacle(), ErrorKind::bad_input);
    // Nothing has to pass, so the default can drop already.
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    for (SetConfiguration& set : configuration.sets) set.action = {.action = SIEVE_ACTION_DROP};
    const HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::attach);
    EXPECT_TRUE(hook.names().empty());
    EXPECT_FALSE(hook.default_waits());
}

// What has to pass is asked before it.
TEST_F(Reconcile, AMissingFriendKeepsOutWhatCouldDropIt) {
    for (const char* name : {"friends", "counted", "after"}) add_set(name);
    configuration.interfaces[0].sets = {"a", "friends", "counted", "b", "after"};
    for (SetConfiguration& set : configuration.sets) {
        if (set.name == "friends") set.action = {.action = SIEVE_ACTION_PASS};
        if (set.name == "counted") set.action = {.action = SIEVE_ACTION_COUNT};
        if (!set.action) set.action = {.action = SIEVE_ACTION_DROP};
    }
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    lose("friends");
    const HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::attach);
    EXPECT_EQ(hook.names(), (std::vector<std::string>{"a", "counted"}));
    EXPECT_EQ(hook.waiting,
              (std::vector<WaitingSet>{{"friends", ""}, {"b", "friends"}, {"after", "friends"}}));
    EXPECT_EQ(hook.default_action, SIEVE_ACTION_PASS);
    EXPECT_TRUE(hook.default_waits());
    EXPECT_EQ(hook.replies, SIEVE_ACTION_DROP) << "nothing is dropped by default yet";
    expect_says(waiting_text(hook.waiting[1]));
}

// Whatever takes packets already does so without the missing set, too, so that its list can be renewed.
TEST_F(Reconcile, WhatIsInForceGoesOnWithoutAMissingFriend) {
    add_set("friends");
    add_set("new");
    configuration.interfaces[0].sets = {"friends", "a", "b", "new"};
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP;
    for (SetConfiguration& set : configuration.sets)
        set.action = {.action = set.name == "friends" ? SIEVE_ACTION_PASS : SIEVE_ACTION_DROP};
    lose("friends");
    run("a");
    run("b", SIEVE_ACTION_COUNT);
    kernel.running.table.default_action = SIEVE_ACTION_DROP;
    wanted["a"] = {WantedFilter::new_build, {}};
    HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::change);
    EXPECT_EQ(hook.names(), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(hook.sets[0].new_filter);
    EXPECT_EQ(hook.sets[1].action->action, SIEVE_ACTION_COUNT) << "it begins to drop with the friends";
    EXPECT_EQ(hook.waiting, (std::vector<WaitingSet>{{"friends", ""}, {"new", "friends"}}));
    EXPECT_FALSE(hook.default_waits());
    EXPECT_FALSE(hook.default_before);
    // The default does not become drop, either.
    kernel.running.table.default_action = SIEVE_ACTION_PASS;
    hook = only_hook();
    EXPECT_TRUE(hook.default_waits());
    EXPECT_FALSE(hook.default_before);
    // What was dropped until now would pass, so sets that go stay as well.
    run("old");
    hook = only_hook();
    EXPECT_EQ(hook.names(), (std::vector<std::string>{"a", "b", "old"}));
    ASSERT_TRUE(hook.sets[2].kept);
    EXPECT_EQ(hook.sets[2].action->action, SIEVE_ACTION_DROP);
    // Not more than a table holds.
    for (int i = 0; i < SIEVE_MAX_SETS - 3; i++) run("old" + std::to_string(i));
    run("one more");
    hook = only_hook();
    EXPECT_EQ(hook.names().size(), static_cast<std::size_t>(SIEVE_MAX_SETS));
    EXPECT_TRUE(hook.sets.back().goes);
    // With the friends, all of that comes.
    wanted["friends"] = {WantedFilter::new_build, {}};
    hook = only_hook();
    EXPECT_EQ(hook.names(), (std::vector<std::string>{"friends", "a", "b", "new"}));
    EXPECT_EQ(hook.sets[2].action->action, SIEVE_ACTION_DROP);
    EXPECT_EQ(hook.default_before, SIEVE_ACTION_PASS);
    EXPECT_TRUE(hook.waiting.empty());
}

// The prefixes of a set that followed a stream are in a set of their own, which no configuration names.
TEST_F(Reconcile, PrefixesOfSourcesThatWereTakenAwayStayUntilTheNewOnesHaveAnswered) {
    run("a");
    run("a-ranges");
    run("b");
    run("b-ranges");
    wanted["a"] = {WantedFilter::in_force, wanted["a"].identity};
    wanted["a"].of_other_sources = true;
    HookPlan hook = only_hook();
    EXPECT_EQ(hook.names(), (std::vector<std::string>{"a", "a-ranges", "b"}));
    ASSERT_TRUE(hook.sets[1].kept);
    EXPECT_EQ(hook.sets[1].kept->map_id, kernel.running.table.find("a-ranges")->map_id);
    EXPECT_EQ(hook.sets[1].action->action, SIEVE_ACTION_DROP);
    EXPECT_TRUE(hook.sets[3].goes) << "b has its list";
    // In every cycle.
    std::erase_if(kernel.running.table.sets, [](const auto& set) { return set.name == "b-ranges"; });
    EXPECT_EQ(only_hook().step, HookStep::nothing);
    // The new list has prefixes of its own.
    wanted["a"] = {WantedFilter::new_build, {}};
    hook = only_hook();
    EXPECT_EQ(hook.names(), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(hook.sets.back().goes);
    // As do those of a set that is gone.
    lose("a");
    std::erase_if(kernel.running.table.sets, [](const auto& set) { return set.name == "a"; });
    EXPECT_EQ(only_hook().names(), (std::vector<std::string>{"b"}));
}

TEST_F(Reconcile, SetsThatChangeTogetherComeTogether) {
    add_set("c");
    configuration.interfaces[0].sets = {"a", "b", "c"};
    lose("b");
    wanted["a"].together = wanted["b"].together = true;
    HookPlan hook = only_hook();
    EXPECT_EQ(hook.names(), std::vector<std::string>{"c"});
    EXPECT_EQ(hook.waiting, (std::vector<WaitingSet>{{"a", "b"}, {"b", ""}}));
    run("a");
    hook = only_hook();
    EXPECT_EQ(hook.names(), (std::vector<std::string>{"a", "c"}));
    EXPECT_EQ(hook.waiting, (std::vector<WaitingSet>{{"b", ""}}));
}

TEST_F(Reconcile, AFilterThatCannotBeReadIsReplaced) {
    run("a");
    run("b").map_id = 999;
    EXPECT_TRUE(only_hook().sets[1].new_filter);
}

TEST_F(Reconcile, SetsComeAndGo) {
    run("a");
    run("old", SIEVE_ACTION_COUNT);
    const HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::change);
    ASSERT_EQ(hook.sets.size(), 3U);
    EXPECT_TRUE(hook.sets[1].comes);
    EXPECT_EQ(hook.sets[2].name, "old");
    EXPECT_TRUE(hook.sets[2].goes);
    EXPECT_EQ(hook.sets[2].action_before->action, SIEVE_ACTION_COUNT);
    EXPECT_TRUE(hook.order_before.empty());
}

TEST_F(Reconcile, OrderMatters) {
    run("b");
    run("a");
    const HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::change);
    EXPECT_EQ(hook.order_before, (std::vector<std::string>{"b", "a"}));
    EXPECT_TRUE(hook.sets[0].kept);
    EXPECT_TRUE(hook.sets[1].kept);
}

TEST_F(Reconcile, ActionsAndDefaultMatter) {
    run("a");
    run("b", SIEVE_ACTION_COUNT);
    EXPECT_TRUE(only_hook().sets[1].other_action());
    kernel.running.table.sets[1].action = SIEVE_ACTION_DROP;
    EXPECT_EQ(only_hook().step, HookStep::nothing);
    kernel.running.table.default_action = SIEVE_ACTION_DROP;
    EXPECT_EQ(only_hook().default_before, SIEVE_ACTION_DROP);
    configuration.interfaces[0].default_action = SIEVE_ACTION_DROP; // and so the sets pass
    EXPECT_TRUE(only_hook().sets[0].other_action());
}

// Another condition is another table, of the same filters.
TEST_F(Reconcile, ConditionsMatter) {
    run("a");
    run("b");
    const auto& dport = control::condition_parts()[SIEVE_PART_DPORT];
    ASSERT_TRUE(set_condition(configuration.sets[1].condition, dport, "22,443"));
    const HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::change);
    EXPECT_TRUE(hook.sets[1].other_action());
    EXPECT_TRUE(hook.sets[1].kept) << "its filter stays";
    EXPECT_FALSE(hook.sets[1].new_filter);
    EXPECT_FALSE(hook.sets[0].changes());
    ASSERT_TRUE(set_condition(kernel.running.table.sets[1].condition, dport, "443,22"));
    EXPECT_EQ(only_hook().step, HookStep::nothing);
}

TEST_F(Reconcile, WhatBecomesOfUnreadablePacketsMatters) {
    run("a");
    run("b");
    ASSERT_EQ(only_hook().step, HookStep::nothing);
    configuration.interfaces[0].unreadable = SIEVE_ACTION_PASS;
    const HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::change);
    EXPECT_EQ(hook.unreadable_before, SIEVE_ACTION_DROP);
}

TEST_F(Reconcile, ARedirectIsComparedByItsTarget) {
    configuration.sets[0].action = control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, "eth1"};
    run("a", SIEVE_ACTION_REDIRECT_DEVICE).target = 8;
    run("b");
    EXPECT_EQ(only_hook().step, HookStep::nothing);
    kernel.running.table.sets[0].target = 9;
    EXPECT_TRUE(only_hook().sets[0].other_action());
    configuration.sets[0].action->target = "eth9";
    const HookPlan hook = only_hook();
    EXPECT_EQ(hook.step, HookStep::nothing);
    EXPECT_EQ(hook.held.at("a").kind, ErrorKind::kernel_refused);
    EXPECT_EQ(hook.sets[0].action, hook.sets[0].action_before);
}

// Its new sources have not answered yet: list and action are those that are in force under its former name.
TEST_F(Reconcile, ASetWithAnotherNameListAndActionComesWithTheFormerOnes) {
    run("a");
    run("b");
    add_set("z");
    configuration.sets.back().action = control::WantedAction{SIEVE_ACTION_COUNT, {}};
    configuration.interfaces[0].sets = {"a", "z"};
    wanted["z"] = {.filter = WantedFilter::in_force,
                   .identity = wanted.at("b").identity,
                   .of_other_sources = true,
                   .action_waits = true};
    const HookPlan hook = only_hook();
    ASSERT_EQ(hook.sets.size(), 3U);
    EXPECT_TRUE(hook.sets[1].comes);
    EXPECT_EQ(hook.sets[1].action, control::SetAction{SIEVE_ACTION_DROP});
    EXPECT_TRUE(hook.sets[2].goes);
    EXPECT_TRUE(hook.waiting.empty());
    // Where nothing of it is in force, it waits.
    wanted["z"].identity = "another";
    EXPECT_TRUE(only_hook().waits("z"));
}

TEST_F(Reconcile, VerificationMatters) {
    run("a");
    run("b");
    configuration.sets[1].verify = true;
    const HookPlan hook = only_hook();
    EXPECT_TRUE(hook.sets[1].new_filter);
    EXPECT_TRUE(hook.sets[1].other_verification());
}

TEST_F(Reconcile, OtherProgramsStandInTheWay) {
    kernel.running.foreign = true;
    EXPECT_EQ(obstacle(), ErrorKind::foreign_program);
    kernel.running.foreign = false;
    run("a");
    run("b");
    kernel.running.other_version = true;
    EXPECT_EQ(obstacle(), ErrorKind::other_version);
    kernel.running.other_version = false;
    configuration.interfaces[0].mode = kernel::ModeChoice::skb;
    EXPECT_EQ(only_hook().step, HookStep::nothing);
    ASSERT_TRUE(only_hook().otherwise) << "it goes on";
    EXPECT_EQ(only_hook().otherwise->kind, ErrorKind::attached_otherwise);
    configuration.interfaces[0].mode = kernel::ModeChoice::native;
    EXPECT_EQ(only_hook().step, HookStep::nothing);
    EXPECT_FALSE(only_hook().otherwise);
}

TEST_F(Reconcile, AnInterfaceThatIsNotThereIsMissing) {
    configuration.interfaces[0].name = "eth7";
    EXPECT_TRUE(plan().hooks.empty());
    EXPECT_EQ(plan().missing, std::vector<std::string>{"eth7"});
    configuration.interfaces[0].name = "eth[7-9]"; // but not of a pattern
    EXPECT_TRUE(plan().missing.empty());
}

TEST_F(Reconcile, APatternMeansEveryInterfaceButLoopback) {
    kernel.more_interfaces = {"lo"};
    configuration.interfaces[0].name = "*";
    EXPECT_EQ(only_hook().interface, "eth0");
    configuration.interfaces[0].name = "lo"; // unless it is named
    EXPECT_EQ(plan().hooks.size(), 1U);
}

TEST_F(Reconcile, AHookThatNoEntryNamesIsUnloadedIfItIsOurs) {
    run("a");
    run("b");
    configuration.interfaces[0].hook = kernel::HookPoint::egress;
    EXPECT_EQ(plan().hooks.size(), 1U); // a person loaded what runs at XDP
    const ReconcilePlan managed = plan({{"eth0", kernel::HookPoint::xdp, 40}});
    ASSERT_EQ(managed.hooks.size(), 2U);
    EXPECT_EQ(managed.hooks[1].step, HookStep::unload);
    EXPECT_EQ(managed.hooks[1].sets.size(), 2U);
    EXPECT_EQ(plan({{"eth0", kernel::HookPoint::xdp, 39}}).hooks.size(), 1U); // another program by now
    EXPECT_EQ(plan({{"eth5", kernel::HookPoint::xdp, 39}}).hooks.size(), 1U); // gone
    // The interface was renamed from eth5, which keeps its program.
    const ReconcilePlan renamed = plan({{"eth5", kernel::HookPoint::xdp, 40}});
    ASSERT_EQ(renamed.hooks.size(), 2U);
    EXPECT_EQ(renamed.hooks[1].interface, "eth0");
    EXPECT_EQ(renamed.hooks[1].step, HookStep::unload);
}

TEST_F(Reconcile, EveryHookIsComparedWithItsOwnEntry) {
    run("a");
    run("b");
    configuration.interfaces.push_back({.name = "eth*", .hook = kernel::HookPoint::egress, .sets = {"a"}});
    const ReconcilePlan both = plan();
    ASSERT_EQ(both.hooks.size(), 2U);
    EXPECT_EQ(both.hooks[0].step, HookStep::nothing);
    EXPECT_EQ(both.hooks[1].step, HookStep::attach);
    EXPECT_EQ(both.hooks[1].point, kernel::HookPoint::egress);
}

} // namespace
} // namespace sieve::service
