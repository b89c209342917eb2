// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/swap.hpp"

#include <gtest/gtest.h>

#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;

class Swap : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};

    Swap() {
        kernel.put("first", SIEVE_ACTION_COUNT);
        kernel.put("bad", SIEVE_ACTION_DROP);
        kernel.put("last", SIEVE_ACTION_PASS, true);
        kernel.running.table.default_action = SIEVE_ACTION_DROP;
    }
    SetSpec feed(const std::string& name) const {
        return Files::set(name, files.feed(name, {"192.0.2.1", "192.0.2.2"}));
    }
    Error refused(const SetSpec& spec, ErrorKind kind) {
        const auto swapped = swap(kernel, eth0, spec, {});
        EXPECT_FALSE(swapped);
        if (swapped) return {};
        EXPECT_EQ(swapped.error().kind, kind) << swapped.error().message;
        EXPECT_FALSE(kernel.changed());
        EXPECT_EQ(*kernel.open_maps, 0);
        return swapped.error();
    }
};

TEST_F(Swap, ChangesThatFilterAndNothingElse) {
    const kernel::TableInForce before = kernel.running.table;
    const auto swapped = swap(kernel, eth0, feed("bad"), {});
    ASSERT_TRUE(swapped) << swapped.error().message;
    EXPECT_EQ(kernel.steps,
              (std::vector<std::string>{"trial", "bring in bad", "test bad", "lock", "replace", "unlock"}));
    const kernel::TableInForce& now = kernel.running.table;
    EXPECT_EQ(now.default_action, before.default_action);
    ASSERT_EQ(now.sets.size(), 3U);
    for (std::size_t i = 0; i < 3; i++) {
        EXPECT_EQ(now.sets[i].name, before.sets[i].name);
        EXPECT_EQ(now.sets[i].action, before.sets[i].action);
        EXPECT_EQ(now.sets[i].exact_id, before.sets[i].exact_id);
        EXPECT_EQ(now.sets[i].map_id == before.sets[i].map_id, i != 1) << i;
    }
    EXPECT_EQ(now.sets[1].map_id, swapped->set.maps.filter_id);
}

TEST_F(Swap, LeavesUnreadablePacketsToWhatWasSaid) {
    for (const sieve_action unreadable : {SIEVE_ACTION_PASS, SIEVE_ACTION_DROP}) {
        kernel.running.table.unreadable = unreadable;
        ASSERT_TRUE(swap(kernel, eth0, feed("bad"), {}));
        EXPECT_EQ(kernel.running.table.unreadable, unreadable);
    }
}

TEST_F(Swap, AVerifiedSetStaysVerified) {
    SetSpec filter = feed("last");
    filter.feed.build.kind.kind = SIEVE_KIND_BLOCKED;
    ASSERT_TRUE(swap(kernel, eth0, filter, {}));
    EXPECT_NE(kernel.running.table.sets[2].exact_id, 0U);
    EXPECT_NE(kernel.running.table.sets[2].exact_id, 152U) << "the keys must be the new ones";
    ASSERT_TRUE(swap(kernel, eth0, feed("bad"), {}));
    EXPECT_EQ(kernel.running.table.sets[1].exact_id, 0U);
}

// A list of addresses, with a prefix or without, goes to an exact kind, which has nothing to verify; and
// back.
TEST_F(Swap, AVerifiedSetMayBecomeExact) {
    for (const std::string first : {"192.0.2.0/24", "192.0.2.1"}) {
        const SetSpec addresses = Files::set("last", files.feed("addresses", {first, "198.51.100.7"}));
        const auto swapped = swap(kernel, eth0, addresses, {});
        ASSERT_TRUE(swapped) << swapped.error().message;
        EXPECT_FALSE(swapped->set.maps.verified());
        EXPECT_EQ(kernel.running.table.sets[2].exact_id, 0U);
        EXPECT_EQ(kernel.running.table.sets[2].map_id, swapped->set.maps.filter_id);

        SetSpec filter = feed("last");
        filter.feed.build.kind.kind = SIEVE_KIND_BLOCKED;
        filter.verify = Verification{};
        const auto back = swap(kernel, eth0, filter, {});
        ASSERT_TRUE(back) << back.error().message;
        EXPECT_NE(kernel.running.table.sets[2].exact_id, 0U);
    }
}

TEST_F(Swap, AVerifiedSetWantsTheFeedOfAnImage) {
    FeedSpec filter;
    filter.build.kind.kind = SIEVE_KIND_BLOCKED;
    SetSpec spec = Files::set("last", files.image("last.sieve", {"192.0.2.1", "192.0.2.2"}, filter));
    const Error error = refused(spec, ErrorKind::needs_feed);
    EXPECT_EQ(error.facts.set, "last");
    EXPECT_EQ(error.facts.path, files.path("last.sieve"));
    spec.verify = Verification{files.path("last.sieve.txt")};
    EXPECT_TRUE(swap(kernel, eth0, spec, {}));
}

TEST_F(Swap, NeitherActionNorVerificationComesByASwap) {
    FeedSpec filter;
    filter.build.kind.kind = SIEVE_KIND_BLOCKED;
    SetSpec action = feed("bad");
    action.action = WantedAction{SIEVE_ACTION_PASS, {}};
    refused(action, ErrorKind::invalid_request);
    SetSpec ports = feed("bad");
    ports.condition.fields = SIEVE_FIELD_DPORT;
    refused(ports, ErrorKind::invalid_request);
    SetSpec replies = feed("bad");
    replies.keeps_replies_out = true;
    refused(replies, ErrorKind::invalid_request);
    kernel.put_filter(kernel.running.table.sets[1].map_id,
                      Image::load(files.image("old.sieve", {"192.0.2.7"}, filter)).value());
    SetSpec verified = feed("bad");
    verified.feed = filter;
    verified.verify = Verification{};
    refused(verified, ErrorKind::invalid_request);
    EXPECT_EQ(kernel.count("trial"), 0U);
}

TEST_F(Swap, PacketsAreAskedForTheSameKey) {
    FeedSpec flows;
    flows.fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    const Image in_force = Image::load(files.image("flows", {"192.0.2.1 443"}, flows)).value();
    std::vector<std::string> remarks;
    Observer observer;
    observer.remark = [&](const std::string& text) { remarks.push_back(text); };
    const auto fields = [&](const SetSpec& spec) {
        remarks.clear();
        kernel.put_filter(kernel.running.table.sets[1].map_id, in_force);
        const auto swapped = swap(kernel, eth0, spec, observer);
        return swapped ? swapped->set.image.lookup().fields : 0;
    };
    // A feed is read for it.
    EXPECT_EQ(fields(Files::set("bad", files.feed("new", {"192.0.2.1 80"}))), flows.fields);
    EXPECT_TRUE(remarks.empty());
    // Whoever says it may change it, and an image may.
    SetSpec chosen = feed("bad");
    chosen.feed.chosen = {"key"};
    EXPECT_EQ(fields(chosen), SIEVE_FIELD_SRC);
    EXPECT_EQ(remarks,
              std::vector<std::string>{"set bad: packets are asked for src now, and were for src,dport"});
    EXPECT_EQ(fields(Files::set("bad", files.image("other", {"192.0.2.1"}))), SIEVE_FIELD_SRC);
    EXPECT_EQ(remarks.size(), 1U);
}

TEST_F(Swap, ASetThatIsNotInForceIsToldFromThoseThatAre) {
    const Error error = refused(feed("nope"), ErrorKind::no_such_set);
    EXPECT_EQ(error.facts.in_force, (std::vector<std::string>{"first", "bad", "last"}));
    expect_error(error, ErrorKind::no_such_set);
    EXPECT_EQ(kernel.count("trial"), 0U);
}

TEST_F(Swap, ASetLoadedAnewMeanwhileIsLeftAlone) {
    kernel.once("lock", [this] { kernel.running.table.sets[1].exact_id = 77; });
    refused(feed("bad"), ErrorKind::changed_meanwhile);
    kernel.running.table.sets[1].exact_id = 0;
    // Likewise if the new filter has nothing to verify.
    kernel.once("lock", [this] { kernel.running.table.sets[2].exact_id = 0; });
    refused(Files::set("last", files.feed("prefixes", {"192.0.2.0/24"})), ErrorKind::changed_meanwhile);
    kernel.running.table.sets[2].exact_id = 152;
    kernel.once("lock", [this] { kernel.running.table.sets.erase(kernel.running.table.sets.begin() + 1); });
    refused(feed("bad"), ErrorKind::no_such_set);
    kernel.put("bad");
    kernel.once("lock", [this] { kernel.running = {}; });
    refused(feed("bad"), ErrorKind::not_attached);
}

// The table is read again under the lock, so that a swap does not undo another controller's change.
TEST_F(Swap, AnotherSetsChangeMeanwhileIsKept) {
    kernel.once("lock", [this] { kernel.running.table.sets[0].action = SIEVE_ACTION_PASS; });
    ASSERT_TRUE(swap(kernel, eth0, feed("bad"), {}));
    EXPECT_EQ(kernel.running.table.sets[0].action, SIEVE_ACTION_PASS);
}

TEST_F(Swap, WhereNothingOfOursRuns) {
    kernel.running = {};
    EXPECT_EQ(refused(feed("bad"), ErrorKind::not_attached).facts.program_id, 0U);
    kernel.running = {.foreign = true, .program = 3, .table = {}};
    EXPECT_EQ(refused(feed("bad"), ErrorKind::not_attached).facts.program_id, 3U);
}

} // namespace
} // namespace sieve::control
