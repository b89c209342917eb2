// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/live_keeper.hpp"

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "libsieve/service/live/companion.hpp"
#include "unit/service/in_process.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service::live {
namespace {

using namespace std::chrono_literals;
using test::claim;
using test::in_process;
using test::LiveWorld;
using Ask = CrowdsecStream::Ask;

class LiveKeeperTest : public testing::Test, public LiveWorld {
  protected:
    Time now{1'000'000s};
    std::vector<LiveEvent> events;
    std::vector<Ask> asked;
    // Of the machine; nobody sets it. Nothing: the clock is never set either.
    std::optional<std::chrono::milliseconds> uptime;
    // What the API says next; a failure if there is nothing.
    std::optional<Decisions> answer{Decisions{}};
    SandboxSettings sandbox = in_process();

    Configuration configuration_of(SetConfiguration set) {
        Configuration configuration;
        configuration.state_directory = files.path("state");
        configuration.interfaces = {{.name = "eth0", .sets = {set.name}}};
        configuration.sets = {std::move(set)};
        return with_companions(configuration).value();
    }
    std::unique_ptr<LiveKeeper> open(const SetConfiguration& set) {
        LiveKeeperSettings settings;
        settings.configuration = configuration_of(set);
        settings.set = set.name;
        settings.sandbox = sandbox;
        settings.tell = [this](const LiveEvent& event) { events.push_back(event); };
        settings.now = [this] { return now; };
        if (uptime) settings.uptime = [this] { return *uptime; };
        settings.fetch = [this](const CrowdsecSpec&, Ask ask, Time,
                                const SandboxSettings&) -> tl::expected<Decisions, GatherFailure> {
            asked.push_back(ask);
            if (!answer)
                return tl::unexpected(GatherFailure{{ErrorKind::bad_input, "the API is away", {}}, {}});
            return *answer;
        };
        auto keeper = LiveKeeper::open(std::move(settings), kernel, state, host);
        if (!keeper) throw std::runtime_error(keeper.error().message);
        if (service::followed_stream(set) == nullptr) settle(**keeper); // the first steps read the files
        return std::move(*keeper);
    }
    // Until it has nothing to do at this moment.
    Time settle(LiveKeeper& keeper) {
        for (;;) {
            const Time next = keeper.step();
            if (next > now + 1s) return next;
            if (next > now) std::this_thread::sleep_for(1ms); // a build on another thread
        }
    }
    // A member and a prefix come into force, and then the keeper ends.
    void keep_for_a_while() {
        const auto keeper = open(stream_set());
        put_in_force();
        put_in_force("block-ranges");
        answer = Decisions{.added = {claim("192.0.2.1", 1, now + 1h), claim("198.51.100.0/24", 2, now + 1h)}};
        settle(*keeper);
    }
    // Nothing in force changes.
    std::unique_ptr<LiveKeeper> open_while_the_api_is_away() {
        const std::string identity = identity_in_force();
        const std::uint32_t ranges = map_id("block-ranges");
        answer.reset();
        auto keeper = open(stream_set());
        settle(*keeper);
        EXPECT_EQ(identity_in_force(), identity);
        EXPECT_TRUE(in_force_has("192.0.2.1"));
        EXPECT_EQ(map_id("block-ranges"), ranges);
        return keeper;
    }
    [[nodiscard]] const LiveEvent* last(LiveEvent::What what) const {
        for (auto event = events.rbegin(); event != events.rend(); ++event)
            if (event->what == what) return &*event;
        return nullptr;
    }
    [[nodiscard]] std::uint64_t ranges_in_force() {
        return kernel.open_filter(map_id("block-ranges")).value()->file().keys;
    }
};

TEST_F(LiveKeeperTest, AStreamsSetAndItsCompanionHaveImagesFromTheStart) {
    const auto keeper = open(stream_set());
    EXPECT_TRUE(state.read("block", observer.remark));
    EXPECT_TRUE(state.read("block-ranges", observer.remark));
    EXPECT_TRUE(asked.empty());
}

TEST_F(LiveKeeperTest, FollowsTheStream) {
    const auto keeper = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {claim("192.0.2.1", 1, now + 1h), claim("198.51.100.0/24", 2, now + 1h)}};
    EXPECT_EQ(settle(*keeper), now + 10s);
    EXPECT_EQ(asked, std::vector{Ask::whole_list});
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keeper->state().entries, 1U);
    EXPECT_EQ(keeper->state().ranges, 1U);
    EXPECT_TRUE(keeper->state().in_step);
    // The companion was swapped.
    EXPECT_EQ(identity_text(kernel.open_filter(map_id("block-ranges")).value()->file()),
              state.read("block-ranges", observer.remark)->identity);
    now += 10s;
    answer = Decisions{.added = {claim("192.0.2.2", 3, now + 1h)}, .deleted = {claim("192.0.2.1", 1)}};
    settle(*keeper);
    EXPECT_EQ(asked, (std::vector{Ask::whole_list, Ask::difference}));
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
}

TEST_F(LiveKeeperTest, DecisionsStayAndEndWhileTheApiIsAway) {
    const auto keeper = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {claim("192.0.2.1", 1, now + 1min), claim("192.0.2.2", 2, now + 2h),
                                 claim("198.51.100.0/24", 3, now + 1min)}};
    settle(*keeper);
    answer.reset();
    events.clear();
    now += 10s;
    settle(*keeper);
    EXPECT_FALSE(keeper->state().in_step);
    EXPECT_EQ(keeper->state().last_error, "the API is away");
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    now += 10s;
    settle(*keeper);
    EXPECT_EQ(std::count_if(events.begin(), events.end(),
                            [](const LiveEvent& event) { return event.what == LiveEvent::What::failed; }),
              1); // told once
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    now += 40s;
    settle(*keeper);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_EQ(keeper->state().ranges, 0U);
    // It comes back without the second decision.
    answer = Decisions{.added = {claim("192.0.2.3", 9, now + 1h)}};
    now += 2min;
    asked.clear();
    settle(*keeper);
    EXPECT_EQ(asked, std::vector{Ask::whole_list});
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_TRUE(keeper->state().in_step);
}

TEST_F(LiveKeeperTest, ListsThatWereLostAreBuiltOfWhatTheSourceSays) {
    keep_for_a_while();
    for (const std::string set : {"block", "block-ranges"})
        std::filesystem::resize_file(file_of(set, ".list"), 25);
    const std::string identity = identity_in_force();
    const std::uint32_t ranges = map_id("block-ranges");
    const auto keeper = open_while_the_api_is_away();
    // It comes back, and has no prefix any more.
    answer = Decisions{.added = {claim("192.0.2.1", 1, now + 1h), claim("192.0.2.2", 3, now + 1h)}};
    now += 10min;
    settle(*keeper);
    EXPECT_NE(identity_in_force(), identity);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_NE(map_id("block-ranges"), ranges);
    EXPECT_TRUE(keeper->state().in_step);
}

// Such as after somebody moved the state directory away.
TEST_F(LiveKeeperTest, NoEmptyImageTakesThePlaceOfAFilterInForce) {
    keep_for_a_while();
    std::filesystem::remove_all(files.path("state/sets"));
    const std::string identity = identity_in_force();
    const std::uint32_t ranges = map_id("block-ranges");
    const auto keeper = open_while_the_api_is_away();
    EXPECT_FALSE(keeper->state().in_step);
    answer = Decisions{.added = {claim("192.0.2.1", 1, now + 1h), claim("198.51.100.0/25", 3, now + 1h)}};
    now += 10min;
    settle(*keeper);
    EXPECT_NE(identity_in_force(), identity);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keys_in_force(), 1U);
    EXPECT_NE(map_id("block-ranges"), ranges);
    EXPECT_TRUE(keeper->state().in_step);
}

// No interface that comes may be left without, and the lists are all that is known.
TEST_F(LiveKeeperTest, AnImageThatIsGoneIsMadeOfItsListAtTheStart) {
    keep_for_a_while();
    for (const std::string set : {"block", "block-ranges"}) std::filesystem::remove(file_of(set, ".sieve"));
    answer.reset();
    const auto keeper = open(stream_set());
    settle(*keeper);
    for (const std::string set : {"block", "block-ranges"})
        EXPECT_TRUE(state.read(set, observer.remark)) << set;
    EXPECT_EQ(keeper->state().entries, 1U);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keys_in_force(), 1U);
    EXPECT_EQ(ranges_in_force(), 1U);
}

TEST_F(LiveKeeperTest, AnImageThatIsGoneIsMadeAnew) {
    const auto keeper = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {claim("192.0.2.1", 1, now + 1h), claim("198.51.100.0/24", 2, now + 1h)}};
    settle(*keeper);
    answer.reset();
    now += 1min;
    for (const char* kind : {".sieve", ".list"}) {
        for (const std::string set : {"block", "block-ranges"}) std::filesystem::remove(file_of(set, kind));
        events.clear();
        keeper->level_soon();
        settle(*keeper);
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
    keeper->level_soon();
    settle(*keeper);
    EXPECT_EQ(last(LiveEvent::What::rebuilt), nullptr) << "all is there";
}

// A set that comes in place of another one.
TEST_F(LiveKeeperTest, NoEmptyImageTakesThePlaceOfAnotherSet) {
    {
        const auto keeper = open(stream_set());
        put_in_force();
    }
    SetConfiguration other = stream_set();
    other.name = "other";
    answer.reset();
    const auto keeper = open(other);
    settle(*keeper);
    EXPECT_FALSE(state.read("other", observer.remark));
    EXPECT_FALSE(state.read("other-ranges", observer.remark));
    answer = Decisions{.added = {claim("192.0.2.1", 1, now + 1h)}};
    now += 10min;
    settle(*keeper);
    EXPECT_TRUE(state.read("other", observer.remark));
    EXPECT_TRUE(state.read("other-ranges", observer.remark));
}

// Without its members, what judges behind the set would drop them.
TEST_F(LiveKeeperTest, ASetThatLetsPassWaitsForItsList) {
    SetConfiguration set = stream_set();
    set.action = control::WantedAction{.action = SIEVE_ACTION_PASS};
    answer.reset();
    const auto keeper = open(set);
    settle(*keeper);
    EXPECT_FALSE(state.read("block", observer.remark));
    EXPECT_FALSE(state.read("block-ranges", observer.remark));
    answer = Decisions{.added = {claim("192.0.2.1", 1, now + 1h), claim("198.51.100.0/24", 2, now + 1h)}};
    now += 10min;
    settle(*keeper);
    EXPECT_TRUE(state.read("block", observer.remark));
    EXPECT_TRUE(state.read("block-ranges", observer.remark));
    put_in_force();
    EXPECT_TRUE(in_force_has("192.0.2.1"));
}

TEST_F(LiveKeeperTest, WhatCannotBeSwappedInAtTheStartIsSwappedInLater) {
    SetConfiguration set = stream_set();
    {
        const auto keeper = open(set);
        put_in_force();
        put_in_force("block-ranges");
        settle(*keeper);
    }
    const std::uint32_t ranges = map_id("block-ranges");
    set.guards.most_shrink = 0.25; // an option: the companion is built anew
    set.feed.build.bits_per_key = 30;
    kernel.failing_set = "block-ranges";
    const auto keeper = open(set);
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    EXPECT_EQ(map_id("block-ranges"), ranges);
    kernel.failing_set.clear();
    now += 10s;
    settle(*keeper);
    EXPECT_NE(map_id("block-ranges"), ranges);
}

TEST_F(LiveKeeperTest, ACompanionThatOneHookRefusesIsSwappedInThereLater) {
    const auto keeper = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    put_in_force("block-ranges", kernel::HookPoint::ingress);
    answer = Decisions{.added = {claim("198.51.100.0/24", 1, now + 1h)}};
    const std::uint32_t ranges = map_id("block-ranges", kernel::HookPoint::ingress);
    kernel.on_test = [this] { kernel.on_test = [this] { kernel.failing_set = "block-ranges"; }; };
    keeper->step();
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    EXPECT_EQ(map_id("block-ranges", kernel::HookPoint::ingress), ranges);
    kernel.on_test = {};
    kernel.failing_set.clear();
    now += 10s;
    answer = Decisions{};
    settle(*keeper);
    EXPECT_NE(map_id("block-ranges", kernel::HookPoint::ingress), ranges);
}

// Such as the first one of a new database.
TEST_F(LiveKeeperTest, AnEmptyWholeListEmptiesNeitherHalf) {
    const auto keeper = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{};
    for (const std::string& address : test::addresses(200))
        answer->added.push_back(claim(address, answer->added.size(), now + 24h));
    for (unsigned i = 0; i < 120; i++)
        answer->added.push_back(claim("10." + std::to_string(i) + ".0.0/24", 1000 + i, now + 24h));
    const Decisions all = *answer;
    settle(*keeper);
    EXPECT_EQ(keeper->state().ranges, 120U);
    const auto only = [&](bool singles) {
        Decisions some;
        for (const Claim& one : all.added)
            if (one.prefix.is_single() == singles) some.added.push_back(one);
        return some;
    };
    for (const Decisions& short_list : {Decisions{}, only(true), only(false)}) {
        answer = short_list;
        now += 1h;
        settle(*keeper);
        EXPECT_EQ(asked.back(), Ask::whole_list);
        EXPECT_EQ(keeper->state().entries, 200U);
        EXPECT_EQ(keeper->state().ranges, 120U);
        EXPECT_FALSE(keeper->state().in_step);
    }
    // One by one they may all go.
    answer = all;
    now += 1h;
    settle(*keeper);
    EXPECT_TRUE(keeper->state().in_step);
    answer = Decisions{.deleted = only(false).added};
    now += 10s;
    settle(*keeper);
    EXPECT_EQ(keeper->state().ranges, 0U);
    EXPECT_TRUE(keeper->state().in_step);
}

TEST_F(LiveKeeperTest, WhenTheClockIsSetForwardNothingEndsBeforeTheSourceSaysSo) {
    uptime = 1h;
    const auto keeper = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {claim("192.0.2.1", 1, now + 20min), claim("192.0.2.2", 2, now + 20min),
                                 claim("198.51.100.0/24", 3, now + 20min)}};
    settle(*keeper);
    answer.reset(); // the API is away
    now += 24h;
    *uptime += 10s;
    EXPECT_GT(settle(*keeper), now);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keeper->state().ranges, 1U);
    now += 2min;
    *uptime += 2min;
    answer =
        Decisions{.added = {claim("192.0.2.1", 1, now + 20min), claim("198.51.100.0/24", 3, now + 20min)}};
    settle(*keeper);
    EXPECT_EQ(asked.back(), Ask::whole_list);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    // Time that passes, such as while the machine sleeps, ends what it should.
    answer.reset();
    now += 21min;
    *uptime += 21min;
    settle(*keeper);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keeper->state().ranges, 0U);
}

TEST_F(LiveKeeperTest, WhenTheClockIsSetBackTheSourceIsStillAsked) {
    uptime = 1h;
    const auto keeper = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {claim("192.0.2.1", 1, now + 1h)}};
    settle(*keeper);
    now -= 24h * 365;
    *uptime += 10s;
    answer = Decisions{.added = {claim("192.0.2.2", 2, now + 20min)}};
    settle(*keeper);
    EXPECT_EQ(asked.back(), Ask::whole_list);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    now += 21min;
    *uptime += 21min;
    answer.reset();
    settle(*keeper);
    EXPECT_FALSE(in_force_has("192.0.2.2"));
}

TEST_F(LiveKeeperTest, WhatTheHostNoLongerDependsOnIsTaken) {
    host.addresses = {test::host_address("192.0.2.1"), test::host_address("198.51.100.254")};
    const auto keeper = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {claim("192.0.2.1", 1, now + 1h), claim("198.51.100.0/24", 3, now + 1h)}};
    settle(*keeper);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keeper->state().ranges, 0U);
    host.addresses.clear();
    now += 1s;
    settle(*keeper);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keeper->state().ranges, 1U);
}

TEST_F(LiveKeeperTest, WhatTheHostComesToDependOnIsRemoved) {
    const auto keeper = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {claim("192.0.2.1", 1, now + 1h), claim("192.0.2.2", 2, now + 1h),
                                 claim("198.51.100.0/24", 3, now + 1h)}};
    settle(*keeper);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    host.addresses = {test::host_address("192.0.2.1"), test::host_address("198.51.100.254")};
    now += 1s;
    settle(*keeper);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_EQ(keeper->state().ranges, 0U);
    // Nor does it come back.
    now += 1h;
    settle(*keeper);
    EXPECT_EQ(asked.back(), Ask::whole_list);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keeper->state().ranges, 0U);
}

TEST_F(LiveKeeperTest, AnAnswerThatAGuardRefusesChangesNothingAndIsAskedForAgain) {
    SetConfiguration set = stream_set();
    const auto keeper = open(set);
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{};
    for (const std::string& address : test::addresses(200))
        answer->added.push_back(claim(address, answer->added.size(), now + 24h));
    settle(*keeper);
    EXPECT_EQ(keeper->state().entries, 200U);
    now += 1h; // the whole list is asked for
    answer = Decisions{};
    settle(*keeper);
    EXPECT_EQ(keeper->state().entries, 200U);
    EXPECT_TRUE(in_force_has("11.0.0.7"));
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    EXPECT_EQ(last(LiveEvent::What::failed)->guard, Guard::shrink);
    EXPECT_FALSE(keeper->state().in_step);
    now += 1min;
    settle(*keeper);
    EXPECT_EQ(asked.back(), Ask::whole_list);
}

TEST_F(LiveKeeperTest, RangesThatCoverTooMuchAreRefused) {
    const auto keeper = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{.added = {claim("0.0.0.0/1", 1, now + 1h)}};
    settle(*keeper);
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    EXPECT_EQ(last(LiveEvent::What::failed)->guard, Guard::coverage);
    EXPECT_EQ(keeper->state().ranges, 0U);
}

TEST_F(LiveKeeperTest, AFullFilterIsRebuilt) {
    const auto keeper = open(stream_set());
    put_in_force();
    put_in_force("block-ranges");
    answer = Decisions{};
    for (std::uint64_t i = 0; i < 4500; i++)
        answer->added.push_back({{test::prefix_of("10.0.0.0").address + i}, i, now + 24h});
    settle(*keeper);
    const LiveEvent* const failed = last(LiveEvent::What::failed);
    EXPECT_EQ(failed, nullptr) << failed->error->message;
    ASSERT_NE(last(LiveEvent::What::rebuilt), nullptr);
    EXPECT_EQ(last(LiveEvent::What::rebuilt)->reason, RebuildReason::no_room);
    for (std::uint64_t i = 0; i < 4500; i++)
        ASSERT_TRUE(in_force_has(Prefix{test::prefix_of("10.0.0.0").address + i}));
    EXPECT_EQ(keys_in_force(), 4500U);
}

class WatchedFileTest : public LiveKeeperTest {
  protected:
    const std::string path = files.path("list.txt");
    void write(const std::vector<std::string>& lines) {
        files.feed("list.new", lines);
        std::filesystem::rename(files.path("list.new"), path);
    }
};

TEST_F(WatchedFileTest, OneMoreLineGoesInPlace) {
    write({"192.0.2.1", "192.0.2.2", "192.0.2.2"});
    const auto keeper = open(file_set(path));
    put_in_force();
    settle(*keeper);
    const std::string identity = identity_in_force();
    write({"192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3"});
    keeper->wake();
    settle(*keeper);
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    write({"192.0.2.1", "192.0.2.2", "192.0.2.3"}); // it was there twice
    keeper->wake();
    settle(*keeper);
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    write({"192.0.2.1", "192.0.2.3"});
    keeper->wake();
    settle(*keeper);
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    EXPECT_EQ(keys_in_force(), 2U);
    EXPECT_EQ(identity_in_force(), identity); // all of it in place
}

// It may be half written.
TEST_F(WatchedFileTest, AFileIsNotReadBecauseOfACycle) {
    write({"192.0.2.1", "192.0.2.2"});
    const auto keeper = open(file_set(path));
    put_in_force();
    settle(*keeper);
    write({"192.0.2.1", "192.0.2.3"});
    put_in_force("block", kernel::HookPoint::ingress);
    keeper->level_soon();
    settle(*keeper);
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.2", kernel::HookPoint::ingress));
    keeper->wake();
    settle(*keeper);
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.3", kernel::HookPoint::ingress));
}

TEST_F(WatchedFileTest, WhatTheHostNoLongerDependsOnIsTaken) {
    host.addresses = {test::host_address("192.0.2.1")};
    write({"192.0.2.1", "192.0.2.2"});
    const auto keeper = open(file_set(path));
    put_in_force();
    settle(*keeper);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    host.addresses.clear();
    now += 1s;
    settle(*keeper);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keys_in_force(), 2U);
}

TEST_F(WatchedFileTest, ABrokenListChangesNothing) {
    write({"192.0.2.1", "192.0.2.2"});
    const auto keeper = open(file_set(path));
    put_in_force();
    settle(*keeper);
    for (const std::vector<std::string>& lines :
         {std::vector<std::string>{"192.0.2.1", "nonsense"}, {"192.0.2.1", "192.0.2.0/24"}, {}}) {
        events.clear();
        write(lines);
        keeper->wake();
        settle(*keeper);
        ASSERT_NE(last(LiveEvent::What::failed), nullptr);
        EXPECT_EQ(keys_in_force(), 2U) << last(LiveEvent::What::failed)->error->message;
        EXPECT_FALSE(keeper->state().in_step);
    }
    write({"192.0.2.1", "192.0.2.2", "192.0.2.3"});
    keeper->wake();
    settle(*keeper);
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_TRUE(keeper->state().in_step);
}

TEST_F(WatchedFileTest, WhatChangedWhileNobodyLookedIsFoundAtTheStart) {
    write({"192.0.2.1", "192.0.2.2"});
    {
        const auto keeper = open(file_set(path));
        put_in_force();
        settle(*keeper);
    }
    write({"192.0.2.2", "192.0.2.3"});
    const auto keeper = open(file_set(path));
    settle(*keeper);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_EQ(keys_in_force(), 2U);
}

TEST_F(WatchedFileTest, AListThatWasLostIsReadAgain) {
    write({"192.0.2.1", "192.0.2.2"});
    {
        const auto keeper = open(file_set(path));
        put_in_force();
        settle(*keeper);
    }
    std::filesystem::remove(file_of("block", ".list"));
    write({"192.0.2.2", "nonsense"});
    const auto keeper = open(file_set(path));
    settle(*keeper);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keys_in_force(), 2U);
    write({"192.0.2.2", "192.0.2.3"});
    keeper->wake();
    settle(*keeper);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_EQ(keys_in_force(), 2U);
}

// --- bans

class BansKeeperTest : public LiveKeeperTest {
  protected:
    BanLedger ledger{files.path("state"), "block"};

    static SetConfiguration ban_set() {
        SetConfiguration set = stream_set();
        set.sources = {BanSpec{}};
        return set;
    }
    static BanChange ban(const std::string& address, Time until = never) {
        return {.prefix = test::prefix_of(address), .ban = {.until = until}};
    }
    static BanChange unban(const std::string& address) {
        return {.step = BanStep::remove, .prefix = test::prefix_of(address)};
    }
    void change(const std::vector<BanChange>& changes, LiveKeeper& keeper) {
        const Status appended = ledger.append(changes);
        ASSERT_TRUE(appended) << appended.error().message;
        keeper.wake();
        settle(keeper);
    }
    std::unique_ptr<LiveKeeper> in_force() {
        auto keeper = open(ban_set());
        put_in_force();
        put_in_force("block-ranges");
        settle(*keeper);
        return keeper;
    }
};

TEST_F(BansKeeperTest, FollowsTheLedger) {
    const auto keeper = in_force();
    EXPECT_TRUE(keeper->state().in_step); // nothing is banned
    change({ban("192.0.2.1"), ban("192.0.2.2", now + 1h), ban("198.51.100.0/24")}, *keeper);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_EQ(ranges_in_force(), 1U);
    const LiveKeeper::State state = keeper->state();
    EXPECT_TRUE(state.ledger.bytes > 0 && state.ledger.has(ledger.mark()));
    EXPECT_FALSE(state.settles);
    EXPECT_EQ(state.lacks, "");
    change({unban("192.0.2.1"), ban("192.0.2.3"), unban("192.0.2.3"), unban("192.0.2.9"), ban("192.0.2.4")},
           *keeper);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_FALSE(in_force_has("192.0.2.3"));
    EXPECT_TRUE(in_force_has("192.0.2.4"));
    change({unban("192.0.2.4"), {.step = BanStep::flush}, ban("192.0.2.5")}, *keeper);
    EXPECT_EQ(keys_in_force(), 1U);
    EXPECT_TRUE(in_force_has("192.0.2.5"));
    EXPECT_EQ(keeper->state().ranges, 0U);
    EXPECT_TRUE(asked.empty()); // nobody else
}

TEST_F(BansKeeperTest, AnEndIsKeptToTheMillisecond) {
    const auto keeper = in_force();
    change({ban("192.0.2.1", now + 60s), ban("192.0.2.2", now + 60s)}, *keeper);
    change({ban("192.0.2.2", now + 60s - 1ms)}, *keeper); // less than CrowdSec's ends may differ
    now += 60s - 1ms;
    keeper->step();
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    now += 1ms;
    settle(*keeper);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    // One that was over before anybody looked takes the place of one without an end.
    change({ban("192.0.2.3")}, *keeper);
    ASSERT_TRUE(in_force_has("192.0.2.3"));
    change({ban("192.0.2.3", now - 1s)}, *keeper);
    EXPECT_FALSE(in_force_has("192.0.2.3"));
}

TEST_F(BansKeeperTest, SaysWhatIsNotInForce) {
    const auto keeper = open(ban_set());
    settle(*keeper);
    change({ban("192.0.2.1")}, *keeper);
    EXPECT_EQ(keeper->state().lacks, "no interface has the set in force");
    EXPECT_FALSE(keeper->state().settles);
}

TEST_F(BansKeeperTest, WithoutAnImageTheFirstOneHasTheBans) {
    ASSERT_TRUE(ledger.append({ban("192.0.2.1"), ban("198.51.100.0/24")}));
    const auto keeper = open(ban_set());
    put_in_force();
    put_in_force("block-ranges");
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(ranges_in_force(), 1U);
}

// A guard of size has no say: each ban was asked for by hand.
TEST_F(BansKeeperTest, ListsGrowAndShrinkAsTheyLike) {
    const auto keeper = in_force();
    std::vector<BanChange> many;
    for (int i = 0; i < 3000; i++)
        many.push_back(ban("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250)));
    for (int i = 0; i < 500; i++) many.push_back(ban("10.9." + std::to_string(i % 250) + ".0/24"));
    change({ban("192.0.2.1"), ban("198.51.100.0/24")}, *keeper);
    change(many, *keeper);
    EXPECT_EQ(keeper->state().entries, 3001U);
    EXPECT_EQ(keeper->state().ranges, 251U);
    change({{.step = BanStep::flush}}, *keeper);
    EXPECT_EQ(keeper->state().entries, 0U);
    EXPECT_EQ(keeper->state().ranges, 0U);
    EXPECT_EQ(last(LiveEvent::What::failed), nullptr);
}

TEST_F(BansKeeperTest, ADamagedLedgerChangesNothing) {
    const auto keeper = in_force();
    change({ban("192.0.2.1")}, *keeper);
    const std::string path = ban_ledger_path(files.path("state"), "block");
    std::filesystem::rename(path, path + ".old");
    std::ofstream(path) << "something else";
    keeper->wake();
    settle(*keeper);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_FALSE(keeper->state().in_step);
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    std::filesystem::rename(path + ".old", path);
    change({ban("192.0.2.2")}, *keeper);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(keeper->state().in_step);
}

TEST(Companions, StandBesideTheirSetsEverywhere) {
    Configuration configuration;
    SetConfiguration other;
    other.name = "allow";
    other.sources = {FileSpec{"/allow"}};
    SetConfiguration set = LiveWorld::stream_set();
    set.guards.protect = {"192.0.2.1"};
    configuration.sets = {other, set};
    configuration.interfaces = {{.name = "eth0", .sets = {"allow", "block"}},
                                {.name = "eth1", .sets = {"block", "allow"}}};
    const auto whole = with_companions(configuration);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->interfaces[0].sets, (std::vector<std::string>{"allow", "block", "block-ranges"}));
    EXPECT_EQ(whole->interfaces[1].sets, (std::vector<std::string>{"block", "block-ranges", "allow"}));
    ASSERT_NE(whole->find_set("block-ranges"), nullptr);
    EXPECT_EQ(whole->find_set("block-ranges")->guards.protect, set.guards.protect);
    EXPECT_NE(whole->find_set("block-ranges")->feed.build.kind.kind, SIEVE_KIND_DDLCBF);
    EXPECT_TRUE(is_companion(*whole, "block-ranges"));
    EXPECT_FALSE(is_companion(*whole, "block"));
    other.name = "block-ranges";
    configuration.sets = {set, other};
    const auto taken = with_companions(configuration);
    ASSERT_FALSE(taken);
    EXPECT_NE(taken.error().message.find("expected another name"), std::string::npos)
        << taken.error().message;
    // They count like any other set.
    configuration.sets = {set};
    configuration.interfaces = {{.name = "eth0", .sets = {"block"}}};
    for (int i = 1; i < SIEVE_MAX_SETS; i++) {
        other.name = "s" + std::to_string(i);
        configuration.sets.push_back(other);
        configuration.interfaces[0].sets.push_back(other.name);
    }
    const auto many = with_companions(configuration);
    ASSERT_FALSE(many);
    EXPECT_NE(many.error().message.find("interface eth0: 17 sets"), std::string::npos)
        << many.error().message;
}

} // namespace
} // namespace sieve::service::live
