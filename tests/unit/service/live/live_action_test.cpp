// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A live set that gets other sources and another action: both come into force at one commit.
#include <memory>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "libsieve/service/reconcile/cycle.hpp"
#include "unit/service/live/live_updater_fixture.hpp"

namespace sieve::service::live {
namespace {

class LiveActionTest : public BansKeeperTest {
  protected:
    const std::string second = files.path("second.txt");
    SetConfiguration before =
        with_action(file_set(files.feed("first.txt", {"192.0.2.1"})), SIEVE_ACTION_DROP);
    SetConfiguration after = with_action(file_set(second), SIEVE_ACTION_COUNT);

    static SetConfiguration with_action(SetConfiguration set, sieve_action action) {
        set.action = control::WantedAction{action};
        return set;
    }
    // As the daemon's cycles do.
    CycleReport run(const SetConfiguration& set, LiveUpdater* updater) {
        CycleOptions options{.ask = Ask::nothing, .on_failure = OnFailure::go_on, .sandbox = sandbox};
        options.catch_up = [&](const std::string& name, std::uint32_t map) {
            if (updater != nullptr && name == "block") updater->catch_up(map);
        };
        kernel.steps.clear();
        CycleReport report = run_cycle(kernel, configuration_of(set), state, host, options, observer).value();
        if (updater == nullptr) return report;
        updater->reconcile_soon();
        settle(*updater);
        return report;
    }
    void cycle(const SetConfiguration& set, LiveUpdater* updater = nullptr) {
        for (const HookReport& hook : run(set, updater).hooks)
            ASSERT_FALSE(hook.error) << hook.error->message;
    }
    std::unique_ptr<LiveUpdater> open_in_force(const SetConfiguration& set) {
        auto updater = open(set);
        cycle(set, updater.get());
        return updater;
    }
    // With another configuration, as after a reload.
    std::unique_ptr<LiveUpdater> read_anew(const SetConfiguration& set) {
        cycle(set);
        return open(set);
    }
    // The set in force has this address and not the other one, and this action.
    void expect_in_force(const std::string& has, const std::string& has_not, sieve_action action,
                         const std::string& when) {
        SCOPED_TRACE(when);
        EXPECT_TRUE(in_force_has(has));
        EXPECT_FALSE(in_force_has(has_not));
        for (const kernel::SetInForce& set : kernel.at(point).table.sets)
            EXPECT_EQ(set.action, action) << set.name;
    }
    void expect_before(const std::string& when) {
        expect_in_force("192.0.2.1", "192.0.2.2", SIEVE_ACTION_DROP, when);
    }
    void expect_after(const std::string& when) {
        expect_in_force("192.0.2.2", "192.0.2.1", SIEVE_ACTION_COUNT, when);
    }
};

TEST_F(LiveActionTest, ComesWithTheListOfTheNewSources) {
    { const auto updater = open_in_force(before); }
    const auto updater = read_anew(after);
    expect_before("no list");
    files.feed("second.txt", {"192.0.2.2"});
    updater->wake();
    settle(*updater);
    expect_before("the list is ready");
    EXPECT_FALSE(updater->state().in_step);
    EXPECT_NE(last(LiveEvent::What::of_new_sources), nullptr);
    cycle(after, updater.get());
    expect_after("the cycle");
    EXPECT_EQ(kernel.count("replace"), 1U);
    EXPECT_TRUE(updater->state().in_step);
    // In place, as ever.
    files.feed("second.txt", {"192.0.2.2", "192.0.2.3"});
    updater->wake();
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    cycle(after, updater.get());
    EXPECT_EQ(kernel.count("replace"), 0U);
}

TEST_F(LiveActionTest, AProcessThatDiesLeavesBothOrNeither) {
    { const auto updater = open_in_force(before); }
    files.feed("second.txt", {"192.0.2.2"});
    { const auto dies_before_the_cycle = read_anew(after); }
    expect_before("it died");
    std::filesystem::remove(second); // nobody can ask for it
    cycle(after);
    expect_after("the first cycle");
    const auto updater = open(after);
    expect_after("it is followed again");
}

// Both are in force, and the record does not know it.
TEST_F(LiveActionTest, AProcessThatDiesInTheCycleLeavesBoth) {
    { const auto updater = open_in_force(before); }
    files.feed("second.txt", {"192.0.2.2"});
    { const auto updater = read_anew(after); }
    const SetRecord record = *state.named("block");
    cycle(after);
    ASSERT_TRUE(state.commit("block", record));
    const auto updater = read_anew(before);
    expect_after("the list before is ready");
    cycle(before, updater.get());
    expect_before("the cycle");
}

TEST_F(LiveActionTest, ACycleThatDoesNotComeIsNotWaitedForAnyLonger) {
    { const auto updater = open_in_force(before); }
    files.feed("second.txt", {"192.0.2.2"});
    const auto updater = read_anew(after);
    now += 3s;
    settle(*updater);
    expect_before("it may still come");
    now += 2s;
    settle(*updater);
    expect_in_force("192.0.2.2", "192.0.2.1", SIEVE_ACTION_DROP, "it did not come");
    ASSERT_NE(last(LiveEvent::What::remark), nullptr);
    EXPECT_EQ(
        last(LiveEvent::What::remark)->text,
        "set block: its new list comes into force before its new action, which did not come within 5 s");
    EXPECT_TRUE(updater->state().in_step);
    cycle(after, updater.get());
    expect_after("it came");
}

TEST_F(LiveActionTest, AnImageThatCannotBeMadeIsNotWaitedForAnyLonger) {
    { const auto updater = open_in_force(before); }
    files.feed("second.txt", {"192.0.2.2"});
    cycle(after);
    sandbox.run = [](const ChildOrder& child) -> Result<ChildEnd> {
        if (std::holds_alternative<BuildOrder>(read_order(child.message).value().order))
            return bad_input("no room to build");
        return test::work_in_process(child);
    };
    const auto updater = open(after);
    settle(*updater);
    expect_before("no image");
    EXPECT_EQ(updater->state().last_error, "set block: no room to build");
    now += 5s;
    settle(*updater);
    expect_in_force("192.0.2.2", "192.0.2.1", SIEVE_ACTION_DROP, "in place");
    cycle(after, updater.get());
    expect_after("the cycle");
}

// The journal has it, so that nothing is lost.
TEST_F(LiveActionTest, WhatWaitedIsInTheJournalAfterwards) {
    { const auto updater = open_in_force(before); }
    files.feed("second.txt", {"192.0.2.2"});
    {
        const auto updater = read_anew(after);
        now += 5s;
        settle(*updater);
    }
    std::filesystem::remove(second);
    const auto updater = open(after);
    EXPECT_EQ(updater->state().entries, 1U);
    expect_in_force("192.0.2.2", "192.0.2.1", SIEVE_ACTION_DROP, "opened anew");
}

TEST_F(LiveActionTest, AHookThatRefusesBothGetsTheListInPlace) {
    { const auto updater = open_in_force(before); }
    files.feed("second.txt", {"192.0.2.2"});
    const auto updater = read_anew(after);
    kernel.before("replace", [](const std::string&) { return kernel_refused("Out of memory"); });
    EXPECT_TRUE(run(after, updater.get()).hooks.at(0).error);
    expect_in_force("192.0.2.2", "192.0.2.1", SIEVE_ACTION_DROP, "refused");
    kernel.allow("replace");
    cycle(after, updater.get());
    expect_after("the next cycle");
}

TEST_F(LiveActionTest, AnotherReloadMeanwhile) {
    { const auto updater = open_in_force(before); }
    files.feed("second.txt", {"192.0.2.2"});
    { const auto updater = read_anew(after); }
    {
        const auto updater = read_anew(before);
        expect_before("all as it was");
        cycle(before, updater.get());
        expect_before("and stays so");
    }
    { const auto updater = read_anew(after); }
    const SetConfiguration third =
        with_action(file_set(files.feed("third.txt", {"192.0.2.3"})), SIEVE_ACTION_PASS);
    const auto updater = read_anew(third);
    expect_before("a third one");
    cycle(third, updater.get());
    expect_in_force("192.0.2.3", "192.0.2.2", SIEVE_ACTION_PASS, "the third one");
}

// A set that follows bans has its prefixes in a set beside it.
TEST_F(LiveActionTest, PrefixesAndBansComeWithIt) {
    const auto list = [&](const std::string& set) {
        const Image image =
            Image::load(std::filesystem::path(state.image_path(set, state.named(set)->identity))).value();
        return service::identity_text(image.file());
    };
    const auto ranges_in_force = [&] {
        return service::identity_text(kernel.open_filter(map_id("block-ranges")).value()->file());
    };
    before.sources = {BanSpec{}, FileSpec{files.feed("first.txt", {"192.0.2.1", "198.51.100.0/24"})}};
    after.sources = {BanSpec{}, FileSpec{second}};
    { const auto updater = open_in_force(before); }
    const std::string ranges = ranges_in_force();
    const auto updater = read_anew(after);
    change({ban("192.0.2.7")}, *updater);
    EXPECT_TRUE(in_force_has("192.0.2.7")) << "no list of the new sources waits";
    expect_before("no list");
    files.feed("second.txt", {"192.0.2.2", "203.0.113.0/24"});
    updater->wake();
    settle(*updater);
    change({ban("192.0.2.8")}, *updater);
    EXPECT_TRUE(updater->state().settles);
    expect_before("the list is ready");
    EXPECT_EQ(ranges_in_force(), ranges);
    cycle(after, updater.get());
    expect_after("the cycle");
    EXPECT_EQ(kernel.count("replace"), 1U);
    EXPECT_TRUE(in_force_has("192.0.2.7"));
    EXPECT_TRUE(in_force_has("192.0.2.8"));
    EXPECT_NE(ranges_in_force(), ranges);
    EXPECT_EQ(ranges_in_force(), list("block-ranges"));
    EXPECT_FALSE(updater->state().settles);
}

// A list of prefixes only changes the set beside it.
TEST_F(LiveActionTest, PrefixesAloneWaitToo) {
    before.sources = {BanSpec{}, FileSpec{files.feed("first.txt", {"198.51.100.0/24"})}};
    after.sources = {BanSpec{}, FileSpec{second}};
    { const auto updater = open_in_force(before); }
    const std::uint32_t ranges = map_id("block-ranges");
    files.feed("second.txt", {"203.0.113.0/24"});
    const auto updater = read_anew(after);
    EXPECT_EQ(map_id("block-ranges"), ranges);
    EXPECT_EQ(kernel.at(point).table.find("block-ranges")->action, SIEVE_ACTION_DROP);
    now += 5s;
    settle(*updater);
    EXPECT_NE(map_id("block-ranges"), ranges) << "no cycle came";
}

// What one source says waits for the others, and then no longer.
TEST_F(LiveActionTest, APartOfTheListWaitsForTheOthers) {
    before.sources = {BanSpec{}, FileSpec{files.feed("first.txt", {"192.0.2.1"})}};
    after.sources = {stream_set().sources.front(), FileSpec{second}};
    { const auto updater = open_in_force(before); }
    answer = Decisions{.added = {entry("192.0.2.2", 1, now + 1h)}};
    cycle(after);
    const auto updater = open(after);
    settle(*updater);
    expect_before("the file is not there");
    now += 5s;
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    files.feed("second.txt", {"192.0.2.3"});
    updater->wake();
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_FALSE(in_force_has("192.0.2.3"));
    cycle(after, updater.get());
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    expect_after("all have said their lists");
}

} // namespace
} // namespace sieve::service::live
