// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/keys/change_keys.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <random>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sieve/exact.h>
#include <sieve/inserted.h>

#include "libsieve/control/keys/expire_keys.hpp"
#include "libsieve/control/keys/grow_set.hpp"
#include "libsieve/control/keys/list_keys.hpp"
#include "libsieve/control/query/status.hpp"

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/keys/key_order.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;
using namespace std::chrono_literals;

class ChangeKeys : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};

    // A set in force, of that kind and with these fields.
    void put(const std::string& name, sieve_kind kind, std::uint32_t fields = SIEVE_FIELD_SRC) {
        FeedSpec spec;
        spec.build.kind.kind = kind;
        spec.build.bits_per_key = 24;
        spec.build.seed = 1;
        spec.fields = fields;
        std::vector<std::string> lines;
        for (int i = 0; i < 200; i++)
            lines.push_back("192.0.2." + std::to_string(i) + (fields == SIEVE_FIELD_SRC ? "" : " 53"));
        const auto image = Image::load(files.image(name, lines, spec));
        kernel.put_filter(kernel.put(name).map_id, *image);
    }
    // The same, verified, with room for so many more keys beside the filter.
    void put_verified(const std::string& name, int members, std::size_t room = 1000) {
        put(name, SIEVE_KIND_DDLCBF);
        std::vector<sieve_key> list;
        for (int i = 0; i < members; i++)
            list.push_back(*parse_key("192.0.2." + std::to_string(i), SIEVE_FIELD_SRC));
        kernel.running.table.sets[0].exact_id = 150;
        kernel.put_exact(150, list, room);
    }
    static std::array<__u64, SIEVE_KEY_WORDS> words(const std::string& text) {
        return std::to_array(parse_key(text, SIEVE_FIELD_SRC)->word);
    }
    // Whether a packet with this source would match.
    bool matches(const std::string& text) {
        const kernel::SetInForce& set = kernel.running.table.sets[0];
        const auto filter = kernel.open_filter(set.map_id);
        const sieve_lookup& lookup = (*filter)->lookup();
        const sieve_key key = *parse_key(text, SIEVE_FIELD_SRC);
        return kind_of(lookup).holds(lookup, sieve_hash_key(&key, lookup.hash_key, lookup.fields),
                                     (*filter)->lines().data()) &&
               (set.exact_id == 0 || kernel.keys.at(set.exact_id).notes.contains(words(text)));
    }
    Result<KeysChanged> insert_for(const std::string& text, std::chrono::nanoseconds lifetime) {
        return change_keys(kernel, eth0, "set", keys({text}), {.lifetime = lifetime}, {});
    }
    kernel::SetInForce& set() { return kernel.running.table.sets[0]; }
    std::optional<std::chrono::nanoseconds> next_end() { return *time_to_next_end(kernel, {}); }
    void pass(std::chrono::nanoseconds time) { kernel.now += static_cast<std::uint64_t>(time.count()); }
    std::uint64_t overdue() { return read_status(kernel, eth0)->ours.front().table.sets.front().overdue; }
    static KeySet keys(const std::vector<std::string>& texts, std::uint32_t fields = SIEVE_FIELD_SRC) {
        KeySet set(fields);
        for (const auto& text : texts) set.add(*parse_key(text, fields));
        return set;
    }
};

TEST_F(ChangeKeys, InsertsAndErasesInPlace) {
    put("set", SIEVE_KIND_DDLCBF);
    EXPECT_EQ(find_changeable(kernel, eth0, "set")->fields, SIEVE_FIELD_SRC);
    const auto in = insert(kernel, eth0, "set", keys({"203.0.113.1", "192.0.2.7"}), {});
    ASSERT_TRUE(in) << in.error().message;
    EXPECT_EQ(in->done, 1U);
    EXPECT_EQ(in->told.size(), 1U);
    const auto out = erase(kernel, eth0, "set", keys({"203.0.113.1"}), {});
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->done, 1U);
    EXPECT_EQ(erase(kernel, eth0, "set", keys({"203.0.113.1"}), {})->done, 0U);
    EXPECT_EQ(kernel.count("lock"), 3U) << "reading the fields takes no lock";
}

TEST_F(ChangeKeys, OfAKindThatHasNoSingleKeys) {
    put("set", SIEVE_KIND_BLOCKED);
    const auto refused = find_changeable(kernel, eth0, "set");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::fixed_keys);
    EXPECT_EQ(refused.error().message.find("--kind"), std::string::npos);
}

// The exact set tells what is a member, not the filter: 22 bits for a key leave many false positives.
TEST_F(ChangeKeys, OfAVerifiedSetChangeBoth) {
    put_verified("set", 200);
    auto in = insert(kernel, eth0, "set", keys({"203.0.113.1", "192.0.2.7"}), {});
    ASSERT_TRUE(in) << in.error().message;
    EXPECT_EQ(in->done, 1U);
    EXPECT_EQ(in->told.size(), 1U);
    EXPECT_EQ(kernel.keys.at(150).notes.size(), 201U);
    auto out = erase(kernel, eth0, "set", keys({"203.0.113.1", "203.0.113.2", "192.0.2.7"}), {});
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->done, 2U);
    EXPECT_EQ(out->told.size(), 1U) << "even if the filter matches it";
    EXPECT_EQ(kernel.keys.at(150).notes.size(), 199U);
    EXPECT_TRUE(matches("192.0.2.8"));
}

TEST_F(ChangeKeys, OfAFullVerifiedSet) {
    put_verified("set", 200, 3);
    const auto list = keys({"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"});
    const auto in = insert(kernel, eth0, "set", list, {});
    ASSERT_TRUE(in) << in.error().message;
    EXPECT_EQ(in->done, 3U);
    EXPECT_EQ(in->full.size(), 1U);
    // The larger one is made of all keys, and tested.
    const auto grown = change_keys(kernel, eth0, "set", list, {.grow = true}, {});
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_EQ(grown->grown, 1U);
    EXPECT_EQ(grown->report.done, 1U);
    EXPECT_EQ(kernel.count("test set"), 1U);
    EXPECT_NE(kernel.running.table.sets[0].map_id, 100U);
    for (const char* member : {"203.0.113.1", "203.0.113.4", "192.0.2.1", "192.0.2.199"})
        EXPECT_TRUE(matches(member)) << member;
}

TEST_F(ChangeKeys, GrowthIsForVerifiedSets) {
    put("set", SIEVE_KIND_DDLCBF);
    const auto refused = change_keys(kernel, eth0, "set", keys({"203.0.113.1"}), {.grow = true}, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
    EXPECT_FALSE(matches("203.0.113.1"));
    EXPECT_EQ(
        change_keys(kernel, eth0, "set", keys({"192.0.2.1"}), {.change = KeyChange::erase, .grow = true}, {})
            .error()
            .kind,
        ErrorKind::invalid_request);
}

// Somebody changes the set while the larger filter is built: nothing of that is lost.
TEST_F(ChangeKeys, GrowingNoticesOtherControllers) {
    put_verified("set", 200, 3);
    ASSERT_TRUE(insert(kernel, eth0, "set", keys({"203.0.113.1", "203.0.113.2", "203.0.113.3"}), {}));
    kernel.once("test", [this] { ASSERT_TRUE(erase(kernel, eth0, "set", keys({"203.0.113.1"}), {})); });
    const auto grown =
        change_keys(kernel, eth0, "set", keys({"203.0.113.4", "203.0.113.5"}), {.grow = true}, {});
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_GE(kernel.count("test set"), 2U) << "built once more";
    EXPECT_FALSE(kernel.keys.at(kernel.running.table.sets[0].exact_id).notes.contains(words("203.0.113.1")));
    EXPECT_TRUE(matches("203.0.113.5"));
}

// Somebody else lets the set grow first, with the keys that had found room: they are none that it had before.
TEST_F(ChangeKeys, GrowingCountsItsOwnKeysWhereOthersWereFaster) {
    put_verified("set", 200, 3);
    ASSERT_TRUE(insert(kernel, eth0, "set", keys({"203.0.113.1"}), {}));
    kernel.once("trial", [this] { ASSERT_TRUE(grow_set(kernel, eth0, "set", SIEVE_FIELD_SRC, {})); });
    const auto list = keys({"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"});
    const auto done = change_keys(kernel, eth0, "set", list, {.grow = true}, {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->report.done, 3U);
    ASSERT_EQ(done->report.told.size(), 1U);
    EXPECT_TRUE(same_key(done->report.told.front(), *parse_key("203.0.113.1", SIEVE_FIELD_SRC)));
    EXPECT_TRUE(done->report.full.empty());
}

// Others who never rest are kept out in the end.
TEST_F(ChangeKeys, GrowingHoldsTheLockAtLast) {
    put_verified("set", 200);
    std::size_t unlocked = 0;
    std::function<void()> meanwhile = [&] {
        if (kernel.count("lock") > kernel.count("unlock")) return;
        unlocked++;
        ASSERT_TRUE(insert(kernel, eth0, "set", keys({fmt::format("203.0.113.{}", unlocked)}), {}));
        kernel.once("trial", meanwhile);
    };
    kernel.once("trial", meanwhile);
    const auto grown = grow_set(kernel, eth0, "set", SIEVE_FIELD_SRC, {});
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_EQ(unlocked, 1U);
    EXPECT_TRUE(matches("203.0.113.1"));
}

// Somebody swaps the set for one that cannot grow: the keys that had found room went with the old one.
TEST_F(ChangeKeys, GrowingASetThatWasReplacedSaysWhatWasDone) {
    put_verified("set", 200, 3);
    put("other", SIEVE_KIND_DDLCBF);
    kernel.once("trial", [this] {
        set().map_id = kernel.running.table.sets[1].map_id;
        set().exact_id = 0;
    });
    const auto list = keys({"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"});
    expect_error(change_keys(kernel, eth0, "set", list, {.grow = true}, {}), ErrorKind::unfinished);
    EXPECT_EQ((*kernel.open_filter(set().map_id))->file().changes, 0U);
}

// Somebody swaps the set for one that grows: it gets all keys, since those that had found room went with the
// old one.
TEST_F(ChangeKeys, GrowingASetThatWasReplacedPutsAllKeysIn) {
    put_verified("set", 200, 3);
    put("other", SIEVE_KIND_DDLCBF);
    kernel.once("trial", [this] {
        set().map_id = kernel.running.table.sets[1].map_id;
        set().exact_id = 160;
        kernel.put_exact(160, {*parse_key("203.0.113.4", SIEVE_FIELD_SRC)}, 1000);
    });
    const auto list = keys({"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"});
    const auto done = change_keys(kernel, eth0, "set", list, {.grow = true}, {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->report.done, 3U);
    EXPECT_EQ(done->report.told.size(), 1U);
    EXPECT_TRUE(done->report.full.empty());
    for (const char* member : {"203.0.113.1", "203.0.113.2", "203.0.113.3"})
        EXPECT_TRUE(matches(member)) << member;
}

// Somebody has put a key into the filter and has yet to note it when growing begins: the key is not lost.
TEST_F(ChangeKeys, GrowingWaitsForAChangeThatIsBeingMade) {
    put_verified("set", 200);
    ASSERT_TRUE(insert(kernel, eth0, "set", keys({"203.0.113.1"}), {}));
    kernel::KeyNote& note = kernel.keys.at(150).notes.at(words("203.0.113.1"));
    note.state = SIEVE_EXACT_UNSURE;
    kernel.once("lock", [&note] { note.state = SIEVE_EXACT_IN; });
    const auto grown = grow_set(kernel, eth0, "set", SIEVE_FIELD_SRC, {});
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_NE(set().map_id, 100U);
    EXPECT_TRUE(matches("203.0.113.1"));
}

TEST_F(ChangeKeys, KeysEnd) {
    for (const bool verified : {false, true}) {
        SCOPED_TRACE(verified);
        kernel.running = {};
        verified ? put_verified("set", 200) : put("set", SIEVE_KIND_DDLCBF);
        const auto in = insert_for("203.0.113.1", 4h);
        ASSERT_TRUE(in) << in.error().message;
        EXPECT_EQ(in->report.done, 1U);
        ASSERT_TRUE(insert_for("203.0.113.2", 1h));
        ASSERT_TRUE(insert(kernel, eth0, "set", keys({"203.0.113.3"}), {}));
        pass(1h - 1ns);
        EXPECT_TRUE(expire_keys(kernel, {}, {})->empty());
        EXPECT_EQ(next_end(), 1ns);
        pass(1ns);
        EXPECT_EQ(overdue(), 1U);
        EXPECT_EQ(next_end(), 0ns);
        EXPECT_TRUE(matches("203.0.113.2")) << "until a controller takes it out";
        const auto expired = expire_keys(kernel, {}, {});
        ASSERT_TRUE(expired) << expired.error().message;
        ASSERT_EQ(expired->size(), 1U);
        EXPECT_EQ(expired->front().taken_out, 1U);
        EXPECT_FALSE(matches("203.0.113.2"));
        EXPECT_TRUE(matches("203.0.113.1"));
        EXPECT_EQ(next_end(), 3h);
        pass(24h);
        // Any change at the hook takes it out, too.
        EXPECT_EQ(insert_for("203.0.113.4", 1h)->expired, 1U);
        EXPECT_FALSE(matches("203.0.113.1"));
        EXPECT_TRUE(matches("203.0.113.3"));
        EXPECT_TRUE(matches("192.0.2.199"));
    }
}

TEST_F(ChangeKeys, AKeyInsertedAgainEndsLaterOrNever) {
    for (const bool verified : {false, true}) {
        SCOPED_TRACE(verified);
        kernel.running = {};
        verified ? put_verified("set", 200) : put("set", SIEVE_KIND_DDLCBF);
        ASSERT_TRUE(insert_for("203.0.113.1", 2h));
        EXPECT_EQ(insert_for("203.0.113.1", 4h)->other_end, 1U);
        const auto sooner = insert_for("203.0.113.1", 1h);
        EXPECT_EQ(sooner->report.done, 1U);
        EXPECT_EQ(sooner->other_end, 0U) << "the later end stays";
        pass(3h);
        EXPECT_TRUE(expire_keys(kernel, {}, {})->empty());
        const auto for_good = insert(kernel, eth0, "set", keys({"203.0.113.1"}), {});
        EXPECT_EQ(for_good->done, 1U);
        EXPECT_EQ(for_good->keys, 201U) << "it is in the filter once";
        pass(24h);
        EXPECT_TRUE(expire_keys(kernel, {}, {})->empty());
        EXPECT_TRUE(matches("203.0.113.1"));
        // A member for good gets no end.
        EXPECT_EQ(insert_for("203.0.113.1", 1h)->report.told.size(), 1U);
        EXPECT_EQ(insert_for("192.0.2.1", 1h)->report.told.size(), 1U);
        // A deleted key has none either.
        ASSERT_TRUE(insert_for("203.0.113.2", 1h));
        ASSERT_TRUE(erase(kernel, eth0, "set", keys({"203.0.113.2"}), {}));
        pass(24h);
        EXPECT_EQ(overdue(), 0U);
    }
}

// A map of ends that is full makes way for a larger one: how many keys may end has no limit of its own.
TEST_F(ChangeKeys, EndsAlwaysHaveRoom) {
    for (const bool verified : {false, true}) {
        SCOPED_TRACE(verified);
        kernel.running = {};
        verified ? put_verified("set", 200) : put("set", SIEVE_KIND_DDLCBF);
        ASSERT_TRUE(insert_for("203.0.113.1", 4h));
        const std::uint32_t first = set().inserted_id;
        kernel.keys.at(first).most = 2;
        ASSERT_TRUE(insert_for("203.0.113.2", 1h));
        EXPECT_EQ(set().inserted_id, first);
        const auto more = change_keys(kernel, eth0, "set", keys({"203.0.113.3", "203.0.113.4"}),
                                      {.lifetime = std::chrono::nanoseconds(2h)}, {});
        ASSERT_TRUE(more) << more.error().message;
        EXPECT_EQ(more->report.done, 2U);
        EXPECT_TRUE(more->report.full.empty());
        EXPECT_EQ(kernel.count("make inserted set"), verified ? 4U : 2U);
        EXPECT_EQ(next_end(), 1h) << "the ends from before are there";
        pass(3h);
        EXPECT_EQ(expire_keys(kernel, {}, {})->front().taken_out, 3U);
        EXPECT_TRUE(matches("203.0.113.1"));
        EXPECT_EQ(next_end(), 1h);
        ASSERT_TRUE(erase(kernel, eth0, "set", keys({"203.0.113.1"}), {}));
        EXPECT_FALSE(next_end());
    }
}

TEST_F(ChangeKeys, LifetimesThatMakeNoSense) {
    put("set", SIEVE_KIND_DDLCBF);
    for (const KeyRequest& request : {KeyRequest{.change = KeyChange::erase, .lifetime = 1h},
                                      KeyRequest{.change = KeyChange::insert_again, .lifetime = 1h},
                                      KeyRequest{.lifetime = 0h}, KeyRequest{.lifetime = -1h}}) {
        const auto refused = change_keys(kernel, eth0, "set", keys({"192.0.2.1"}), request, {});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
    }
    EXPECT_TRUE(kernel.steps.empty());
}

TEST_F(ChangeKeys, AreListedWhereTheyAreKnown) {
    put("set", SIEVE_KIND_DDLCBF);
    expect_error(list_keys(kernel, eth0, "set"), ErrorKind::no);
    ASSERT_TRUE(insert_for("203.0.113.2", 2h));
    ASSERT_TRUE(insert_for("203.0.113.1", 1h));
    pass(90min);
    const auto some = list_keys(kernel, eth0, "set");
    ASSERT_TRUE(some) << some.error().message;
    EXPECT_FALSE(some->whole);
    EXPECT_EQ(some->unlisted, 200U);
    ASSERT_EQ(some->keys.size(), 2U);
    EXPECT_EQ(listed_key_text(some->keys[0], *some), "203.0.113.1");
    EXPECT_EQ(some->keys[0].ends_in, std::chrono::nanoseconds(-30min).count());
    EXPECT_EQ(some->keys[1].ends_in, std::chrono::nanoseconds(30min).count());
    kernel.running = {};
    put_verified("set", 200);
    ASSERT_TRUE(insert_for("203.0.113.1", 1h));
    const auto all = list_keys(kernel, eth0, "set");
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_TRUE(all->whole);
    EXPECT_EQ(all->unlisted, 0U);
    ASSERT_EQ(all->keys.size(), 201U);
    EXPECT_FALSE(all->keys[0].ends_in);
    EXPECT_TRUE(all->keys[200].ends_in);
}

struct Death {};

// The controller dies before each of its system calls in turn. Whatever it leaves, no member is ever missed,
// and what the next controller does is right. The filter is so small that many keys match by mistake.
TEST_F(ChangeKeys, DeathAtEveryStepMissesNoMember) {
    std::mt19937_64 random(7);
    const auto one_of = [&](std::uint64_t most) { return random() % most; };
    for (const bool verified : {false, true}) {
        SCOPED_TRACE(verified);
        kernel.running = {};
        verified ? put_verified("set", 200) : put("set", SIEVE_KIND_DDLCBF);
        std::map<std::string, std::uint64_t> in; // the keys that were inserted, and their ends
        std::size_t deaths = 0;
        for (int round = 0; round < 3000; round++) {
            const std::string key = "203.0.113." + std::to_string(one_of(40));
            std::uint64_t doing = one_of(4);
            // Without an exact set, only keys that were inserted may be deleted.
            if (doing == 2 && !verified && !in.contains(key)) doing = 1;
            std::uint64_t steps_to_live = one_of(6);
            kernel.before_each_note([&] {
                if (steps_to_live-- == 0) throw Death{};
            });
            bool died = false;
            Result<KeysChanged> done;
            const auto now = [&] { return kernel.now; };
            if (doing == 3) kernel.now += static_cast<std::uint64_t>(std::chrono::nanoseconds(20min).count());
            try {
                if (doing == 0) done = change_keys(kernel, eth0, "set", keys({key}), KeyRequest{}, {});
                if (doing == 1) done = insert_for(key, 1h);
                if (doing == 2)
                    done = change_keys(kernel, eth0, "set", keys({key}), {.change = KeyChange::erase}, {});
                if (doing == 3) {
                    ASSERT_TRUE(expire_keys(kernel, {}, {}));
                }
            } catch (const Death&) {
                died = true;
                deaths++;
            }
            kernel.before_each_note({});
            std::erase_if(in, [&](const auto& one) { return one.second != 0 && one.second <= now(); });
            if (died) {
                // Whether this key is in is open; the next delete makes it sure.
                const auto sure =
                    change_keys(kernel, eth0, "set", keys({key}), {.change = KeyChange::erase}, {});
                ASSERT_TRUE(sure) << sure.error().message;
                in.erase(key);
            } else if (doing < 2 && done->report.done == 1) {
                std::uint64_t& end = in.try_emplace(key, 1).first->second;
                end = doing == 0 ? 0 : std::max(end, now() + std::chrono::nanoseconds(1h).count());
            } else if (doing == 2 && done->report.done == 1) {
                in.erase(key);
            }
            for (const auto& [inserted, end] : in) ASSERT_TRUE(matches(inserted)) << round << " " << inserted;
            for (int i = 0; i < 200; i++) ASSERT_TRUE(matches("192.0.2." + std::to_string(i))) << round;
        }
        EXPECT_GT(deaths, 300U);
    }
}

// The filter has lost the key, the exact set still has it: inserted again, it goes into the filter again.
TEST_F(ChangeKeys, AVerifiedKeyWhoseDeletionWasCutShortComesBackWhole) {
    put_verified("set", 200);
    ASSERT_TRUE(insert(kernel, eth0, "set", keys({"203.0.113.1"}), {}));
    int steps_to_live = 1; // the mark
    kernel.before_each_note([&] {
        if (steps_to_live-- == 0) throw Death{};
    });
    EXPECT_THROW((void)erase(kernel, eth0, "set", keys({"203.0.113.1"}), {}), Death);
    kernel.before_each_note({});
    ASSERT_FALSE(matches("203.0.113.1")) << "the filter must have lost it, or this test shows nothing";
    const auto again = insert(kernel, eth0, "set", keys({"203.0.113.1"}), {});
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->done, 1U);
    EXPECT_TRUE(matches("203.0.113.1"));
}

TEST_F(ChangeKeys, SaysWhatIsExpiredWhenTheNextSetCannotBeRead) {
    put("set", SIEVE_KIND_DDLCBF);
    ASSERT_TRUE(insert_for("203.0.113.1", 1h));
    const UniqueFd taken(::dup(0)); // the fake kernel numbers maps by their descriptors
    put("other", SIEVE_KIND_DDLCBF);
    ASSERT_TRUE(change_keys(kernel, eth0, "other", keys({"203.0.113.2"}), {.lifetime = 1h}, {}));
    pass(2h);
    kernel.keys.erase(kernel.running.table.sets[1].inserted_id);
    const kernel::Hook hook = kernel.read_hook({"eth0", 7}, kernel::HookPoint::xdp).value();
    const Held lock = kernel.hold_lock({}, {}).value();
    const auto expired = expire_keys_at(kernel, hook);
    ASSERT_FALSE(expired);
    EXPECT_EQ(expired.error().kind, ErrorKind::unfinished) << expired.error().message;
    EXPECT_FALSE(matches("203.0.113.1"));
}

TEST_F(ChangeKeys, OfAProgramThatCannotBeReadAreNotExpiredInSilence) {
    put("set", SIEVE_KIND_DDLCBF);
    kernel.running.other_version = true;
    const auto named = expire_keys(kernel, eth0, {});
    ASSERT_FALSE(named);
    EXPECT_EQ(named.error().kind, ErrorKind::other_version);
    EXPECT_TRUE(expire_keys(kernel, {}, {})->empty());
}

// Later keys may make a key match that never came. So whether it came is settled before any other change.
TEST_F(ChangeKeys, WhatADeathLeftOpenIsSettledByTheNextChange) {
    put("set", SIEVE_KIND_DDLCBF);
    ASSERT_TRUE(insert_for("203.0.113.9", 1h));
    std::map<std::array<__u64, SIEVE_KEY_WORDS>, kernel::KeyNote>& notes =
        kernel.keys.at(set().inserted_id).notes;
    // The first dies between the note and the filter, the second between the filter and the note.
    int steps_to_live = 1;
    kernel.before_each_note([&] {
        if (steps_to_live-- == 0) throw Death{};
    });
    const auto lines = [this] { return (*kernel.open_filter(set().map_id))->lines(); };
    const std::vector<sieve_line> before(lines().begin(), lines().end());
    EXPECT_THROW((void)insert_for("203.0.113.1", 1h), Death);
    std::copy(before.begin(), before.end(), lines().begin());
    steps_to_live = 2; // one of them to settle the first
    EXPECT_THROW((void)insert_for("203.0.113.2", 1h), Death);
    kernel.before_each_note({});
    EXPECT_FALSE(notes.contains(words("203.0.113.1")));
    EXPECT_EQ(notes.at(words("203.0.113.2")).state, static_cast<std::uint32_t>(SIEVE_INSERTED_COMING));
    ASSERT_TRUE(insert(kernel, eth0, "set", keys({"203.0.113.3"}), {}));
    EXPECT_EQ(notes.at(words("203.0.113.2")).state, static_cast<std::uint32_t>(SIEVE_INSERTED_IN));
    EXPECT_FALSE(matches("203.0.113.1"));
    EXPECT_TRUE(matches("203.0.113.2"));
    pass(1h);
    EXPECT_EQ(expire_keys(kernel, {}, {})->front().taken_out, 2U);
    EXPECT_FALSE(matches("203.0.113.2"));
}

TEST_F(ChangeKeys, OfASetSwappedForOneOfOtherFields) {
    put("set", SIEVE_KIND_DDLCBF);
    const std::uint32_t both = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    const auto refused = insert(kernel, eth0, "set", keys({"192.0.2.1 53"}, both), {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::changed_meanwhile);
    EXPECT_EQ(insert(kernel, eth0, "other", keys({"192.0.2.1"}), {}).error().kind, ErrorKind::no_such_set);
}

} // namespace
} // namespace sieve::control
