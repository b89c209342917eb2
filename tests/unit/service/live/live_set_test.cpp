// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/live_set.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "libsieve/control/keys/exact_set.hpp"
#include "libsieve/keys/address_key.hpp"
#include "unit/messages.hpp"
#include "unit/service/in_process.hpp"
#include "unit/service/live/live_world.hpp"
#include "unit/service/live/rebuild.hpp"

namespace sieve::service::live {
namespace {

using test::at_second;
using test::entry;
using test::in_process;
using test::LiveWorld;
using test::rebuild;

class LiveSetTest : public testing::Test, public LiveWorld {
  protected:
    SetConfiguration configuration = stream_set();
    Protection protection{.takes_packets = true, .host = {}};

    LiveSet open() {
        auto set = LiveSet::open({configuration, protection}, kernel, state, observer);
        if (!set) throw std::runtime_error(set.error().message);
        return std::move(*set);
    }
    // A set whose first image is in force at XDP.
    LiveSet open_in_force() {
        LiveSet set = open();
        EXPECT_TRUE(rebuild(set, in_process()));
        put_in_force();
        (void)set.reconcile(); // the placeholders go
        EXPECT_EQ(keys_in_force(), 0U);
        return set;
    }
    [[nodiscard]] std::string journal_path() { return file_of("block", ".journal"); }
    [[nodiscard]] std::string list_path() { return file_of("block", ".list"); }
    // Whatever a failing disk makes of it.
    static void flip_a_bit(const std::string& path, std::size_t at) {
        std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
        file.seekg(static_cast<std::streamoff>(at));
        const char byte = static_cast<char>(file.get() ^ 1);
        file.seekp(static_cast<std::streamoff>(at));
        file.put(byte);
    }
    // Nothing is touched before the sources have said all of their lists, and then the filter has just that.
    void expect_to_wait_for_the_sources(const std::string& what) {
        remarks.clear();
        LiveSet set = open();
        ASSERT_EQ(remarks.size(), 1U) << what;
        expect_says(remarks[0]);
        EXPECT_TRUE(set.awaits_sources()) << what;
        EXPECT_EQ(set.rebuild_due(), RebuildReason::unknown) << what;
        const std::string identity = identity_in_force();
        const std::uint64_t keys = keys_in_force();
        (void)set.reconcile();
        ASSERT_TRUE(set.expire(at_second(1'000'000))) << what;
        EXPECT_EQ(identity_in_force(), identity) << what;
        EXPECT_EQ(keys_in_force(), keys) << what;
        EXPECT_TRUE(open().awaits_sources()) << what; // another process knows no more
        auto done = set.replace(Part::followed, {entry("192.0.2.2", 2), entry("192.0.2.9", 9)});
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_FALSE(set.awaits_sources()) << what;
        EXPECT_EQ(keys_in_force(), keys) << what;
        done = rebuild(set, in_process());
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_FALSE(set.rebuild_due()) << what;
        EXPECT_TRUE(in_force_has("192.0.2.2")) << what;
        EXPECT_TRUE(in_force_has("192.0.2.9")) << what;
        EXPECT_EQ(keys_in_force(), 2U) << what;
        EXPECT_FALSE(open().awaits_sources()) << what;
    }
};

// What a person is shown of it (apply --diff).
TEST_F(LiveSetTest, ItsListIsReadBesideIt) {
    LiveSet set = open_in_force();
    const auto list = [&] {
        const Feed read = read_live_list(configuration, *state.read("block", observer.remark), state).value();
        std::set<std::string> entries;
        for (std::size_t i = 0; i < read.keys.size(); i++)
            entries.insert(format_key(read.keys.at(i), configuration.feed.fields));
        return entries;
    };
    EXPECT_EQ(list(), std::set<std::string>{});
    ASSERT_TRUE(
        set.change(Part::followed, {.removed = {}, .added = {entry("192.0.2.1"), entry("192.0.2.2")}}));
    const auto journal = std::filesystem::file_size(journal_path());
    EXPECT_EQ(list(), (std::set<std::string>{"192.0.2.1", "192.0.2.2"}));
    EXPECT_EQ(std::filesystem::file_size(journal_path()), journal);
    ASSERT_TRUE(rebuild(set, in_process()));
    ASSERT_TRUE(set.change(Part::followed, {.removed = {entry("192.0.2.1")}, .added = {entry("192.0.2.3")}}));
    EXPECT_EQ(list(), (std::set<std::string>{"192.0.2.2", "192.0.2.3"}));
}

TEST_F(LiveSetTest, BeginsWithoutAnImageAndHasAnEmptyOneAfterTheFirstRebuild) {
    LiveSet set = open();
    EXPECT_EQ(set.rebuild_due(), RebuildReason::no_image);
    const auto done = rebuild(set, in_process());
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_FALSE(set.rebuild_due());
    put_in_force();
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keys_in_force(), 2U); // the placeholder
}

// A cycle finds out when each hook has it under its name.
TEST_F(LiveSetTest, ARebuildKeepsTheNamesThatItHadBefore) {
    LiveSet set = open_in_force();
    SetRecord record = *state.named("block");
    record.former = {"foes"};
    ASSERT_TRUE(state.commit("block", record));
    ASSERT_TRUE(rebuild(set, in_process()));
    EXPECT_NE(state.named("block")->identity, record.identity);
    EXPECT_EQ(state.named("block")->former, record.former);
}

// Such as one that did not change in place before.
TEST_F(LiveSetTest, AListThatIsShortAgainstOneThatCannotBeReadIsRefused) {
    LiveSet before = open_in_force();
    std::vector<TimedEntry> all;
    for (int i = 1; i <= 200; i++) all.push_back(entry("192.0.2." + std::to_string(i)));
    ASSERT_TRUE(before.replace(Part::followed, all));
    ASSERT_TRUE(rebuild(before, in_process()));
    std::ofstream(list_path()) << "192.0.2.1\n";
    LiveSet set = open();
    ASSERT_TRUE(set.awaits_sources());
    const auto done = set.replace(Part::followed, {all[0], all[1]});
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_TRUE(done->refusal);
    EXPECT_EQ(done->refusal->guard, Guard::shrink);
    EXPECT_FALSE(set.replace(Part::followed, all)->refusal);
}

TEST_F(LiveSetTest, AddsAndRemovesInPlace) {
    LiveSet set = open_in_force();
    const std::string identity = identity_in_force();
    auto done = set.change(Part::followed, {{}, {entry("192.0.2.1", 1), entry("2001:db8::1", 2)}});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->added, 2U);
    EXPECT_EQ(done->keys, 2U);
    EXPECT_EQ(done->filters, 1U);
    EXPECT_FALSE(done->rebuild_due);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("2001:db8::1"));
    done = set.change(Part::followed, {{entry("192.0.2.1", 1)}, {}});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->removed, 1U);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("2001:db8::1"));
    EXPECT_EQ(identity_in_force(), identity); // no swap
}

TEST_F(LiveSetTest, AnAddressStaysUntilItsLastEntryHasGone) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1), entry("192.0.2.1", 2)}}));
    EXPECT_EQ(keys_in_force(), 1U);
    ASSERT_TRUE(set.change(Part::followed, {{entry("192.0.2.1", 1)}, {}}));
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    ASSERT_TRUE(set.change(Part::followed, {{entry("192.0.2.1", 2)}, {}}));
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_EQ(keys_in_force(), 0U);
}

TEST_F(LiveSetTest, NeverDeletesWhatWasNotInserted) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}}));
    const auto done = set.change(Part::followed,
                                 {{entry("192.0.2.2", 1), entry("192.0.2.1", 7), entry("192.0.2.1", 7)}, {}});
    ASSERT_TRUE(done);
    EXPECT_EQ(done->removed, 0U);
    EXPECT_EQ(done->keys, 0U);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
}

TEST_F(LiveSetTest, AnEntryThatGoesAndComesAtOnceStays) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}}));
    const auto done = set.change(Part::followed, {{entry("192.0.2.1", 1)}, {entry("192.0.2.1", 1)}});
    ASSERT_TRUE(done);
    EXPECT_EQ(done->keys, 0U);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(set.list().prefixes(), 1U);
}

TEST_F(LiveSetTest, EveryHookThatHasTheSetGetsTheChange) {
    LiveSet set = open_in_force();
    put_in_force("block", kernel::HookPoint::ingress);
    const auto done = set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}});
    ASSERT_TRUE(done);
    EXPECT_EQ(done->filters, 2U);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.1", kernel::HookPoint::ingress));
}

TEST_F(LiveSetTest, AHookThatComesLaterGetsAllThatCameSinceTheImage) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1), entry("192.0.2.2", 2)}}));
    ASSERT_TRUE(set.change(Part::followed, {{entry("192.0.2.2", 2)}, {}}));
    put_in_force("block", kernel::HookPoint::egress);
    EXPECT_FALSE(in_force_has("192.0.2.1", kernel::HookPoint::egress));
    const Result<LiveChange> done = set.reconcile();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->filters, 2U);
    EXPECT_TRUE(in_force_has("192.0.2.1", kernel::HookPoint::egress));
    EXPECT_FALSE(in_force_has("192.0.2.2", kernel::HookPoint::egress));
}

// It is current when the change is taken back, which nobody tells the set.
TEST_F(LiveSetTest, AFilterThatAChangeOnProbationTookAwayGoesOn) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}}));
    on_probation_without_it();
    const auto done = set.change(Part::followed, {{entry("192.0.2.1", 1)}, {entry("192.0.2.2", 2)}});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->filters, 0U);
    take_back();
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_FALSE(in_force_has("192.0.2.1"));
}

// No new filter can take the place of one that is not in force. What has no room waits until it is back.
TEST_F(LiveSetTest, AFilterThatMayComeBackAndHasNoRoomIsBuiltAnewWhenItIsBack) {
    LiveSet set = open_in_force();
    on_probation_without_it();
    EntryChange change;
    for (std::uint64_t id = 0; id < 9'000; id++)
        change.added.push_back({{test::prefix_of("10.0.0.0").address + id}, id});
    const auto done = set.change(Part::followed, std::move(change));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(done->comes_back_behind);
    EXPECT_NE(set.rebuild_due(), RebuildReason::no_room);
    take_back();
    EXPECT_FALSE(set.reconcile().comes_back_behind);
    EXPECT_EQ(set.rebuild_due(), RebuildReason::no_room);
    ASSERT_TRUE(rebuild(set, in_process()));
    EXPECT_EQ(keys_in_force(), 9'000U);
}

TEST_F(LiveSetTest, AFilterThatIsAboutToComeCatchesUp) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1), entry("192.0.2.2", 2)}}));
    ASSERT_TRUE(set.change(Part::followed, {{entry("192.0.2.2", 2)}, {}}));
    const std::uint32_t coming = put_in_force("block", kernel::HookPoint::egress);
    set.catch_up(coming);
    EXPECT_TRUE(in_force_has("192.0.2.1", kernel::HookPoint::egress));
    EXPECT_FALSE(in_force_has("192.0.2.2", kernel::HookPoint::egress));
    Result<LiveChange> done = set.reconcile();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->keys, 0U);
    EXPECT_EQ(done->filters, 2U);
    EXPECT_FALSE(done->rebuild_due);
    // From now on it is one of them.
    done = set.change(Part::followed, {{entry("192.0.2.1", 1)}, {entry("192.0.2.3", 3)}});
    ASSERT_TRUE(done);
    EXPECT_EQ(done->keys, 4U);
    EXPECT_FALSE(in_force_has("192.0.2.1", kernel::HookPoint::egress));
    EXPECT_TRUE(in_force_has("192.0.2.3", kernel::HookPoint::egress));
    EXPECT_EQ(keys_in_force(kernel::HookPoint::egress), 1U);
    // Another process knows it as well.
    LiveSet next = open();
    done = next.reconcile();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->keys, 0U);
    EXPECT_FALSE(done->rebuild_due);
}

TEST_F(LiveSetTest, AFilterThatCaughtUpHasWhatIsPendingElsewhere) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1), entry("192.0.2.2", 2)}}));
    kernel.refuse("lock", ErrorKind::busy); // the cycle has the lock
    auto done =
        set.change(Part::followed, {{entry("192.0.2.1", 1)}, {entry("192.0.2.2", 9), entry("192.0.2.3", 3)}});
    ASSERT_TRUE(done);
    ASSERT_TRUE(done->delayed);
    set.catch_up(put_in_force("block", kernel::HookPoint::egress));
    EXPECT_FALSE(in_force_has("192.0.2.1", kernel::HookPoint::egress));
    EXPECT_TRUE(in_force_has("192.0.2.3", kernel::HookPoint::egress));
    kernel.allow("lock");
    done = set.reconcile();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->filters, 2U);
    EXPECT_EQ(done->keys, 2U);
    for (const kernel::HookPoint point : {kernel::HookPoint::xdp, kernel::HookPoint::egress}) {
        EXPECT_FALSE(in_force_has("192.0.2.1", point));
        EXPECT_TRUE(in_force_has("192.0.2.2", point));
        EXPECT_TRUE(in_force_has("192.0.2.3", point));
        EXPECT_EQ(keys_in_force(point), 2U);
    }
}

TEST_F(LiveSetTest, CatchingUpTwiceOrNowhereChangesNothing) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}}));
    set.catch_up(map_id()); // it has changed already
    EXPECT_EQ(keys_in_force(), 1U);
    set.catch_up(1); // there is no such map
    const Result<LiveChange> done = set.reconcile();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->keys, 0U);
    EXPECT_FALSE(done->rebuild_due);
}

TEST_F(LiveSetTest, ASecondLevelChangesNothing) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}}));
    const Result<LiveChange> done = set.reconcile();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->keys, 0U);
    EXPECT_EQ(keys_in_force(), 1U);
}

TEST_F(LiveSetTest, WhileAnotherControllerIsAtWorkTheChangeWaits) {
    LiveSet set = open_in_force();
    kernel.refuse("lock", ErrorKind::busy);
    auto done = set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}});
    ASSERT_TRUE(done);
    ASSERT_TRUE(done->delayed);
    EXPECT_EQ(done->delayed->kind, ErrorKind::busy);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    kernel.allow("lock");
    done = set.reconcile();
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->delayed);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
}

TEST_F(LiveSetTest, WhatSomebodyElseChangedIsPutRight) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1), entry("192.0.2.2", 2)}}));
    const auto keys_of = [](const char* address) {
        KeySet keys(SIEVE_FIELD_SRC);
        keys.add(key_of_address(test::prefix_of(address).address, SIEVE_FIELD_SRC));
        return keys;
    };
    {
        const auto open = control::open_table(kernel, "block", map_id());
        ASSERT_TRUE(open);
        ASSERT_TRUE(open->table->change(
            keys_of("192.0.2.1"), keys_of("192.0.2.9"), [] { return Status(); }, never_ends));
    }
    EXPECT_TRUE(in_force_has("192.0.2.9"));
    const auto done = set.change(Part::followed, {{}, {entry("192.0.2.3", 3)}});
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->rebuild_due);
    EXPECT_EQ(done->keys, 3U);
    EXPECT_EQ(keys_in_force(), 3U);
    for (const char* address : {"192.0.2.1", "192.0.2.2", "192.0.2.3"})
        EXPECT_TRUE(in_force_has(address)) << address;
    EXPECT_FALSE(in_force_has("192.0.2.9"));
}

// A set that was configured before such sets were exact, or that somebody swapped.
TEST_F(LiveSetTest, AFilterOfAnotherKindIsReplaced) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}}));
    control::FeedSpec spec = test::Files::quick();
    spec.build.kind.kind = SIEVE_KIND_DDLCBF;
    kernel.put_filter(map_id(),
                      Image::load(std::filesystem::path(files.image("other", {"192.0.2.9"}, spec))).value());
    Result<LiveChange> done = set.reconcile();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->rebuild_due, RebuildReason::unknown);
    done = rebuild(set, in_process());
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_FALSE(done->rebuild_due);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_FALSE(in_force_has("192.0.2.9"));
}

TEST_F(LiveSetTest, ReplaceTakesOnlyTheDifference) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.replace(Part::followed, {entry("192.0.2.1", 1), entry("192.0.2.2", 2)}));
    const auto done = set.replace(Part::followed, {entry("192.0.2.2", 2), entry("192.0.2.3", 3)});
    ASSERT_TRUE(done);
    EXPECT_EQ(done->added, 1U);
    EXPECT_EQ(done->removed, 1U);
    EXPECT_EQ(done->keys, 2U);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.3"));
}

TEST_F(LiveSetTest, EntriesEndByTheClock) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(
        set.change(Part::followed,
                   {{}, {entry("192.0.2.1", 1, at_second(100)), entry("192.0.2.2", 2, at_second(200))}}));
    EXPECT_EQ(set.next_expiry(), at_second(100));
    ASSERT_TRUE(set.expire(at_second(99)));
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    ASSERT_TRUE(set.expire(at_second(100)));
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    // It is prolonged.
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.2", 2, at_second(300))}}));
    ASSERT_TRUE(set.expire(at_second(200)));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_EQ(set.next_expiry(), at_second(300));
}

TEST_F(LiveSetTest, AnotherProcessGoesOnWhereThisOneEnded) {
    {
        LiveSet set = open_in_force();
        ASSERT_TRUE(
            set.change(Part::followed, {{}, {entry("192.0.2.1", 1), entry("192.0.2.2", 2, at_second(100))}}));
        ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.3", 3)}}));
    }
    LiveSet set = open();
    EXPECT_EQ(set.list().prefixes(), 3U);
    EXPECT_EQ(set.next_expiry(), at_second(100));
    Result<LiveChange> done = set.reconcile();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->keys, 0U);
    EXPECT_FALSE(done->rebuild_due);
    done = set.change(Part::followed, {{entry("192.0.2.1", 1)}, {entry("192.0.2.4", 4)}});
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->rebuild_due);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_EQ(keys_in_force(), 3U);
}

TEST_F(LiveSetTest, AfterARebootTheImageGetsTheJournalsDifference) {
    {
        LiveSet set = open_in_force();
        ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1), entry("192.0.2.2", 2)}}));
    }
    put_in_force(); // as it was built
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    LiveSet set = open();
    const Result<LiveChange> done = set.reconcile();
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->rebuild_due);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
}

TEST_F(LiveSetTest, AChangeInFlightAtACrashIsMadeAtTheNextStart) {
    {
        LiveSet set = open_in_force();
        ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}}));
        kernel.refuse("lock", ErrorKind::busy); // the journal has the change, and the filter does not
        ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.2", 2)}}));
        kernel.allow("lock");
    }
    LiveSet set = open();
    const Result<LiveChange> done = set.reconcile();
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->rebuild_due);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_EQ(keys_in_force(), 2U);
}

TEST_F(LiveSetTest, ATornJournalLosesItsLastChangeOnly) {
    {
        LiveSet set = open_in_force();
        ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}}));
        ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.2", 2)}}));
    }
    std::filesystem::resize_file(journal_path(), std::filesystem::file_size(journal_path()) - 60);
    remarks.clear();
    LiveSet set = open();
    EXPECT_EQ(set.list().prefixes(), 1U);
    ASSERT_EQ(remarks.size(), 1U);
    expect_says(remarks[0]);
    EXPECT_FALSE(set.rebuild_due());
}

TEST_F(LiveSetTest, ADamagedListIsAskedForBeforeAnythingIsBuiltOfIt) {
    const std::vector<TimedEntry> timed_entries{entry("192.0.2.1", 1), entry("192.0.2.2", 2, at_second(100))};
    std::size_t bytes = 1;
    for (std::size_t at = 0; at < bytes; at += 3) {
        {
            LiveSet set = open();
            ASSERT_TRUE(set.replace(Part::followed, timed_entries));
            ASSERT_TRUE(rebuild(set, in_process()));
            put_in_force();
        }
        bytes = std::filesystem::file_size(list_path());
        flip_a_bit(list_path(), at);
        expect_to_wait_for_the_sources("byte " + std::to_string(at));
    }
}

TEST_F(LiveSetTest, AListThatIsGoneIsAskedForToo) {
    for (const bool is_list : {true, false}) {
        {
            LiveSet set = open();
            ASSERT_TRUE(set.replace(Part::followed, {entry("192.0.2.1", 1), entry("192.0.2.2", 2)}));
            ASSERT_TRUE(rebuild(set, in_process()));
            put_in_force();
        }
        std::filesystem::remove(is_list ? list_path() : journal_path());
        expect_to_wait_for_the_sources(is_list ? "list" : "journal");
    }
}

TEST_F(LiveSetTest, ADamagedJournalIsAskedForToo) {
    {
        LiveSet set = open_in_force();
        ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}}));
        ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.2", 2)}}));
    }
    flip_a_bit(journal_path(), 100);
    expect_to_wait_for_the_sources("journal");
}

// An answer that was cut short is not what the list had.
TEST_F(LiveSetTest, GuardsCompareWithTheListThatWasLost) {
    std::vector<TimedEntry> timed_entries;
    for (const std::string& address : test::addresses(200))
        timed_entries.push_back(entry(address, timed_entries.size()));
    {
        LiveSet set = open();
        ASSERT_TRUE(set.replace(Part::followed, timed_entries));
        ASSERT_TRUE(rebuild(set, in_process()));
        put_in_force();
    }
    flip_a_bit(list_path(), std::filesystem::file_size(list_path()) - 2);
    LiveSet set = open();
    for (const std::size_t left : {0U, 10U}) {
        const auto done = set.replace(
            Part::followed, {timed_entries.begin(), timed_entries.begin() + static_cast<long>(left)});
        ASSERT_TRUE(done);
        ASSERT_TRUE(done->refusal) << left;
        EXPECT_EQ(done->refusal->guard, Guard::shrink);
        EXPECT_TRUE(set.awaits_sources());
    }
    const auto done = set.replace(Part::followed, timed_entries);
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->refusal);
    EXPECT_FALSE(set.awaits_sources());
}

TEST_F(LiveSetTest, AnEmptyListMayBeAcceptedInPlaceOfALostOne) {
    {
        LiveSet set = open_in_force();
        std::vector<TimedEntry> list;
        for (const std::string& address : test::addresses(200)) list.push_back(entry(address, list.size()));
        ASSERT_TRUE(set.replace(Part::followed, list));
        ASSERT_TRUE(rebuild(set, in_process()));
    }
    flip_a_bit(list_path(), std::filesystem::file_size(list_path()) - 2);
    LiveSet set = open();
    auto done = set.replace(Part::followed, {});
    ASSERT_TRUE(done && done->refusal && done->refusal->list);
    RefusedList accepted = *done->refusal->list;
    accepted.accepted = true;
    ASSERT_TRUE(write_refusal(state.path(), "block", accepted));
    done = set.replace(Part::followed, {});
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->refusal) << done->refusal->message;
    EXPECT_FALSE(set.awaits_sources());
}

TEST_F(LiveSetTest, ChangesDuringARebuildAreInTheNewFilter) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1), entry("192.0.2.2", 2)}}));
    auto order = set.begin_rebuild();
    ASSERT_TRUE(order);
    ASSERT_TRUE(set.change(Part::followed, {{entry("192.0.2.1", 1)}, {entry("192.0.2.3", 3)}}));
    EXPECT_TRUE(in_force_has("192.0.2.3")); // not held up
    auto image = build_live_image(std::move(*order), in_process());
    ASSERT_TRUE(image);
    const std::string before = identity_in_force();
    const auto done = set.finish_rebuild(std::move(*image));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_NE(identity_in_force(), before);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_EQ(keys_in_force(), 2U);
    LiveSet again = open();
    EXPECT_EQ(again.list().prefixes(), 2U);
    const Result<LiveChange> reconciled = again.reconcile();
    ASSERT_TRUE(reconciled);
    EXPECT_FALSE(reconciled->rebuild_due);
}

// The filter that is swapped in has them at once, not only after another change.
TEST_F(LiveSetTest, NothingThatCameDuringARebuildIsMissedAfterItsSwap) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1), entry("192.0.2.2", 2)}}));
    auto order = set.begin_rebuild();
    ASSERT_TRUE(order);
    ASSERT_TRUE(set.change(Part::followed, {{entry("192.0.2.1", 1)}, {entry("192.0.2.3", 3)}}));
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.4", 4), entry("192.0.2.4", 5)}}));
    Result<Image> image = build_live_image(std::move(*order), in_process());
    ASSERT_TRUE(image);
    const std::string before = identity_in_force();
    kernel.once("lock",
                [this] { kernel.refuse("lock", ErrorKind::busy); }); // nobody gets the lock after the swap
    auto done = set.finish_rebuild(std::move(*image));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(done->delayed);
    EXPECT_NE(identity_in_force(), before);
    for (const char* address : {"192.0.2.2", "192.0.2.3", "192.0.2.4"})
        EXPECT_TRUE(in_force_has(address)) << address;
    kernel.allow("lock");
    // Whether this process goes on or another one begins here.
    for (LiveSet* const one : {&set, static_cast<LiveSet*>(nullptr)}) {
        std::optional<LiveSet> other;
        if (one == nullptr) {
            put_in_force(); // after a reboot
            other.emplace(open());
        }
        LiveSet& that = one != nullptr ? *one : *other;
        done = that.reconcile();
        ASSERT_TRUE(done);
        EXPECT_FALSE(done->rebuild_due);
        EXPECT_EQ(that.list().prefixes(), 3U);
        EXPECT_EQ(keys_in_force(), 3U);
        EXPECT_FALSE(in_force_has("192.0.2.1"));
        for (const char* address : {"192.0.2.2", "192.0.2.3", "192.0.2.4"})
            EXPECT_TRUE(in_force_has(address)) << address;
        // An address goes with the last of its timed entries.
        ASSERT_TRUE(that.change(Part::followed, {{entry("192.0.2.4", 4)}, {}}));
        EXPECT_TRUE(in_force_has("192.0.2.4"));
        ASSERT_TRUE(that.change(Part::followed, {{}, {entry("192.0.2.4", 4)}}));
    }
}

TEST_F(LiveSetTest, ARebuildThatCannotBeSwappedInChangesNothing) {
    LiveSet set = open_in_force();
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.1", 1)}}));
    const std::string before = identity_in_force();
    kernel.refuse("test block", ErrorKind::bad_input);
    EXPECT_FALSE(rebuild(set, in_process()));
    EXPECT_EQ(identity_in_force(), before);
    ASSERT_TRUE(set.change(Part::followed, {{}, {entry("192.0.2.2", 2)}}));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_EQ(state.read("block", observer.remark)->identity, before);
    EXPECT_EQ(open().list().prefixes(), 2U);
}

TEST_F(LiveSetTest, AFilterGrows) {
    LiveSet set = open_in_force();
    std::uint64_t id = 0;
    const auto grow_until = [&](RebuildReason reason) {
        while (set.rebuild_due() != reason) {
            EntryChange change;
            for (int i = 0; i < 500; i++, id++)
                change.added.push_back({{test::prefix_of("10.0.0.0").address + id}, id});
            const auto done = set.change(Part::followed, std::move(change));
            ASSERT_TRUE(done);
            ASSERT_LT(id, 100'000U);
        }
    };
    // A new image is due in good time, and until then nothing lacks.
    ASSERT_NO_FATAL_FAILURE(grow_until(RebuildReason::little_room));
    EXPECT_FALSE(is_urgent(*set.rebuild_due()));
    EXPECT_EQ(keys_in_force(), id);
    ASSERT_NO_FATAL_FAILURE(grow_until(RebuildReason::no_room));
    EXPECT_TRUE(is_urgent(*set.rebuild_due()));
    EXPECT_GT(keys_in_force() + 500, id) << "what fits is in force at once";
    ASSERT_TRUE(rebuild(set, in_process()));
    EXPECT_FALSE(set.rebuild_due());
    EXPECT_EQ(keys_in_force(), id);
    for (std::uint64_t i = 0; i < id; i++)
        ASSERT_TRUE(in_force_has(Prefix{test::prefix_of("10.0.0.0").address + i})) << i;
    // It has room for a quarter more.
    EntryChange change;
    for (std::uint64_t i = id / 4; i > 0; i--, id++)
        change.added.push_back({{test::prefix_of("10.0.0.0").address + id}, id});
    ASSERT_TRUE(set.change(Part::followed, std::move(change)));
    EXPECT_FALSE(set.rebuild_due());
    EXPECT_EQ(keys_in_force(), id);
}

// Such as while an interface is paused: what comes back has every member.
TEST_F(LiveSetTest, AListThatOutgrowsAnImageThatIsNotInForceIsBuiltAnew) {
    LiveSet set = open();
    ASSERT_TRUE(rebuild(set, in_process()));
    EXPECT_FALSE(has_changed_since_image(state, "block", *state.named("block")));
    EntryChange change;
    constexpr std::uint64_t many = 9'000;
    for (std::uint64_t id = 0; id < many; id++)
        change.added.push_back({{test::prefix_of("10.0.0.0").address + id}, id});
    ASSERT_TRUE(set.change(Part::followed, std::move(change)));
    EXPECT_TRUE(has_changed_since_image(state, "block", *state.named("block")));
    EXPECT_EQ(set.rebuild_due(), RebuildReason::no_room);
    EXPECT_EQ(open().rebuild_due(), RebuildReason::no_room) << "another process";
    ASSERT_TRUE(rebuild(set, in_process()));
    EXPECT_FALSE(has_changed_since_image(state, "block", *state.named("block")));
    put_in_force();
    EXPECT_EQ(keys_in_force(), many);
}

TEST_F(LiveSetTest, TheHostsAddressesAreNeverInserted) {
    protection.host = {test::host_address("192.0.2.254")};
    configuration.guards.protect = {"198.51.100.0/24"};
    LiveSet set = open_in_force();
    const auto done = set.change(
        Part::followed, {{}, {entry("192.0.2.254", 1), entry("198.51.100.7", 2), entry("192.0.2.1", 3)}});
    ASSERT_TRUE(done);
    EXPECT_EQ(done->added, 1U);
    EXPECT_EQ(done->kept_out, (std::vector<std::string>{"192.0.2.254: a gateway of eth0",
                                                        "198.51.100.7: in the list protect"}));
    EXPECT_FALSE(in_force_has("192.0.2.254"));
    EXPECT_FALSE(in_force_has("198.51.100.7"));
}

TEST_F(LiveSetTest, AListThatAPersonAcceptedIsTaken) {
    LiveSet set = open_in_force();
    std::vector<TimedEntry> list;
    for (const std::string& address : test::addresses(200)) list.push_back(entry(address, list.size()));
    ASSERT_TRUE(set.replace(Part::followed, list));
    const std::vector<TimedEntry> few(list.begin(), list.begin() + 20);
    const auto refused = [&] {
        auto done = set.replace(Part::followed, few);
        EXPECT_TRUE(done);
        return done->refusal;
    };
    const auto refusal = refused();
    ASSERT_TRUE(refusal && refusal->list);
    EXPECT_EQ(refusal->list->entries, 20U);
    EXPECT_EQ(refusal->list->entries_before, 200U);
    EXPECT_EQ(refusal->list->addresses[SIEVE_FAMILY_V4], 20);
    const auto accept = [&] {
        ASSERT_TRUE(state.note_refused("block", *refusal->list));
        RefusedList accepted = *refusal->list;
        accepted.accepted = true;
        ASSERT_TRUE(write_refusal(state.path(), "block", accepted));
    };
    accept();
    // Another list is not taken.
    auto done = set.replace(Part::followed, {list.begin(), list.begin() + 21});
    ASSERT_TRUE(done && done->refusal);
    EXPECT_EQ(set.list().prefixes(), 200U);
    done = set.replace(Part::followed, few);
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->refusal) << done->refusal->message;
    EXPECT_EQ(set.list().prefixes(), 20U);
    EXPECT_EQ(keys_in_force(), 20U);
    EXPECT_FALSE(state.refused("block")) << "it is spent";
    accept(); // once more, and too late
    ASSERT_TRUE(set.replace(Part::followed, list));
    EXPECT_FALSE(state.refused("block")) << "it is void";
    EXPECT_TRUE(refused());
}

TEST_F(LiveSetTest, GuardsJudgeTheResultingList) {
    configuration.guards.most_growth = 2;
    LiveSet set = open_in_force();
    std::vector<TimedEntry> list;
    for (const std::string& address : test::addresses(200)) list.push_back(entry(address, list.size()));
    ASSERT_TRUE(set.replace(Part::followed, list));
    ASSERT_EQ(set.list().prefixes(), 200U);
    // A whole list that is short may have been cut short.
    const std::vector<TimedEntry> few(list.begin(), list.begin() + 50);
    auto done = set.replace(Part::followed, few);
    ASSERT_TRUE(done);
    ASSERT_TRUE(done->refusal);
    EXPECT_EQ(done->refusal->guard, Guard::shrink);
    EXPECT_EQ(set.list().prefixes(), 200U);
    // 250 more are too many, unless as many go.
    EntryChange more;
    for (const std::string& address : test::addresses(450)) {
        const std::uint64_t id = more.removed.size() + more.added.size();
        if (id >= 200)
            more.added.push_back(entry(address, id));
        else if (id < 150)
            more.removed.push_back(entry(address, id));
        else
            more.removed.push_back(entry("203.0.113.1", id));
    }
    done = set.change(Part::followed, {{}, more.added});
    ASSERT_TRUE(done);
    ASSERT_TRUE(done->refusal);
    EXPECT_EQ(done->refusal->guard, Guard::growth);
    EXPECT_EQ(keys_in_force(), 200U);
    done = set.change(Part::followed, more);
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->refusal) << done->refusal->message;
    EXPECT_EQ(set.list().prefixes(), 300U);
    // A stream's deletions are no accident.
    EntryChange all_go;
    set.list().for_each([&](const TimedEntry& one) { all_go.removed.push_back(one); });
    done = set.change(Part::followed, all_go);
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->refusal);
    EXPECT_EQ(set.list().prefixes(), 0U);
}

TEST_F(LiveSetTest, RefusesSetsThatCannotChangeInPlace) {
    configuration.verify = true;
    EXPECT_FALSE(LiveSet::open({configuration, protection}, kernel, state, observer));
    configuration = stream_set();
    configuration.feed.fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    EXPECT_FALSE(LiveSet::open({configuration, protection}, kernel, state, observer));
    configuration = stream_set();
    configuration.feed.build.fpr = 0.001;
    EXPECT_FALSE(LiveSet::open({configuration, protection}, kernel, state, observer));
    EXPECT_TRUE(is_live(stream_set()));
    EXPECT_TRUE(is_live(file_set("/list")));
    SetConfiguration blocked = file_set("/list");
    blocked.feed.build.kind.kind = SIEVE_KIND_BLOCKED;
    EXPECT_FALSE(is_live(blocked));
    SetConfiguration exact = file_set("/list");
    exact.feed.build.kind.kind = SIEVE_KIND_EXACT;
    EXPECT_TRUE(is_live(exact));
    exact.feed.except = "/friends";
    EXPECT_FALSE(is_live(exact));
    exact = file_set("/var/lib/xdp-sieve/fleet/current/block");
    exact.feed.build.kind.kind = SIEVE_KIND_EXACT;
    EXPECT_FALSE(is_live(exact)) << "a fleet's sets change together";
}

// Random changes against a plain set of addresses. Now and then this process dies: the journal keeps a random
// part of what was written since the last but one change, and the filter in force stays as it is, or is as it
// was built. After each start, once the source has been asked, the filter has exactly the list: it misses no
// member, and it counts as many keys.
TEST_F(LiveSetTest, AgreesWithAPlainSetThroughCrashes) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        std::filesystem::remove_all(files.path("state/sets/block"));
        kernel.running = {};
        std::mt19937_64 random(seed);
        const auto below = [&](std::uint64_t bound) { return random() % bound; };
        std::map<std::pair<std::uint64_t, std::uint64_t>, bool> oracle; // by address and number
        const auto address_of = [](std::uint64_t number) {
            return Prefix{test::prefix_of("10.0.0.0").address + number};
        };
        const auto timed_entries = [&] {
            std::vector<TimedEntry> all;
            for (const auto& [one, here] : oracle) all.push_back({address_of(one.first), one.second});
            return all;
        };
        const auto check = [&](const std::string& when) {
            std::set<std::uint64_t> addresses;
            for (const auto& [one, here] : oracle) addresses.insert(one.first);
            for (const std::uint64_t address : addresses)
                ASSERT_TRUE(in_force_has(address_of(address))) << when;
            ASSERT_EQ(keys_in_force(), addresses.size()) << when;
        };
        std::optional<LiveSet> set(open_in_force());
        int crashes = 0;
        std::uintmax_t safe_bytes = 0;
        for (int round = 0; round < 300; round++) {
            const std::string when = "seed " + std::to_string(seed) + " round " + std::to_string(round);
            EntryChange change;
            for (std::uint64_t i = below(30); i > 0; i--) {
                const std::pair<std::uint64_t, std::uint64_t> one{below(300), below(3)};
                const bool remove = below(2) == 0;
                if (remove && oracle.erase(one) > 0)
                    change.removed.push_back({address_of(one.first), one.second});
                if (!remove && std::none_of(change.removed.begin(), change.removed.end(),
                                            [&](const TimedEntry& removed) {
                                                return removed.prefix == address_of(one.first) &&
                                                       removed.id == one.second;
                                            })) {
                    oracle[one] = true;
                    change.added.push_back({address_of(one.first), one.second});
                }
            }
            // Removals come first.
            for (const TimedEntry& removed : change.removed)
                std::erase_if(change.added, [&](const TimedEntry& added) { return added == removed; });
            safe_bytes = std::filesystem::file_size(journal_path());
            const auto done = set->change(Part::followed, change);
            ASSERT_TRUE(done) << done.error().message;
            ASSERT_FALSE(done->refusal);
            ASSERT_NO_FATAL_FAILURE(check(when));
            if (below(20) == 0) { // the table comes anew, and has no moment without what has changed
                set->catch_up(put_in_force());
                ASSERT_NO_FATAL_FAILURE(check(when + " with a filter that caught up"));
            }
            if (below(10) != 0) continue;
            crashes++;
            set.reset();
            const std::string path = journal_path();
            const std::uintmax_t bytes = std::filesystem::file_size(path);
            // Half of the time, all of the change is lost.
            if (below(3) != 0)
                std::filesystem::resize_file(path, safe_bytes +
                                                       (below(2) == 0 ? 0 : below(bytes - safe_bytes + 1)));
            if (below(3) == 0) put_in_force(); // the machine was started anew, too
            set.emplace(open());
            ASSERT_TRUE(set->replace(Part::followed, timed_entries()));
            ASSERT_FALSE(set->rebuild_due()) << when;
            ASSERT_NO_FATAL_FAILURE(check(when + " after a crash"));
        }
        EXPECT_GT(crashes, 10);
    }
}

} // namespace
} // namespace sieve::service::live
