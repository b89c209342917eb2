// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/schedule.hpp"

#include <gtest/gtest.h>

namespace sieve::service {
namespace {

using namespace std::chrono_literals;

class ScheduleTest : public testing::Test {
  protected:
    using Time = Schedule::Time;

    Time now{1000h};
    double chance = 0.5; // no jitter either way
    Configuration configuration;
    Schedule schedule{[this] { return chance; }, {.first = 10s, .most = 1h}};

    ScheduleTest() {
        add("a", 1h);
        add("b", 2h);
        schedule.follow(configuration, now);
    }
    void add(const std::string& name, std::chrono::seconds refresh) {
        SetConfiguration set;
        set.name = name;
        set.refresh = refresh;
        set.sources = {FileSpec{"/lists/" + name}};
        configuration.sets.push_back(std::move(set));
    }
    // What a cycle reports in which every set has the outcome.
    CycleReport report(SetOutcome outcome, bool has_image = true) {
        CycleReport report;
        for (const SetConfiguration& set : configuration.sets) {
            SetReport one{.name = set.name, .outcome = outcome};
            if (has_image) one.last_good = SetRecord{};
            report.sets.push_back(std::move(one));
        }
        return report;
    }
    static constexpr RefreshRoom room{.far = true, .near = true, .near_long = true};
    // All that is due on this machine has been refreshed, and the cycle follows.
    std::optional<CycleOptions> take() {
        while (const auto refresh = schedule.take_refresh(now, {.near = true, .near_long = true}))
            schedule.refreshed(refresh->sets);
        return schedule.take(now);
    }
    // Runs the cycle that is due; the sets that it asked.
    std::set<std::string> run(SetOutcome outcome = SetOutcome::unchanged) {
        const auto cycle = take();
        if (!cycle) return {"nothing was due"};
        schedule.done(*cycle, report(outcome), now);
        return cycle->sets;
    }
    // Past the first cycle, in which every set got an image.
    void begin() { EXPECT_EQ(run(SetOutcome::replaced), (std::set<std::string>{"a", "b"})); }
};

TEST_F(ScheduleTest, TheStartComparesAndThenAsksEverySet) {
    schedule.compare(now);
    const auto first = schedule.take(now);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->ask, Ask::nothing);
    EXPECT_EQ(first->on_failure, OnFailure::go_on);
    EXPECT_FALSE(schedule.take(now)) << "nothing was refreshed";
    const auto second = take();
    ASSERT_TRUE(second);
    EXPECT_EQ(second->ask, Ask::some);
    EXPECT_EQ(second->sets, (std::set<std::string>{"a", "b"}));
    EXPECT_FALSE(schedule.take(now));
}

TEST_F(ScheduleTest, TimersAreSpreadAroundTheInterval) {
    chance = 0; // the earliest
    begin();
    EXPECT_EQ(schedule.next_refresh(room), now + 54min);
    EXPECT_EQ(schedule.next(), std::nullopt);
    EXPECT_EQ(schedule.next_of("b"), now + 108min);
    now += 54min - 1ms;
    EXPECT_FALSE(take());
    now += 1ms;
    EXPECT_EQ(run(), std::set<std::string>{"a"});
    EXPECT_EQ(schedule.next_of("a"), now + 54min);
}

TEST_F(ScheduleTest, ATriggerWaitsUntilItIsQuiet) {
    begin();
    const Time first = now;
    schedule.lists_changed({"a"}, now);
    EXPECT_EQ(schedule.next_refresh(room), now + 10ms);
    EXPECT_FALSE(schedule.take_refresh(now + 9ms, room));
    now += 9ms;
    schedule.lists_changed({"a"}, now);
    EXPECT_EQ(schedule.next_refresh(room), now + 10ms);
    // A stream of triggers does not hold it back for ever.
    while (now < first + 300ms) {
        schedule.lists_changed({"a"}, now);
        ASSERT_LE(*schedule.next_refresh(room), first + 250ms);
        now += 9ms;
    }
    EXPECT_EQ(run(), std::set<std::string>{"a"});
    EXPECT_FALSE(schedule.take_refresh(now + 1min, room)); // one for all of them
}

TEST_F(ScheduleTest, TriggersDuringACycleLeadToAnother) {
    begin();
    schedule.lists_changed({"a"}, now);
    now += 10ms;
    const auto cycle = take();
    ASSERT_TRUE(cycle);
    EXPECT_EQ(cycle->sets, std::set<std::string>{"a"});
    schedule.lists_changed({"a"}, now); // while it runs
    schedule.interfaces_changed(now);
    now += 5s;
    EXPECT_FALSE(schedule.take_refresh(now, room)) << "its image is being put in force";
    schedule.lists_changed({"b"}, now - 5s);
    schedule.done(*cycle, report(SetOutcome::replaced), now);
    const auto compared = schedule.take(now);
    ASSERT_TRUE(compared);
    EXPECT_EQ(compared->ask, Ask::nothing);
    EXPECT_EQ(run(), (std::set<std::string>{"a", "b"}));
    EXPECT_FALSE(schedule.take_refresh(now + 1min, room));
}

TEST_F(ScheduleTest, FailuresBackOffAndATriggerDoesNotWaitForThat) {
    begin();
    now += 1h;
    EXPECT_EQ(run(SetOutcome::failed), std::set<std::string>{"a"});
    // Half of the wait is sure, the other half drawn.
    EXPECT_EQ(schedule.next_of("a"), now + 7500ms);
    now += 7500ms;
    EXPECT_EQ(run(SetOutcome::failed), std::set<std::string>{"a"});
    EXPECT_EQ(schedule.next_of("a"), now + 15s);
    schedule.lists_changed({"a"}, now);
    now += 10ms;
    EXPECT_EQ(run(SetOutcome::replaced), std::set<std::string>{"a"});
    EXPECT_EQ(schedule.next_of("a"), now + 1h);
    // What was refused does not become right by being asked more often.
    schedule.lists_changed({"a"}, now);
    now += 10ms;
    run(SetOutcome::refused);
    EXPECT_EQ(schedule.next_of("a"), now + 1h);
}

TEST_F(ScheduleTest, WhatARefusalSaysMayPassIsAskedForAgainSoon) {
    begin();
    now += 2h;
    for (const Guard passes : {Guard::empty, Guard::lockout}) {
        const auto cycle = take();
        ASSERT_TRUE(cycle);
        CycleReport refused = report(SetOutcome::refused);
        refused.sets[0].guard = passes;
        refused.sets[1].guard = Guard::shrink;
        schedule.done(*cycle, refused, now);
        EXPECT_LE(*schedule.next_of("a") - now, 20s) << guard_name(passes);
        EXPECT_EQ(*schedule.next_of("b") - now, 2h);
        now += 2h;
    }
}

TEST_F(ScheduleTest, AServerThatAsksForTimeGetsIt) {
    begin();
    now += 1h;
    auto cycle = take();
    ASSERT_TRUE(cycle);
    CycleReport failing = report(SetOutcome::failed);
    failing.sets[0].retry_after = 30min;
    schedule.done(*cycle, failing, now);
    EXPECT_EQ(schedule.next_of("a"), now + 31min + 30s); // of its tenth, half is drawn
    now += 32min;
    cycle = take();
    ASSERT_TRUE(cycle);
    // Not for longer than the set's interval.
    failing.sets[0].retry_after = 5h;
    schedule.done(*cycle, failing, now);
    EXPECT_EQ(schedule.next_of("a"), now + 56min + 42s);
    now += 57min;
    cycle = take();
    ASSERT_TRUE(cycle);
    // No interface took the list: that is no reason to wait for an hour.
    failing.sets[0].retry_after.reset();
    schedule.done(*cycle, failing, now);
    EXPECT_EQ(schedule.next_of("a"), now + 30s);
}

TEST_F(ScheduleTest, ACycleThatCouldNotRunIsTriedAgain) {
    const auto cycle = take();
    ASSERT_TRUE(cycle);
    schedule.failed(*cycle, now);
    EXPECT_EQ(schedule.next_refresh(room), now + 7500ms);
    schedule.compare(now);
    const auto compared = schedule.take(now);
    ASSERT_TRUE(compared);
    schedule.failed(*compared, now);
    now += 7500ms;
    const auto again = schedule.take(now);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->ask, Ask::nothing);
}

TEST_F(ScheduleTest, NoFailureWaitsForLongerThanTheSourcesDo) {
    configuration.sets[0].refresh = 4s;
    schedule.follow(configuration, now);
    for (int failures = 0; failures < 5; failures++) schedule.failed({.sets = {"a"}}, now);
    EXPECT_EQ(schedule.next_of("a"), now + 3s);
}

TEST_F(ScheduleTest, AHookThatFailsIsComparedAgain) {
    begin();
    CycleReport failing = report(SetOutcome::unchanged);
    failing.hooks.emplace_back();
    failing.hooks.back().error = Error{ErrorKind::busy, "process 1 is at work"};
    schedule.compare(now);
    schedule.done(*schedule.take(now), failing, now);
    EXPECT_EQ(schedule.next(), now + 7500ms);
    now += 7500ms;
    schedule.done(*schedule.take(now), failing, now);
    EXPECT_EQ(schedule.next(), now + 15s);
    now += 15s;
    schedule.done(*schedule.take(now), report(SetOutcome::unchanged), now);
    EXPECT_EQ(schedule.next(), std::nullopt);
    EXPECT_EQ(schedule.failures(), 0U);
}

// It may be in another network namespace for long, and keeps nothing else from being tried again soon.
TEST_F(ScheduleTest, AProgramThatIsToBeUnloadedIsLookedForLessAndLessOften) {
    begin();
    CycleReport away = report(SetOutcome::unchanged);
    away.away = {{.noted = {"eth0", kernel::HookPoint::xdp, 40}, .left = true}};
    schedule.compare(now);
    for (const auto wait : {7500ms, 15000ms, 30000ms}) {
        schedule.done(*schedule.take(now), away, now);
        ASSERT_EQ(schedule.next(), now + wait);
        now += wait;
    }
    away.hooks.emplace_back();
    away.hooks.back().error = Error{ErrorKind::busy, "process 1 is at work"};
    schedule.done(*schedule.take(now), away, now);
    EXPECT_EQ(schedule.next(), now + 7500ms);
    // One that belongs where it was is not looked for.
    away.hooks.clear();
    away.away[0].left = false;
    now += 7500ms;
    schedule.done(*schedule.take(now), away, now);
    EXPECT_EQ(schedule.next(), std::nullopt);
}

// A restart would have the lists before.
TEST_F(ScheduleTest, WhatTheStateDirectoryDidNotTakeIsTriedAgainSoon) {
    const auto cycle = take();
    ASSERT_TRUE(cycle);
    CycleReport unwritten = report(SetOutcome::replaced);
    unwritten.unwritten = Error{ErrorKind::bad_input, "no room"};
    schedule.done(*cycle, unwritten, now);
    EXPECT_EQ(schedule.next(), now + 7500ms);
    EXPECT_EQ(schedule.next_of("a"), now + 7500ms);
    now += 7500ms;
    run(); // compares
    EXPECT_EQ(run(SetOutcome::replaced), (std::set<std::string>{"a", "b"}));
    EXPECT_EQ(schedule.next(), std::nullopt);
    EXPECT_EQ(schedule.next_of("a"), now + 1h);
}

TEST_F(ScheduleTest, ACycleThatIsCalledOffIsDueAgain) {
    begin();
    schedule.lists_changed({"b"}, now);
    now += 10ms;
    const auto cycle = take();
    ASSERT_TRUE(cycle);
    schedule.called_off(*cycle, now);
    EXPECT_EQ(run(), std::set<std::string>{"b"});
}

// No hook gets its table before every set of it has an image, and a set's image is kept only when it is live.
// Such as when the state directory was removed: an interface that comes must not wait for a timer.
TEST_F(ScheduleTest, ASetThatLostItsImageIsAskedAtOnce) {
    begin();
    now += 1min;
    EXPECT_FALSE(take());
    schedule.compare(now);
    const auto cycle = schedule.take(now);
    ASSERT_TRUE(cycle);
    schedule.done(*cycle, report(SetOutcome::unchanged, false), now);
    EXPECT_EQ(run(SetOutcome::replaced), (std::set<std::string>{"a", "b"}));
    EXPECT_FALSE(take());
}

TEST_F(ScheduleTest, ASourceFarAwayIsAskedByItself) {
    add("far", 1h);
    configuration.sets.back().sources = {HttpSpec{"http://192.0.2.1/list"}};
    schedule.follow(configuration, now);
    begin(); // without it
    const RefreshRoom healthy{.far = true};
    const RefreshRoom both{.far = true, .failing = true};
    const auto taken = [&](RefreshRoom room) {
        const auto refresh = schedule.take_refresh(now, room);
        return refresh && refresh->far && refresh->sets == std::set<std::string>{"far"};
    };
    EXPECT_FALSE(schedule.take_refresh(now, {})) << "there is no room";
    EXPECT_EQ(schedule.next_refresh({}), std::nullopt);
    EXPECT_EQ(schedule.next_refresh(healthy), now);
    EXPECT_TRUE(taken(healthy));
    // While it is asked, all others go on, and it is not asked again.
    now += 2h;
    EXPECT_FALSE(taken(both));
    EXPECT_EQ(run(), (std::set<std::string>{"a", "b"}));
    schedule.refreshed({"far"});
    EXPECT_LE(schedule.next(), now);
    EXPECT_EQ(run(SetOutcome::failed), std::set<std::string>{"far"});
    EXPECT_TRUE(schedule.fails("far"));
    // One that failed needs room for such.
    now += 1h;
    EXPECT_FALSE(taken(healthy));
    EXPECT_TRUE(taken(both));
    schedule.called_off({.sets = {"far"}}, now);
    EXPECT_TRUE(taken(both));
    schedule.lists_changed({"far"}, now); // it has a file, too
    schedule.refreshed({"far"});
    EXPECT_TRUE(run().contains("far"));
    EXPECT_FALSE(schedule.fails("far"));
    now += 10ms;
    EXPECT_TRUE(taken(healthy)) << "it changed meanwhile";
    // A reload forgets what another configuration was told.
    schedule.refreshed({"far"});
    schedule.follow(configuration, now);
    EXPECT_TRUE(taken(healthy));
}

// A change of a file is no reason to ask a server, which may be slow, nor to ask it later than planned.
TEST_F(ScheduleTest, AFileThatChangesBesideAServerIsRefreshedAlone) {
    add("far", 1h);
    configuration.sets.back().sources = {FileSpec{"/lists/far"}, HttpSpec{"http://192.0.2.1/list"}};
    schedule.follow(configuration, now);
    begin();
    const auto taken = [&] { return schedule.take_refresh(now, {.far = true, .failing = true}); };
    // The cycle of a refresh that was taken.
    const auto run_far = [&](SetOutcome outcome) {
        schedule.refreshed({"far"});
        const auto cycle = schedule.take(now);
        ASSERT_TRUE(cycle);
        schedule.done(*cycle, report(outcome), now);
    };
    const auto change = [&] {
        schedule.lists_changed({"far"}, now);
        now += 10ms;
    };
    EXPECT_FALSE(taken()->files_only) << "its time has come";
    run_far(SetOutcome::replaced);
    const auto planned = schedule.next_of("far");
    for (int i = 0; i < 3; i++) {
        change();
        EXPECT_TRUE(taken()->files_only);
        run_far(SetOutcome::replaced);
        EXPECT_EQ(schedule.next_of("far"), planned);
    }
    now = *planned;
    change();
    EXPECT_FALSE(taken()->files_only) << "its time has come, too";
    run_far(SetOutcome::failed);
    const auto retry = schedule.next_of("far");
    change();
    EXPECT_TRUE(taken()->files_only);
    run_far(SetOutcome::failed); // as before
    EXPECT_EQ(schedule.next_of("far"), retry);
    change();
    EXPECT_TRUE(taken()->files_only);
    run_far(SetOutcome::replaced);
    EXPECT_EQ(schedule.next_of("far"), retry);
    EXPECT_TRUE(schedule.fails("far")) << "the server was not asked";
    now = *retry;
    EXPECT_FALSE(taken()->files_only);
    run_far(SetOutcome::refused);
    change();
    EXPECT_FALSE(taken()->files_only) << "what the server said then is kept nowhere, and may be accepted";
    run_far(SetOutcome::replaced);
    change();
    EXPECT_TRUE(taken()->files_only);
    run_far(SetOutcome::failed); // the file
    EXPECT_EQ(schedule.next_of("far"), now + 7500ms);
}

// A long list has a refresh of its own, so that the others do not wait for it.
TEST_F(ScheduleTest, ALongListIsRefreshedByItself) {
    CycleReport first = report(SetOutcome::replaced);
    first.sets[1].last_good->entries = long_list + 1;
    auto refresh = schedule.take_refresh(now, room);
    ASSERT_TRUE(refresh);
    EXPECT_EQ(refresh->sets, (std::set<std::string>{"a", "b"})) << "nobody knows yet how long they are";
    EXPECT_TRUE(refresh->is_long);
    schedule.refreshed(refresh->sets);
    schedule.done(*schedule.take(now), first, now);
    now += 2h;
    refresh = schedule.take_refresh(now, room);
    EXPECT_EQ(refresh->sets, std::set<std::string>{"a"}) << "it has been due for longer";
    EXPECT_FALSE(refresh->is_long);
    refresh = schedule.take_refresh(now, {.near = true});
    EXPECT_FALSE(refresh) << "there is no room for long ones";
    refresh = schedule.take_refresh(now, room);
    EXPECT_EQ(refresh->sets, std::set<std::string>{"b"});
    EXPECT_TRUE(refresh->is_long);
    // While it is built, the other changes, and comes into force.
    schedule.refreshed({"a"});
    EXPECT_EQ(schedule.take(now)->sets, std::set<std::string>{"a"});
}

TEST_F(ScheduleTest, SetsThatChangeTogetherAreAtWorkTogether) {
    begin();
    schedule.lists_changed({"a"}, now);
    now += 10ms;
    auto refresh = schedule.take_refresh(now, room);
    ASSERT_TRUE(refresh);
    EXPECT_TRUE(schedule.join({"b"}));
    EXPECT_FALSE(schedule.join({"b"})) << "it is at work already";
    schedule.lists_changed({"b"}, now);
    now += 10ms;
    EXPECT_FALSE(schedule.take_refresh(now, room));
    schedule.refreshed({"a", "b"});
    const auto cycle = schedule.take(now);
    EXPECT_EQ(cycle->sets, (std::set<std::string>{"a", "b"}));
    EXPECT_FALSE(schedule.join({"a"})) << "its cycle is at work";
    schedule.done(*cycle, report(SetOutcome::replaced), now);
    EXPECT_EQ(schedule.take_refresh(now, room)->sets, std::set<std::string>{"b"}) << "it changed meanwhile";
}

TEST_F(ScheduleTest, AReloadKeepsTheTimesOfSetsThatStay) {
    begin();
    now += 30min;
    configuration.sets.erase(configuration.sets.begin() + 1);
    configuration.sets[0].refresh = 10min; // less than what is left of the hour
    add("c", 1h);
    schedule.follow(configuration, now);
    EXPECT_EQ(schedule.next_of("a"), now + 10min);
    EXPECT_EQ(schedule.next_of("b"), std::nullopt);
    EXPECT_EQ(schedule.next_of("c"), now);
    EXPECT_EQ(schedule.next_refresh(room), now);
    schedule.lists_changed({"b"}, now); // whose watch has not ended yet
    EXPECT_EQ(run(), std::set<std::string>{"c"});
}

} // namespace
} // namespace sieve::service
