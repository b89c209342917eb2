// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/live_updater.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "libsieve/service/reconcile/list_owner.hpp"
#include "unit/messages.hpp"
#include "unit/service/live/live_updater_fixture.hpp"

namespace sieve::service::live {
namespace {

TEST_F(LiveUpdaterTest, AStreamsSetAndItsRangeSetHaveImagesFromTheStart) {
    const auto updater = open(stream_set());
    EXPECT_TRUE(state.read("block", observer.remark));
    EXPECT_TRUE(state.read("block-ranges", observer.remark));
    EXPECT_TRUE(asked.empty());
}

TEST_F(LiveUpdaterTest, FollowsTheStream) {
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h), entry("198.51.100.0/24", 2, now + 1h)}};
    EXPECT_EQ(settle(*updater), now + 10s);
    EXPECT_EQ(asked, std::vector{Fetch::whole_list});
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(updater->state().entries, 1U);
    EXPECT_EQ(updater->state().ranges, 1U);
    EXPECT_TRUE(updater->state().in_step);
    // The range set was swapped.
    EXPECT_EQ(identity_text(kernel.open_filter(map_id("block-ranges")).value()->file()),
              state.read("block-ranges", observer.remark)->identity);
    now += 10s;
    answer = Decisions{.added = {entry("192.0.2.2", 3, now + 1h)}, .deleted = {entry("192.0.2.1", 1)}};
    settle(*updater);
    EXPECT_EQ(asked, (std::vector{Fetch::whole_list, Fetch::difference}));
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
}

TEST_F(LiveUpdaterTest, TheRecordSaysOfWhichSourcesItsListIs) {
    const auto sources = [&] { return identities_of(state.read("block", observer.remark)->sources); };
    const std::string first = files.feed("first.txt", {"192.0.2.1"});
    const std::string second = files.path("second.txt");
    {
        const auto updater = open(file_set(first));
        EXPECT_EQ(sources(), std::set{first});
        put_in_force();
    }
    const SetConfiguration other = file_set(second);
    {
        const auto updater = open(other); // the file is not there
        EXPECT_EQ(sources(), std::set{first});
        EXPECT_TRUE(is_of_other_sources(*state.read("block", observer.remark), other));
        EXPECT_EQ(last(LiveEvent::What::of_new_sources), nullptr);
        files.feed("second.txt", {"192.0.2.2"});
        updater->wake();
        settle(*updater);
        EXPECT_EQ(sources(), std::set{second});
        EXPECT_NE(last(LiveEvent::What::of_new_sources), nullptr);
        EXPECT_TRUE(in_force_has("192.0.2.2"));
        EXPECT_FALSE(in_force_has("192.0.2.1"));
    }
    events.clear();
    const auto updater = open(other);
    EXPECT_EQ(last(LiveEvent::What::of_new_sources), nullptr); // nothing new
}

TEST_F(LiveUpdaterTest, ARenamedSetKeepsWhatItHas) {
    keep_for_a_while();
    answer.reset();
    SetConfiguration renamed = stream_set();
    renamed.name = "again";
    EXPECT_EQ(take_over_renamed(configuration_of(renamed), state, observer), std::set<std::string>{"again"});
    const auto updater = open(renamed);
    EXPECT_EQ(updater->state().entries, 1U);
    EXPECT_EQ(updater->state().ranges, 1U);
    EXPECT_FALSE(state.named("block"));
    EXPECT_FALSE(state.named("block-ranges"));
    // One of another server is another set.
    SetConfiguration other = renamed;
    other.name = "other";
    std::get<CrowdsecSpec>(other.sources.front()).url = "http://127.0.0.1:8081";
    EXPECT_TRUE(take_over_renamed(configuration_of(other), state, observer).empty());
    EXPECT_FALSE(state.named("other"));
}

TEST_F(LiveUpdaterTest, ARenamedSetKeepsItsBans) {
    SetConfiguration set = stream_set();
    set.sources = {BanSpec{}};
    const auto ban = [&](const std::string& name) {
        ASSERT_TRUE(BanLedger(files.path("state"), name)
                        .append({{.prefix = test::prefix_of("192.0.2.1"), .ban = {.since = now}}}));
        set.name = name;
        settle(*open(set));
    };
    ban("block");
    set.name = "again";
    set.guards.most_growth = 3; // other options are no other bans
    EXPECT_FALSE(take_over_renamed(configuration_of(set), state, observer).empty());
    EXPECT_EQ(open(set)->state().entries, 1U);
    EXPECT_EQ(BanLedger(files.path("state"), "again").bans(now)->size(), 1U);
    // Of two that are gone, nobody knows which one it was.
    ban("other");
    set.name = "one";
    EXPECT_TRUE(take_over_renamed(configuration_of(set), state, observer).empty());
    EXPECT_EQ(open(set)->state().entries, 0U);
    EXPECT_TRUE(state.named("again"));
    EXPECT_TRUE(state.named("other"));
}

// And gets another list besides: it is the one that had the bans.
TEST_F(LiveUpdaterTest, ASetThatIsRenamedAndGetsOtherSourcesKeepsItsBans) {
    SetConfiguration set = stream_set();
    const std::string list = files.path("list");
    std::ofstream(list) << "192.0.2.2\n";
    set.sources = {BanSpec{}, FileSpec{list}};
    ASSERT_TRUE(BanLedger(files.path("state"), "block")
                    .append({{.prefix = test::prefix_of("192.0.2.1"), .ban = {.since = now}}}));
    settle(*open(set));
    set.name = "again";
    set.sources.back() = FileSpec{files.path("nowhere")};
    EXPECT_EQ(take_over_renamed(configuration_of(set), state, observer), std::set<std::string>{"again"});
    const auto updater = open(set);
    EXPECT_EQ(updater->state().entries, 2U) << "its list stays until the new one has been read";
    EXPECT_EQ(BanLedger(files.path("state"), "again").bans(now)->size(), 1U);
    // A list that both have is no reason to take the bans of a set that goes on.
    SetConfiguration other = set;
    other.name = "other";
    Configuration both = configuration_of(set);
    both.sets.push_back(other);
    EXPECT_TRUE(take_over_renamed(both, state, observer).empty());
    EXPECT_FALSE(state.named("other"));
    // Nor are these the bans of a set that was there before, and keeps its name as the other one does.
    SetConfiguration follower = stream_set();
    follower.name = "follower";
    settle(*open(follower));
    follower.sources = set.sources;
    set.sources = {FileSpec{files.path("elsewhere")}};
    both = configuration_of(follower);
    both.sets.push_back(set);
    EXPECT_TRUE(take_over_renamed(both, state, observer).empty());
}

// Answers number their origins as they come.
TEST_F(LiveUpdaterTest, CountsDecisionsByOrigin) {
    const auto updater = open(stream_set());
    const auto counts = [&] {
        std::string text;
        for (const LiveUpdater::OriginCount& count : updater->state().origins)
            text += count.origin + ' ' + std::to_string(count.ipv4) + ' ' + std::to_string(count.ipv6) + ';';
        return text;
    };
    answer = Decisions{.added = {entry("192.0.2.1", entry_id(1, 1), now + 1h),
                                 entry("192.0.2.1", entry_id(2, 2), now + 1h),
                                 entry("198.51.100.0/24", entry_id(3, 2), now + 1h),
                                 entry("2001:db8::1", entry_id(4, 2), now + 1min)},
                       .origins = {"cscli", "CAPI"}};
    settle(*updater);
    EXPECT_EQ(counts(), "CAPI 2 1;cscli 1 0;");
    now += 10s;
    answer =
        Decisions{.deleted = {entry("192.0.2.1", entry_id(2, 1)), entry("198.51.100.0/24", entry_id(9, 1))},
                  .origins = {"CAPI"}};
    settle(*updater);
    EXPECT_EQ(counts(), "CAPI 1 1;cscli 1 0;");
    now += 1min;
    answer = Decisions{};
    settle(*updater);
    EXPECT_EQ(counts(), "CAPI 1 0;cscli 1 0;");
}

TEST_F(LiveUpdaterTest, DecisionsStayAndEndWhileTheApiIsAway) {
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1min), entry("192.0.2.2", 2, now + 2h),
                                 entry("198.51.100.0/24", 3, now + 1min)}};
    settle(*updater);
    answer.reset();
    events.clear();
    now += 10s;
    settle(*updater);
    EXPECT_FALSE(updater->state().in_step);
    EXPECT_EQ(updater->state().last_error, "the API is away");
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    now += 10s;
    settle(*updater);
    EXPECT_EQ(std::count_if(events.begin(), events.end(),
                            [](const LiveEvent& event) { return event.what == LiveEvent::What::failed; }),
              1); // told once
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    now += 40s;
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_EQ(updater->state().ranges, 0U);
    // It comes back without the second decision.
    answer = Decisions{.added = {entry("192.0.2.3", 9, now + 1h)}};
    now += 2min;
    asked.clear();
    settle(*updater);
    EXPECT_EQ(asked, std::vector{Fetch::whole_list});
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_TRUE(updater->state().in_step);
}

// Prefixes come with a new image, and a table that is not in force takes none.
TEST_F(LiveUpdaterTest, WhatCameOnProbationIsInForceSoonAfterTheChangeIsTakenBack) {
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    settle(*updater);
    on_probation_without_it();
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h), entry("198.51.100.0/24", 2, now + 1h)}};
    now += 10s;
    settle(*updater);
    take_back();
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    const std::uint32_t before = map_id("block-ranges");
    answer = Decisions{};
    now += 5s;
    settle(*updater);
    ASSERT_NE(map_id("block-ranges"), before);
    EXPECT_EQ(identity_text(kernel.open_filter(map_id("block-ranges")).value()->file()),
              state.read("block-ranges", observer.remark)->identity);
}

// The set is built of nothing meanwhile, and what may come back has its members.
TEST_F(LiveUpdaterTest, AListThatIsGoneAwaitsTheSourceWhereTheSetMayComeBack) {
    keep_for_a_while();
    for (const std::string set : {"block", "block-ranges"})
        std::filesystem::remove_all(files.path("state/sets/") + set);
    on_probation_without_it();
    answer.reset();
    settle(*open(stream_set()));
    take_back();
    EXPECT_TRUE(in_force_has("192.0.2.1"));
}

TEST_F(LiveUpdaterTest, ListsThatWereLostAreBuiltOfWhatTheSourceSays) {
    keep_for_a_while();
    for (const std::string set : {"block", "block-ranges"})
        std::filesystem::resize_file(file_of(set, ".list"), 25);
    const std::string identity = identity_in_force();
    const std::uint32_t ranges = map_id("block-ranges");
    const auto updater = open_while_the_api_is_away();
    std::set<std::string> told;
    for (const LiveEvent& event : events)
        if (event.what == LiveEvent::What::remark) {
            EXPECT_TRUE(event.text.starts_with("set " + event.set + ": "))
                << event.text << ", of " << event.set;
            told.insert(event.set);
        }
    EXPECT_EQ(told, (std::set<std::string>{"block", "block-ranges"}));
    // It comes back, and has no prefix any more.
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h), entry("192.0.2.2", 3, now + 1h)}};
    now += 10min;
    settle(*updater);
    EXPECT_NE(identity_in_force(), identity);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_NE(map_id("block-ranges"), ranges);
    EXPECT_TRUE(updater->state().in_step);
}

// Such as after somebody moved the state directory away.
TEST_F(LiveUpdaterTest, NoEmptyImageTakesThePlaceOfAFilterInForce) {
    keep_for_a_while();
    std::filesystem::remove_all(files.path("state/sets"));
    const std::string identity = identity_in_force();
    const std::uint32_t ranges = map_id("block-ranges");
    const auto updater = open_while_the_api_is_away();
    EXPECT_FALSE(updater->state().in_step);
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h), entry("198.51.100.0/25", 3, now + 1h)}};
    now += 10min;
    settle(*updater);
    EXPECT_NE(identity_in_force(), identity);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keys_in_force(), 1U);
    EXPECT_NE(map_id("block-ranges"), ranges);
    EXPECT_TRUE(updater->state().in_step);
}

// No interface that comes may be left without, and the lists are all that is known.
TEST_F(LiveUpdaterTest, AnImageThatIsGoneIsMadeOfItsListAtTheStart) {
    keep_for_a_while();
    for (const std::string set : {"block", "block-ranges"}) std::filesystem::remove(file_of(set, ".sieve"));
    answer.reset();
    const auto updater = open(stream_set());
    settle(*updater);
    for (const std::string set : {"block", "block-ranges"})
        EXPECT_TRUE(state.read(set, observer.remark)) << set;
    EXPECT_EQ(updater->state().entries, 1U);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keys_in_force(), 1U);
    EXPECT_EQ(ranges_in_force(), 1U);
}

// Such as one that notes the action, while the image is being built.
TEST_F(LiveUpdaterTest, ARecordOfTheLastImageTakesNoListFromTheNext) {
    const auto updater = open(stream_set());
    put_in_force();
    settle(*updater);
    std::filesystem::remove(file_of("block", ".sieve"));
    events.clear();
    updater->reconcile_soon();
    updater->step();
    ASSERT_TRUE(updater->state().at_work);
    ASSERT_TRUE(state.commit("block", *state.named("block")));
    settle(*updater);
    EXPECT_EQ(last(LiveEvent::What::failed), nullptr) << last(LiveEvent::What::failed)->error->message;
    EXPECT_NE(last(LiveEvent::What::rebuilt), nullptr);
    EXPECT_FALSE(std::filesystem::exists(files.path("state/sets/block/next.list")));
}

TEST_F(LiveUpdaterTest, AnImageThatIsGoneIsMadeAnew) {
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h), entry("198.51.100.0/24", 2, now + 1h)}};
    settle(*updater);
    answer.reset();
    now += 1min;
    for (const char* kind : {".sieve", ".list"}) {
        for (const std::string set : {"block", "block-ranges"}) std::filesystem::remove(file_of(set, kind));
        events.clear();
        updater->reconcile_soon();
        settle(*updater);
        for (const std::string set : {"block", "block-ranges"}) {
            EXPECT_TRUE(state.read(set, observer.remark)) << set << kind;
            EXPECT_TRUE(std::filesystem::exists(file_of(set, ".list"))) << set << kind;
        }
        ASSERT_NE(last(LiveEvent::What::rebuilt), nullptr);
        EXPECT_FALSE(last(LiveEvent::What::rebuilt)->in_step) << "the API is away, whatever is built";
        EXPECT_TRUE(in_force_has("192.0.2.1"));
        EXPECT_EQ(ranges_in_force(), 1U);
    }
    events.clear();
    updater->reconcile_soon();
    settle(*updater);
    EXPECT_EQ(last(LiveEvent::What::rebuilt), nullptr) << "all is there";
}

// A set that comes in place of another one, at another hook: the table in force stays until it has its list.
TEST_F(LiveUpdaterTest, NoEmptyImageTakesThePlaceOfAnotherSet) {
    {
        const auto updater = open(stream_set());
        put_in_force();
    }
    SetConfiguration other = stream_set();
    other.name = "other";
    point = kernel::HookPoint::ingress;
    answer.reset();
    const auto updater = open(other);
    settle(*updater);
    EXPECT_FALSE(state.read("other", observer.remark));
    EXPECT_FALSE(state.read("other-ranges", observer.remark));
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h)}};
    now += 10min;
    settle(*updater);
    EXPECT_TRUE(state.read("other", observer.remark));
    EXPECT_TRUE(state.read("other-ranges", observer.remark));
}

// Without its members, what judges behind the set would drop them.
TEST_F(LiveUpdaterTest, ASetThatLetsPassWaitsForItsList) {
    SetConfiguration set = stream_set();
    set.action = control::WantedAction{.action = SIEVE_ACTION_PASS};
    answer.reset();
    const auto updater = open(set);
    settle(*updater);
    EXPECT_FALSE(state.read("block", observer.remark));
    EXPECT_FALSE(state.read("block-ranges", observer.remark));
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h), entry("198.51.100.0/24", 2, now + 1h)}};
    now += 10min;
    settle(*updater);
    EXPECT_TRUE(state.read("block", observer.remark));
    EXPECT_TRUE(state.read("block-ranges", observer.remark));
    put_in_force();
    EXPECT_TRUE(in_force_has("192.0.2.1"));
}

TEST_F(LiveUpdaterTest, WhatCannotBeSwappedInAtTheStartIsSwappedInLater) {
    SetConfiguration set = stream_set();
    {
        const auto updater = open(set);
        put_in_force();
        put_in_force("block-ranges");
        settle(*updater);
    }
    const std::uint32_t ranges = map_id("block-ranges");
    set.guards.most_shrink = 0.25; // an option: the range set is built anew
    set.feed.build.bits_per_key = 30;
    kernel.refuse("test block-ranges", ErrorKind::bad_input);
    const auto updater = open(set);
    ASSERT_NE(last(LiveEvent::What::put_off), nullptr);
    EXPECT_EQ(map_id("block-ranges"), ranges);
    kernel.allow("test block-ranges");
    now += 10s;
    settle(*updater);
    EXPECT_NE(map_id("block-ranges"), ranges);
}

TEST_F(LiveUpdaterTest, ARangeSetThatOneHookRefusesIsSwappedInThereLater) {
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    put_in_force("block-ranges", kernel::HookPoint::ingress);
    answer = Decisions{.added = {entry("198.51.100.0/24", 1, now + 1h)}};
    const std::uint32_t ranges = map_id("block-ranges", kernel::HookPoint::ingress);
    kernel.once("test", [this] {
        kernel.once("test", [this] { kernel.refuse("test block-ranges", ErrorKind::bad_input); });
    });
    step_with_answer(*updater);
    ASSERT_NE(last(LiveEvent::What::put_off), nullptr);
    EXPECT_EQ(map_id("block-ranges", kernel::HookPoint::ingress), ranges);
    kernel.allow("test");
    kernel.allow("test block-ranges");
    now += 10s;
    answer = Decisions{};
    settle(*updater);
    EXPECT_NE(map_id("block-ranges", kernel::HookPoint::ingress), ranges);
}

// Such as the first one of a new database.
TEST_F(LiveUpdaterTest, AnEmptyWholeListEmptiesNeitherHalf) {
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{};
    for (const std::string& address : test::addresses(200))
        answer->added.push_back(entry(address, answer->added.size(), now + 24h));
    for (unsigned i = 0; i < 120; i++)
        answer->added.push_back(entry("10." + std::to_string(i) + ".0.0/24", 1000 + i, now + 24h));
    const Decisions all = *answer;
    settle(*updater);
    EXPECT_EQ(updater->state().ranges, 120U);
    const auto only = [&](bool singles) {
        Decisions some;
        for (const TimedEntry& one : all.added)
            if (one.prefix.is_single() == singles) some.added.push_back(one);
        return some;
    };
    for (const Decisions& short_list : {Decisions{}, only(true), only(false)}) {
        answer = short_list;
        now += 1h;
        settle(*updater);
        EXPECT_EQ(asked.back(), Fetch::whole_list);
        EXPECT_EQ(updater->state().entries, 200U);
        EXPECT_EQ(updater->state().ranges, 120U);
        EXPECT_FALSE(updater->state().in_step);
    }
    // One by one they may all go.
    answer = all;
    now += 1h;
    settle(*updater);
    EXPECT_TRUE(updater->state().in_step);
    answer = Decisions{.deleted = only(false).added};
    now += 10s;
    settle(*updater);
    EXPECT_EQ(updater->state().ranges, 0U);
    EXPECT_TRUE(updater->state().in_step);
}

TEST_F(LiveUpdaterTest, WhenTheClockIsSetForwardNothingEndsBeforeTheSourceSaysSo) {
    uptime = 1h;
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 20min), entry("192.0.2.2", 2, now + 20min),
                                 entry("198.51.100.0/24", 3, now + 20min)}};
    settle(*updater);
    answer.reset(); // the API is away
    now += 24h;
    *uptime += 10s;
    EXPECT_GT(settle(*updater), now);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(updater->state().ranges, 1U);
    now += 2min;
    *uptime += 2min;
    answer =
        Decisions{.added = {entry("192.0.2.1", 1, now + 20min), entry("198.51.100.0/24", 3, now + 20min)}};
    settle(*updater);
    EXPECT_EQ(asked.back(), Fetch::whole_list);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    // Time that passes, such as while the machine sleeps, ends what it should.
    answer.reset();
    now += 21min;
    *uptime += 21min;
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_EQ(updater->state().ranges, 0U);
}

TEST_F(LiveUpdaterTest, WhenTheClockIsSetBackTheSourceIsStillAsked) {
    uptime = 1h;
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h)}};
    settle(*updater);
    now -= 24h * 365;
    *uptime += 10s;
    answer = Decisions{.added = {entry("192.0.2.2", 2, now + 20min)}};
    settle(*updater);
    EXPECT_EQ(asked.back(), Fetch::whole_list);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    now += 21min;
    *uptime += 21min;
    answer.reset();
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.2"));
}

// The ends of an answer are reckoned from when it was asked for.
TEST_F(LiveUpdaterTest, WhenTheClockIsSetWhileTheApiIsAskedItIsAskedAgain) {
    uptime = 1h;
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    settle(*updater);
    now += 10s;
    *uptime += 10s;
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 20min)}};
    api_hangs = true;
    updater->step();
    now -= 24h;
    updater->step();
    answer_at_last();
    settle(*updater);
    EXPECT_EQ(asked, (std::vector{Fetch::whole_list, Fetch::difference, Fetch::whole_list}));
    EXPECT_EQ(last(LiveEvent::What::failed), nullptr);
    EXPECT_TRUE(updater->state().in_step);
}

TEST_F(LiveUpdaterTest, WhatIsDueWhileTheApiIsAskedIsAskedForNext) {
    host.addresses = {test::host_address("192.0.2.1"), test::host_address("198.51.100.254")};
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h)}};
    settle(*updater);
    now += 10s;
    api_hangs = true;
    updater->step();
    host.addresses = {test::host_address("198.51.100.254")};
    updater->step();
    answer_at_last();
    settle(*updater);
    EXPECT_EQ(asked, (std::vector{Fetch::whole_list, Fetch::difference, Fetch::whole_list}));
    EXPECT_TRUE(in_force_has("192.0.2.1"));
}

TEST_F(LiveUpdaterTest, WhatTheHostNoLongerDependsOnIsTaken) {
    host.addresses = {test::host_address("192.0.2.1"), test::host_address("198.51.100.254")};
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h), entry("198.51.100.0/24", 3, now + 1h)}};
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_EQ(updater->state().ranges, 0U);
    host.addresses.clear();
    now += 1s;
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(updater->state().ranges, 1U);
}

TEST_F(LiveUpdaterTest, WhatTheHostComesToDependOnIsRemoved) {
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {entry("192.0.2.1", 1, now + 1h), entry("192.0.2.2", 2, now + 1h),
                                 entry("198.51.100.0/24", 3, now + 1h)}};
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    host.addresses = {test::host_address("192.0.2.1"), test::host_address("198.51.100.254")};
    now += 1s;
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_EQ(updater->state().ranges, 0U);
    // Nor does it come back.
    now += 1h;
    settle(*updater);
    EXPECT_EQ(asked.back(), Fetch::whole_list);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_EQ(updater->state().ranges, 0U);
}

TEST_F(LiveUpdaterTest, AnAnswerThatAGuardRefusesChangesNothingAndIsAskedForAgain) {
    SetConfiguration set = stream_set();
    const auto updater = open(set);
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{};
    for (const std::string& address : test::addresses(200))
        answer->added.push_back(entry(address, answer->added.size(), now + 24h));
    settle(*updater);
    EXPECT_EQ(updater->state().entries, 200U);
    now += 1h; // the whole list is asked for
    answer = Decisions{};
    settle(*updater);
    EXPECT_EQ(updater->state().entries, 200U);
    EXPECT_TRUE(in_force_has("11.0.0.7"));
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    EXPECT_EQ(last(LiveEvent::What::failed)->guard, Guard::shrink);
    EXPECT_FALSE(updater->state().in_step);
    now += 1min;
    settle(*updater);
    EXPECT_EQ(asked.back(), Fetch::whole_list);
}

// A prefix that takes the place of addresses comes first, but not with a list that may have been cut short.
TEST_F(LiveUpdaterTest, AnAnswerThatAGuardRefusesBringsNoPrefix) {
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{};
    for (const std::string& address : test::addresses(200))
        answer->added.push_back(entry(address, answer->added.size(), now + 24h));
    settle(*updater);
    now += 1h; // the whole list is asked for
    answer = Decisions{.added = {entry("11.0.0.0/28", 1, now + 24h)}};
    settle(*updater);
    EXPECT_EQ(updater->state().entries, 200U);
    EXPECT_EQ(updater->state().ranges, 0U);
}

// As `delete` refuses it. The list stays as it was until the session is over.
TEST_F(LiveUpdaterTest, WhatLetsAnAdministratorInDoesNotLeave) {
    SetConfiguration set = file_set(files.feed("friends.txt", {"203.0.113.5", "192.0.2.1", "192.0.2.2"}));
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    const auto updater = open(set);
    put_in_force();
    kernel::TableInForce& table = kernel.at(point).table;
    table.sets.front().action = SIEVE_ACTION_PASS;
    table.default_action = SIEVE_ACTION_DROP;
    host.addresses = {{.address = prefix_of("203.0.113.5").address,
                       .what = "an administrator's session",
                       .role = control::HostRole::session,
                       .interface = "eth0",
                       .ours = prefix_of("192.0.2.9").address,
                       .our_port = 22,
                       .their_port = 50'000}};
    const auto list = [&](const std::vector<std::string>& entries) {
        files.feed("friends.txt", entries);
        updater->wake();
        settle(*updater);
    };
    for (const auto& entries :
         {std::vector<std::string>{"192.0.2.1", "192.0.2.2"}, {"192.0.2.1", "192.0.2.3"}}) {
        events.clear();
        list(entries);
        EXPECT_TRUE(in_force_has("203.0.113.5"));
        EXPECT_TRUE(in_force_has("192.0.2.2"));
        EXPECT_FALSE(in_force_has("192.0.2.3"));
        ASSERT_NE(last(LiveEvent::What::failed), nullptr);
        EXPECT_EQ(last(LiveEvent::What::failed)->guard, Guard::lockout);
        EXPECT_EQ(
            last(LiveEvent::What::failed)->error->message,
            "refused: set block: eth0 xdp: no set lets 203.0.113.5 pass, an administrator's session, and "
            "the default is drop; nothing was changed; put what must pass into the list of a set that "
            "passes, or set protect-host = false in the [[interface]]");
        EXPECT_FALSE(updater->state().in_step);
        EXPECT_EQ(updater->state().last_error, last(LiveEvent::What::failed)->error->message);
        EXPECT_EQ(updater->state().entries, 3U);
    }
    list({"203.0.113.5", "192.0.2.3"}); // others may go
    EXPECT_TRUE(updater->state().in_step);
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    list({"192.0.2.3"});
    EXPECT_FALSE(updater->state().in_step);
    host.addresses.clear(); // it logs out
    now += 10s;
    settle(*updater);
    EXPECT_TRUE(updater->state().in_step);
    EXPECT_FALSE(in_force_has("203.0.113.5"));
}

TEST_F(LiveUpdaterTest, APrefixThatLetsAnAdministratorInDoesNotLeave) {
    SetConfiguration set = stream_set();
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    const auto updater = open(set);
    answer = Decisions{.added = {entry("203.0.113.0/24", 1, now + 2h), entry("203.0.113.0/28", 2, now + 2h),
                                 entry("198.51.100.0/24", 3, now + 2h)}};
    settle(*updater);
    put_in_force();
    put_in_force("block-ranges");
    kernel::TableInForce& table = kernel.at(point).table;
    for (kernel::SetInForce& one : table.sets) one.action = SIEVE_ACTION_PASS;
    table.default_action = SIEVE_ACTION_DROP;
    ASSERT_EQ(updater->state().ranges, 3U);
    host.addresses = {{.address = prefix_of("203.0.113.5").address,
                       .what = "an administrator's session",
                       .role = control::HostRole::session,
                       .interface = "eth0"}};
    const auto ends = [&](const std::string& prefix, std::uint64_t id) {
        now += 10s;
        answer = Decisions{.deleted = {entry(prefix, id)}};
        settle(*updater);
    };
    ends("198.51.100.0/24", 3); // others may go
    EXPECT_EQ(updater->state().ranges, 2U);
    ends("203.0.113.0/24", 1); // another one holds the address
    EXPECT_EQ(updater->state().ranges, 1U);
    EXPECT_TRUE(updater->state().in_step);
    ends("203.0.113.0/28", 2);
    EXPECT_EQ(updater->state().ranges, 1U);
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    EXPECT_EQ(last(LiveEvent::What::failed)->guard, Guard::lockout);
    expect_says(last(LiveEvent::What::failed)->error->message);
    EXPECT_FALSE(updater->state().in_step);
    host.addresses.clear();
    now += 1min;
    answer = Decisions{};
    settle(*updater);
    EXPECT_EQ(updater->state().ranges, 0U);
    EXPECT_TRUE(updater->state().in_step);
}

// One half of an answer is refused, and so is the other: both are told.
TEST_F(LiveUpdaterTest, EachHalfOfAnAnswerTellsWhyItIsRefused) {
    SetConfiguration set = stream_set();
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    const auto updater = open(set);
    answer = Decisions{.added = {entry("203.0.113.5", 1, now + 2h), entry("198.51.100.0/24", 2, now + 2h)}};
    settle(*updater);
    put_in_force();
    put_in_force("block-ranges");
    kernel::TableInForce& table = kernel.at(point).table;
    for (kernel::SetInForce& one : table.sets) one.action = SIEVE_ACTION_PASS;
    table.default_action = SIEVE_ACTION_DROP;
    host.addresses = {{.address = prefix_of("203.0.113.5").address,
                       .what = "an administrator's session",
                       .role = control::HostRole::session,
                       .interface = "eth0"}};
    events.clear();
    now += 10s;
    answer = Decisions{.added = {entry("0.0.0.0/1", 3, now + 2h)}, .deleted = {entry("203.0.113.5", 1)}};
    step_with_answer(*updater);
    std::map<std::string, std::optional<Guard>> refused;
    for (const LiveEvent& event : events)
        if (event.what == LiveEvent::What::failed) refused[event.set] = event.guard;
    EXPECT_EQ(refused.at("block"), Guard::lockout);
    ASSERT_TRUE(refused.contains("block-ranges"));
    EXPECT_EQ(refused.at("block-ranges"), Guard::growth);
}

// A change on probation keeps the prefix in force, and the address that goes meanwhile relies on it.
TEST_F(BansKeeperTest, APrefixThatLetsAnAdministratorInDoesNotLeaveLater) {
    SetConfiguration set = ban_set();
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    const auto updater = open(set);
    put_in_force();
    put_in_force("block-ranges");
    change({ban("203.0.113.5"), ban("203.0.113.0/24")}, *updater);
    kernel::TableInForce& table = kernel.at(point).table;
    for (kernel::SetInForce& one : table.sets) one.action = SIEVE_ACTION_PASS;
    table.default_action = SIEVE_ACTION_DROP;
    host.addresses = {{.address = prefix_of("203.0.113.5").address,
                       .what = "an administrator's session",
                       .role = control::HostRole::session,
                       .interface = "eth0"}};
    table.probation = std::chrono::seconds(60);
    change({unban("203.0.113.0/24")}, *updater);
    change({unban("203.0.113.5")}, *updater);
    EXPECT_FALSE(in_force_has("203.0.113.5"));
    table.probation.reset();
    const std::uint32_t before = map_id("block-ranges");
    events.clear();
    now += 5s;
    settle(*updater);
    EXPECT_EQ(map_id("block-ranges"), before);
    ASSERT_NE(last(LiveEvent::What::put_off), nullptr);
    expect_says(last(LiveEvent::What::put_off)->error->message);
    EXPECT_EQ(updater->state().lacks, last(LiveEvent::What::put_off)->error->message);
    events.clear();
    now += 5s;
    settle(*updater);
    EXPECT_EQ(last(LiveEvent::What::put_off), nullptr); // told once
    EXPECT_EQ(map_id("block-ranges"), before);
    change({ban("203.0.113.5")}, *updater);
    now += 5s;
    settle(*updater);
    EXPECT_NE(map_id("block-ranges"), before);
}

// It comes into force before the address goes, for bans and for a list.
TEST_F(BansKeeperTest, APrefixTakesThePlaceOfAnAddressThatLetsAnAdministratorIn) {
    SetConfiguration set = ban_set();
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    const std::string list = files.feed("friends.txt", {"203.0.113.7", "192.0.2.1"});
    set.sources.emplace_back(FileSpec{list});
    const auto updater = open(set);
    put_in_force();
    put_in_force("block-ranges");
    change({ban("203.0.113.5")}, *updater);
    kernel::TableInForce& table = kernel.at(point).table;
    for (kernel::SetInForce& one : table.sets) one.action = SIEVE_ACTION_PASS;
    table.default_action = SIEVE_ACTION_DROP;
    for (const char* address : {"203.0.113.5", "203.0.113.7"})
        host.addresses.push_back({.address = prefix_of(address).address,
                                  .what = "an administrator's session",
                                  .role = control::HostRole::session,
                                  .interface = "eth0"});
    change({ban("203.0.113.4/31"), unban("203.0.113.5")}, *updater);
    EXPECT_TRUE(updater->state().in_step) << updater->state().last_error;
    EXPECT_FALSE(in_force_has("203.0.113.5"));
    EXPECT_EQ(updater->state().ranges, 1U);
    files.feed("friends.txt", {"203.0.113.6/31", "192.0.2.1"});
    updater->wake();
    settle(*updater);
    EXPECT_TRUE(updater->state().in_step) << updater->state().last_error;
    EXPECT_FALSE(in_force_has("203.0.113.7"));
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(updater->state().ranges, 2U);
    files.feed("friends.txt", {"203.0.113.7", "192.0.2.1"}); // and back
    updater->wake();
    settle(*updater);
    EXPECT_TRUE(updater->state().in_step) << updater->state().last_error;
    EXPECT_TRUE(in_force_has("203.0.113.7"));
    EXPECT_EQ(updater->state().ranges, 1U);
}

// A change on probation keeps the prefix out of force.
class AwaitedPrefixTest : public BansKeeperTest {
  protected:
    void begin_probation() { kernel.at(point).table.probation = std::chrono::seconds(60); }
    void end_probation(LiveUpdater& updater) {
        kernel.at(point).table.probation.reset();
        now += 5s;
        settle(updater);
    }
    void expect_only_the_prefix(const LiveUpdater& updater) {
        EXPECT_EQ(ranges_in_force(), 1U);
        EXPECT_FALSE(in_force_has("203.0.113.1"));
        EXPECT_TRUE(updater.state().in_step);
        EXPECT_EQ(updater.state().put_off, "");
        EXPECT_FALSE(updater.state().settles);
    }
};

TEST_F(AwaitedPrefixTest, AnAddressStaysUntilThePrefixThatTakesItsPlaceIsInForce) {
    const auto updater = in_force();
    change({ban("203.0.113.1"), ban("203.0.113.2"), ban("192.0.2.1")}, *updater);
    begin_probation();
    change({ban("203.0.113.0/24"), unban("203.0.113.1"), unban("203.0.113.2"), unban("192.0.2.1")}, *updater);
    EXPECT_TRUE(in_force_has("203.0.113.1"));
    EXPECT_FALSE(in_force_has("192.0.2.1")) << "no prefix takes its place";
    ASSERT_NE(last(LiveEvent::What::put_off), nullptr);
    EXPECT_EQ(last(LiveEvent::What::put_off)->set, "block-ranges");
    EXPECT_EQ(updater->state().put_off, last(LiveEvent::What::put_off)->error->message);
    EXPECT_TRUE(updater->state().settles);
    EXPECT_FALSE(updater->state().in_step);
    change({ban("192.0.2.7"), ban("203.0.113.2")}, *updater);
    EXPECT_TRUE(in_force_has("192.0.2.7")) << "what comes does not wait";
    EXPECT_TRUE(in_force_has("203.0.113.1"));
    end_probation(*updater);
    expect_only_the_prefix(*updater);
    EXPECT_TRUE(in_force_has("203.0.113.2")) << "banned again";
    EXPECT_EQ(keys_in_force(), 2U);
}

TEST_F(AwaitedPrefixTest, AnAddressWhoseTimeEndsStays) {
    const auto updater = in_force();
    change({ban("203.0.113.1", now + 2s)}, *updater);
    begin_probation();
    change({ban("203.0.113.0/24")}, *updater);
    now += 3s;
    settle(*updater);
    EXPECT_TRUE(in_force_has("203.0.113.1"));
    end_probation(*updater);
    expect_only_the_prefix(*updater);
}

// One of two hooks has the prefix, and so the set's record has it.
TEST_F(AwaitedPrefixTest, AnAddressStaysBeyondARestart) {
    {
        const auto updater = in_force();
        put_in_force("block-ranges", kernel::HookPoint::ingress);
        change({ban("203.0.113.1")}, *updater);
        begin_probation();
        ASSERT_TRUE(ledger.append({ban("203.0.113.0/24"), unban("203.0.113.1")}));
        updater->wake();
        updater->step();
    }
    ASSERT_TRUE(in_force_has("203.0.113.1"));
    const auto updater = open(ban_set());
    settle(*updater);
    EXPECT_TRUE(in_force_has("203.0.113.1"));
    end_probation(*updater);
    expect_only_the_prefix(*updater);
}

TEST_F(AwaitedPrefixTest, AnAddressOfAListStays) {
    SetConfiguration set = ban_set();
    set.sources.emplace_back(FileSpec{files.feed("bad.txt", {"203.0.113.1", "192.0.2.1"})});
    const auto updater = open(set);
    put_in_force();
    put_in_force("block-ranges");
    settle(*updater);
    begin_probation();
    files.feed("bad.txt", {"203.0.113.0/24", "192.0.2.2"});
    updater->wake();
    settle(*updater);
    EXPECT_TRUE(in_force_has("203.0.113.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    end_probation(*updater);
    expect_only_the_prefix(*updater);
}

// The other way round.
TEST_F(AwaitedPrefixTest, APrefixStaysUntilTheAddressesThatTakeItsPlaceAreInForce) {
    const auto updater = in_force();
    change({ban("203.0.113.0/24")}, *updater);
    kernel.before("lock", [this](const std::string&) -> Status { // somebody else has it just now
        kernel.allow("lock");
        return failure(ErrorKind::busy, "the lock was refused");
    });
    const std::uint32_t before = map_id("block-ranges");
    change({unban("203.0.113.0/24"), ban("203.0.113.1")}, *updater);
    EXPECT_EQ(map_id("block-ranges"), before);
    EXPECT_FALSE(in_force_has("203.0.113.1"));
    EXPECT_NE(updater->state().put_off, "");
    now += 1s;
    settle(*updater);
    EXPECT_NE(map_id("block-ranges"), before);
    EXPECT_EQ(updater->state().put_off, "");
    EXPECT_TRUE(in_force_has("203.0.113.1"));
}

TEST_F(LiveUpdaterTest, AnUnprotectedInterfaceLosesWhatLetsAnAdministratorIn) {
    SetConfiguration set = file_set(files.feed("friends.txt", {"203.0.113.5", "192.0.2.1"}));
    set.action = control::WantedAction{SIEVE_ACTION_PASS};
    protect_host = false;
    const auto updater = open(set);
    put_in_force();
    kernel.at(point).table.sets.front().action = SIEVE_ACTION_PASS;
    kernel.at(point).table.default_action = SIEVE_ACTION_DROP;
    host.addresses = {{.address = prefix_of("203.0.113.5").address,
                       .what = "an administrator's session",
                       .role = control::HostRole::session,
                       .interface = "eth0"}};
    files.feed("friends.txt", {"192.0.2.1"});
    updater->wake();
    settle(*updater);
    EXPECT_FALSE(in_force_has("203.0.113.5"));
}

TEST_F(LiveUpdaterTest, RangesThatCoverTooMuchAreRefused) {
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {entry("0.0.0.0/1", 1, now + 1h)}};
    settle(*updater);
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    EXPECT_EQ(last(LiveEvent::What::failed)->guard, Guard::coverage);
    EXPECT_EQ(updater->state().ranges, 0U);
}

// Nor does anything else of that list come, or go.
TEST_F(BansKeeperTest, AListWhosePrefixesCoverTooMuchChangesNothing) {
    SetConfiguration set = ban_set();
    set.sources.emplace_back(FileSpec{files.feed("bad.txt", {"192.0.2.1", "192.0.2.2"})});
    const auto updater = open(set);
    put_in_force();
    put_in_force("block-ranges");
    const auto list = [&](const std::vector<std::string>& entries) {
        files.feed("bad.txt", entries);
        updater->wake();
        settle(*updater);
    };
    list({"192.0.2.1", "192.0.2.3"});
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    list({"128.0.0.0/1", "198.18.0.1"});
    EXPECT_EQ(last(LiveEvent::What::failed)->guard, Guard::coverage);
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_FALSE(in_force_has("198.18.0.1"));
    list({"192.0.2.1", "192.0.2.4"});
    EXPECT_TRUE(in_force_has("192.0.2.4"));
    EXPECT_FALSE(in_force_has("192.0.2.3"));
}

TEST_F(LiveUpdaterTest, AFullFilterIsRebuilt) {
    const auto updater = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{};
    for (std::uint64_t i = 0; i < 20000; i++)
        answer->added.push_back({{test::prefix_of("10.0.0.0").address + i}, i, now + 24h});
    settle(*updater);
    const LiveEvent* const failed = last(LiveEvent::What::failed);
    EXPECT_EQ(failed, nullptr) << failed->error->message;
    ASSERT_NE(last(LiveEvent::What::rebuilt), nullptr);
    EXPECT_EQ(last(LiveEvent::What::rebuilt)->reason, RebuildReason::no_room);
    for (std::uint64_t i = 0; i < 20000; i++)
        ASSERT_TRUE(in_force_has(Prefix{test::prefix_of("10.0.0.0").address + i}));
    EXPECT_EQ(keys_in_force(), 20000U);
}

class WatchedFileTest : public LiveUpdaterTest {
  protected:
    const std::string path = files.path("list.txt");
    void write(const std::vector<std::string>& lines) {
        files.feed("list.new", lines);
        std::filesystem::rename(files.path("list.new"), path);
    }
};

TEST_F(WatchedFileTest, OneMoreLineGoesInPlace) {
    write({"192.0.2.1", "192.0.2.2", "192.0.2.2"});
    const auto updater = open(file_set(path));
    put_in_force();
    settle(*updater);
    const std::string identity = identity_in_force();
    write({"192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3"});
    updater->wake();
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    write({"192.0.2.1", "192.0.2.2", "192.0.2.3"}); // it was there twice
    updater->wake();
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    write({"192.0.2.1", "192.0.2.3"});
    updater->wake();
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    EXPECT_EQ(keys_in_force(), 2U);
    EXPECT_EQ(identity_in_force(), identity); // all of it in place
}

// It may be half written.
TEST_F(WatchedFileTest, AFileIsNotReadBecauseOfACycle) {
    write({"192.0.2.1", "192.0.2.2"});
    const auto updater = open(file_set(path));
    put_in_force();
    settle(*updater);
    write({"192.0.2.1", "192.0.2.3"});
    put_in_force("block", kernel::HookPoint::ingress);
    updater->reconcile_soon();
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.2", kernel::HookPoint::ingress));
    updater->wake();
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.3", kernel::HookPoint::ingress));
}

TEST_F(WatchedFileTest, WhatTheHostNoLongerDependsOnIsTaken) {
    host.addresses = {test::host_address("192.0.2.1")};
    write({"192.0.2.1", "192.0.2.2"});
    const auto updater = open(file_set(path));
    put_in_force();
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    host.addresses.clear();
    now += 1s;
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keys_in_force(), 2U);
}

TEST_F(WatchedFileTest, ABrokenListChangesNothing) {
    write({"192.0.2.1", "192.0.2.2"});
    const auto updater = open(file_set(path));
    put_in_force();
    settle(*updater);
    for (const std::vector<std::string>& lines :
         {std::vector<std::string>{"192.0.2.1", "nonsense"}, {"192.0.2.1", "192.0.2.0/24"}, {}}) {
        events.clear();
        write(lines);
        updater->wake();
        settle(*updater);
        ASSERT_NE(last(LiveEvent::What::failed), nullptr);
        EXPECT_EQ(keys_in_force(), 2U) << last(LiveEvent::What::failed)->error->message;
        EXPECT_FALSE(updater->state().in_step);
    }
    write({"192.0.2.1", "192.0.2.2", "192.0.2.3"});
    updater->wake();
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_TRUE(updater->state().in_step);
}

// To count the lines of each address takes more than a list that somebody wrote to that end is worth.
TEST_F(WatchedFileTest, OneAddressOverAndOverIsOnTheListAsLongAsALineHasIt) {
    std::vector<std::string> lines(150, "192.0.2.1");
    lines.emplace_back("192.0.2.2");
    write(lines);
    const auto updater = open(file_set(path));
    put_in_force();
    settle(*updater);
    EXPECT_EQ(updater->state().timed_entries, 101U);
    const auto changes_to = [&](std::vector<std::string> now) {
        write(now);
        updater->wake();
        settle(*updater);
        EXPECT_TRUE(updater->state().in_step);
    };
    lines.resize(120);
    changes_to(lines);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    changes_to({"192.0.2.1", "192.0.2.3"}); // 119 lines go, and one of them is on no list
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(updater->state().timed_entries, 2U);
    changes_to({"192.0.2.3"});
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    lines.assign(100, "192.0.2.3");
    changes_to(lines);
    lines.resize(101, "192.0.2.3");
    changes_to(lines);
    changes_to({"192.0.2.4"});
    EXPECT_FALSE(in_force_has("192.0.2.3"));
}

TEST_F(LiveUpdaterTest, DecisionsWithoutEndAboutOneAddressAreRefused) {
    const auto updater = open(stream_set());
    put_in_force();
    answer = Decisions{};
    for (std::uint64_t id = 1; id <= 2001; id++)
        answer->added.push_back(entry("192.0.2.1", entry_id(id, 0), now + 1h));
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    expect_error(*last(LiveEvent::What::failed)->error, ErrorKind::bad_input);
    answer->added.resize(1000);
    now += 1min;
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
}

TEST_F(WatchedFileTest, WhatChangedWhileNobodyLookedIsFoundAtTheStart) {
    write({"192.0.2.1", "192.0.2.2"});
    {
        const auto updater = open(file_set(path));
        put_in_force();
        settle(*updater);
    }
    write({"192.0.2.2", "192.0.2.3"});
    const auto updater = open(file_set(path));
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_EQ(keys_in_force(), 2U);
}

TEST_F(WatchedFileTest, AListThatWasLostIsReadAgain) {
    write({"192.0.2.1", "192.0.2.2"});
    {
        const auto updater = open(file_set(path));
        put_in_force();
        settle(*updater);
    }
    std::filesystem::remove(file_of("block", ".list"));
    write({"192.0.2.2", "nonsense"});
    const auto updater = open(file_set(path));
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keys_in_force(), 2U);
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    EXPECT_FALSE(last(LiveEvent::What::failed)->entries); // nobody knows
    write({"192.0.2.2", "192.0.2.3"});
    updater->wake();
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_EQ(keys_in_force(), 2U);
}

// --- bans

TEST_F(BansKeeperTest, FollowsTheLedger) {
    const auto updater = in_force();
    EXPECT_TRUE(updater->state().in_step); // nothing is banned
    change({ban("192.0.2.1"), ban("192.0.2.2", now + 1h), ban("198.51.100.0/24")}, *updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_EQ(ranges_in_force(), 1U);
    const LiveUpdater::State state = updater->state();
    EXPECT_TRUE(state.ledger.bytes > 0 && state.ledger.has(ledger.mark(), {}));
    EXPECT_FALSE(state.settles);
    EXPECT_EQ(state.lacks, "");
    change({unban("192.0.2.1"), ban("192.0.2.3"), unban("192.0.2.3"), unban("192.0.2.9"), ban("192.0.2.4")},
           *updater);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_FALSE(in_force_has("192.0.2.3"));
    EXPECT_TRUE(in_force_has("192.0.2.4"));
    change({unban("192.0.2.4"), {.step = BanStep::flush}, ban("192.0.2.5")}, *updater);
    EXPECT_EQ(keys_in_force(), 1U);
    EXPECT_TRUE(in_force_has("192.0.2.5"));
    EXPECT_EQ(updater->state().ranges, 0U);
    EXPECT_TRUE(asked.empty()); // nobody else
}

TEST_F(BansKeeperTest, AnEndIsKeptToTheMillisecond) {
    const auto updater = in_force();
    change({ban("192.0.2.1", now + 60s), ban("192.0.2.2", now + 60s)}, *updater);
    change({ban("192.0.2.2", now + 60s - 1ms)}, *updater); // less than CrowdSec's ends may differ
    now += 60s - 1ms;
    updater->step();
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    now += 1ms;
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    // One that was over before anybody looked takes the place of one without an end.
    change({ban("192.0.2.3")}, *updater);
    ASSERT_TRUE(in_force_has("192.0.2.3"));
    change({ban("192.0.2.3", now - 1s)}, *updater);
    EXPECT_FALSE(in_force_has("192.0.2.3"));
}

TEST_F(BansKeeperTest, SaysWhatIsNotInForce) {
    const auto updater = open(ban_set());
    settle(*updater);
    change({ban("192.0.2.1")}, *updater);
    EXPECT_EQ(updater->state().lacks, "no interface has the set in force");
    EXPECT_FALSE(updater->state().settles);
}

TEST_F(BansKeeperTest, WithoutAnImageTheFirstOneHasTheBans) {
    ASSERT_TRUE(ledger.append({ban("192.0.2.1"), ban("198.51.100.0/24")}));
    const auto updater = open(ban_set());
    put_in_force();
    put_in_force("block-ranges");
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(ranges_in_force(), 1U);
}

// A guard of size has no say: each ban was asked for by hand.
TEST_F(BansKeeperTest, ListsGrowAndShrinkAsTheyLike) {
    const auto updater = in_force();
    std::vector<BanChange> many;
    for (int i = 0; i < 3000; i++)
        many.push_back(ban("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250)));
    for (int i = 0; i < 500; i++) many.push_back(ban("10.9." + std::to_string(i % 250) + ".0/24"));
    change({ban("192.0.2.1"), ban("198.51.100.0/24")}, *updater);
    change(many, *updater);
    EXPECT_EQ(updater->state().entries, 3001U);
    EXPECT_EQ(updater->state().ranges, 251U);
    change({{.step = BanStep::flush}}, *updater);
    EXPECT_EQ(updater->state().entries, 0U);
    EXPECT_EQ(updater->state().ranges, 0U);
    EXPECT_EQ(last(LiveEvent::What::failed), nullptr);
}

TEST_F(BansKeeperTest, ADamagedLedgerChangesNothing) {
    const auto updater = in_force();
    change({ban("192.0.2.1")}, *updater);
    const std::string path = ban_ledger_path(files.path("state"), "block");
    std::filesystem::rename(path, path + ".old");
    std::ofstream(path) << "something else";
    updater->wake();
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_FALSE(updater->state().in_step);
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    std::filesystem::rename(path + ".old", path);
    change({ban("192.0.2.2")}, *updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(updater->state().in_step);
}

TEST_F(BansKeeperTest, ADamagedLastRecordLiftsNothingAtAStart) {
    {
        const auto updater = in_force();
        change({ban("192.0.2.1"), ban("192.0.2.2"), ban("198.51.100.0/24")}, *updater);
    }
    std::fstream(ban_ledger_path(files.path("state"), "block")).seekp(60).put('\xff');
    const auto updater = open(ban_set());
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keys_in_force(), 2U);
    EXPECT_EQ(ranges_in_force(), 1U);
    EXPECT_EQ(updater->state().entries, 2U);
    EXPECT_FALSE(updater->state().in_step);
    EXPECT_GT(updater->state().failures, 0U);
    const LiveEvent* failed = last(LiveEvent::What::failed);
    ASSERT_NE(failed, nullptr);
    expect_error(*failed->error, ErrorKind::bad_input);
    EXPECT_EQ(failed->entries, 2U);
}

// More than the filter has room for: a new one takes its place.
TEST_F(BansKeeperTest, ManyBansAreInForceOnceTheirFilterIs) {
    const auto updater = in_force();
    change({ban("192.0.2.1")}, *updater);
    std::vector<BanChange> many;
    for (int i = 0; i < 30000; i++)
        many.push_back(ban("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250)));
    change(many, *updater);
    EXPECT_EQ(keys_in_force(), 30001U);
    EXPECT_FALSE(updater->state().settles);
    EXPECT_EQ(updater->state().lacks, "");
}

TEST(RangeSetConfiguration, StandBesideTheirSetsEverywhere) {
    Configuration configuration;
    SetConfiguration other;
    other.name = "allow";
    other.sources = {FileSpec{"/allow"}};
    SetConfiguration set = LiveWorld::stream_set();
    set.guards.protect = {"192.0.2.1"};
    configuration.sets = {other, set};
    configuration.interfaces = {{.name = "eth0", .sets = {"allow", "block"}},
                                {.name = "eth1", .sets = {"block", "allow"}}};
    const auto whole = with_range_sets(configuration);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->interfaces[0].sets, (std::vector<std::string>{"allow", "block", "block-ranges"}));
    EXPECT_EQ(whole->interfaces[1].sets, (std::vector<std::string>{"block", "block-ranges", "allow"}));
    ASSERT_NE(whole->find_set("block-ranges"), nullptr);
    EXPECT_EQ(whole->find_set("block-ranges")->guards.protect, set.guards.protect);
    EXPECT_NE(whole->find_set("block-ranges")->feed.build.kind.kind, SIEVE_KIND_DDLCBF);
    EXPECT_TRUE(is_range_set(*whole, "block-ranges"));
    EXPECT_FALSE(is_range_set(*whole, "block"));
    other.name = "block-ranges";
    configuration.sets = {set, other};
    expect_error(with_range_sets(configuration), ErrorKind::bad_input);
    // They count like any other set.
    configuration.sets = {set};
    configuration.interfaces = {{.name = "eth0", .sets = {"block"}}};
    for (int i = 1; i < SIEVE_MAX_SETS; i++) {
        other.name = "s" + std::to_string(i);
        configuration.sets.push_back(other);
        configuration.interfaces[0].sets.push_back(other.name);
    }
    expect_error(with_range_sets(configuration), ErrorKind::bad_input);
}

// The journal of a set that is followed is in use, so it moves with a new image, and not before there is
// room.
TEST_F(LiveUpdaterTest, MovesToTheStateDirectoryThatHasRoomAgain) {
    const std::string path = files.path("state"), spare = files.path("run") + "/spare";
    state = StateDirectory::look(path); // gives the lock back
    state = StateDirectory::open(path, {}, {}, {.spare = spare, .tell = {}}).value();
    std::filesystem::remove_all(path + "/sets");
    std::ofstream(path + "/sets") << "in the way";
    const std::string list = files.feed("list", {"192.0.2.1"});
    const auto updater = open(file_set(list));
    put_in_force();
    settle(*updater);
    ASSERT_TRUE(std::filesystem::exists(spare + "/sets/block/record.json"));
    const auto cycle = [&] {
        events.clear();
        state.mend();
        updater->reconcile_soon();
        settle(*updater);
        return last(LiveEvent::What::rebuilt);
    };
    EXPECT_EQ(cycle(), nullptr);
    EXPECT_TRUE(state.trouble());
    std::filesystem::remove(path + "/sets");
    std::filesystem::create_directory(path + "/sets");
    const LiveEvent* rebuilt = cycle();
    ASSERT_NE(rebuilt, nullptr);
    EXPECT_EQ(rebuilt->reason, RebuildReason::in_memory);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_FALSE(std::filesystem::exists(spare + "/sets/block"));
    EXPECT_TRUE(std::filesystem::exists(file_of("block", ".journal")));
    EXPECT_EQ(cycle(), nullptr);
    EXPECT_FALSE(state.trouble()) << *state.trouble();
    EXPECT_EQ(StateDirectory::look(path).read("block", observer.remark)->identity, identity_in_force());
}

} // namespace
} // namespace sieve::service::live
