// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/replies.hpp"

#include <gtest/gtest.h>

#include "libsieve/control/table/apply.hpp"
#include "libsieve/control/table/end_probation.hpp"
#include "libsieve/control/table/unload.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;
using Steps = std::vector<std::string>;

constexpr auto drop = SIEVE_ACTION_DROP;
constexpr auto pass = SIEVE_ACTION_PASS;

TEST(RepliesOf, WhatIsSaidCounts) {
    TableSpec spec;
    for (const sieve_action said : {drop, pass})
        for (const sieve_action by_default : {drop, pass}) {
            spec.replies = said;
            spec.default_action = by_default;
            EXPECT_EQ(replies_of(spec, nullptr), said);
        }
}

TEST(RepliesOf, ANewDefaultOfDropLetsThemPass) {
    TableSpec spec;
    EXPECT_EQ(replies_of(spec, nullptr), drop);
    spec.default_action = drop;
    EXPECT_EQ(replies_of(spec, nullptr), pass);
    kernel::TableInForce now;
    EXPECT_EQ(replies_of(spec, &now), pass);
    now.default_action = drop;
    EXPECT_EQ(replies_of(spec, &now), drop) << "it was in force without them";
    now.replies = pass;
    EXPECT_EQ(replies_of(spec, &now), pass);
    spec.point = kernel::HookPoint::egress;
    EXPECT_EQ(replies_of(spec, nullptr), drop) << "nobody answers us there";
}

class Replies : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    const HookName eth0{.interface = "eth0"};

    TableSpec table() {
        TableSpec spec;
        spec.interface = "eth0";
        spec.sets = {Files::set("good", files.feed("good", {"192.0.2.1"}))};
        spec.sets[0].action = WantedAction{pass, {}};
        spec.replace = true;
        spec.default_action = drop;
        return spec;
    }
    [[nodiscard]] Steps steps_from_lock() const {
        return {std::find(kernel.steps.begin(), kernel.steps.end(), "lock"), kernel.steps.end()};
    }
    static bool has(const std::vector<Warning>& warnings, WarningKind kind) {
        return std::any_of(warnings.begin(), warnings.end(),
                           [&](const Warning& one) { return one.kind == kind; });
    }
};

// Where none are remembered, a number of flows would be ignored.
TEST_F(Replies, ANumberOfFlowsIsForRepliesThatPass) {
    TableSpec spec = table();
    spec.flows.most = 4096;
    const auto refused = [&] {
        const auto done = apply(kernel, spec, {});
        return !done && done.error().kind == ErrorKind::invalid_request && kernel.steps.empty();
    };
    spec.replies = drop;
    EXPECT_TRUE(refused());
    spec.replies.reset();
    spec.point = kernel::HookPoint::egress;
    EXPECT_TRUE(refused());
    spec.point = kernel::HookPoint::xdp;
    spec.default_action = pass;
    EXPECT_TRUE(refused());
    spec.default_action = drop;
    const auto done = apply(kernel, spec, {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->replies->max_flows, 4096U);
}

// Notes come first, then what exists, then the table; so that no answer is missed.
TEST_F(Replies, AttachInOrder) {
    const auto done = apply(kernel, table(), {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(steps_from_lock(), (Steps{"lock", "attach notes", "seed", "attach", "learn", "unlock"}));
    EXPECT_EQ(kernel.running.table.replies, pass);
    ASSERT_TRUE(done->replies);
    EXPECT_TRUE(done->replies->memory_made);
    EXPECT_EQ(done->replies->seeded, 3U);
    EXPECT_TRUE(has(done->warnings, WarningKind::replies_unasked));
}

TEST_F(Replies, NothingComesThatNobodyAskedFor) {
    TableSpec spec = table();
    spec.default_action = pass;
    spec.sets[0].action.reset();
    const auto open = apply(kernel, spec, {});
    ASSERT_TRUE(open) << open.error().message;
    EXPECT_FALSE(open->replies);
    EXPECT_FALSE(kernel.notes);
    spec.replies = pass;
    const auto asked = apply(kernel, spec, {});
    ASSERT_TRUE(asked) << asked.error().message;
    EXPECT_TRUE(kernel.notes);
    EXPECT_FALSE(has(asked->warnings, WarningKind::replies_unasked));
}

TEST_F(Replies, ADefaultThatDropsAnswersIsWarnedOf) {
    TableSpec spec = table();
    spec.replies = drop;
    const auto done = apply(kernel, spec, {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(has(done->warnings, WarningKind::answers_dropped));
    EXPECT_FALSE(kernel.notes);
}

// A filter that ends the classification hides flows from the noting program.
TEST_F(Replies, FiltersBeforeTheNotesAreWarnedOf) {
    kernel.before_notes = {{.priority = 10, .kind = "flower"},
                           {.priority = 20, .kind = "bpf", .program_id = 17, .name = "foreigner"}};
    TableSpec spec = table();
    spec.replies = drop;
    const auto without = apply(kernel, spec, {});
    ASSERT_TRUE(without) << without.error().message;
    EXPECT_FALSE(has(without->warnings, WarningKind::filters_before_notes));
    const auto on = edit_replies(kernel, eth0, pass, {}, {});
    ASSERT_TRUE(on) << on.error().message;
    ASSERT_FALSE(on->table.warnings.empty());
    EXPECT_EQ(on->table.warnings.back().kind, WarningKind::filters_before_notes);
    expect_says(on->table.warnings.back());
    spec.replies = pass;
    const auto loaded = apply(kernel, spec, {});
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_TRUE(has(loaded->warnings, WarningKind::filters_before_notes));
    EXPECT_FALSE(has(loaded->warnings, WarningKind::filters_before));
}

TEST_F(Replies, WithoutNotesNothingIsChanged) {
    kernel.refuse("attach notes");
    const auto attached = apply(kernel, table(), {});
    ASSERT_FALSE(attached);
    EXPECT_EQ(attached.error().kind, ErrorKind::kernel_refused);
    EXPECT_FALSE(kernel.changed());
    kernel.put("bad");
    const auto edited = edit_replies(kernel, eth0, pass, {}, {});
    ASSERT_FALSE(edited);
    EXPECT_EQ(edited.error().kind, ErrorKind::kernel_refused);
    const auto closed = edit_default(kernel, eth0, drop, true, {});
    ASSERT_FALSE(closed);
    EXPECT_FALSE(kernel.changed());
    EXPECT_EQ(kernel.running.table.default_action, pass);
}

TEST_F(Replies, ATableThatIsRefusedTakesTheNotesAway) {
    kernel.put("bad");
    kernel.refuse("replace");
    ASSERT_FALSE(edit_replies(kernel, eth0, pass, {}, {}));
    EXPECT_FALSE(kernel.notes);
    EXPECT_EQ(kernel.memory_flows, 0U);
    EXPECT_EQ(kernel.steps, (Steps{"lock", "attach notes", "seed", "detach notes", "unlock"}));
}

TEST_F(Replies, OnAndOff) {
    kernel.put("bad");
    const auto on = edit_replies(kernel, eth0, pass, {.most = 4096}, {});
    ASSERT_TRUE(on) << on.error().message;
    EXPECT_TRUE(on->table.changed);
    EXPECT_EQ(on->before, drop);
    EXPECT_EQ(on->made->max_flows, 4096U);
    const auto again = edit_replies(kernel, eth0, pass, {}, {});
    ASSERT_TRUE(again);
    EXPECT_FALSE(again->table.changed);
    const auto other = edit_replies(kernel, eth0, pass, {.most = 8192}, {});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().kind, ErrorKind::invalid_request);
    const auto off = edit_replies(kernel, eth0, drop, {}, {});
    ASSERT_TRUE(off) << off.error().message;
    EXPECT_FALSE(off->made);
    EXPECT_FALSE(kernel.notes);
    EXPECT_EQ(kernel.running.table.replies, drop);
    EXPECT_FALSE(edit_replies(kernel, eth0, drop, {.most = 4096}, {}));
}

TEST_F(Replies, WhatIsMissingComesBack) {
    kernel.put("bad");
    ASSERT_TRUE(edit_replies(kernel, eth0, pass, {}, {}));
    kernel.notes = false; // somebody took them away
    const auto back = edit_replies(kernel, eth0, pass, {}, {});
    ASSERT_TRUE(back);
    EXPECT_TRUE(back->table.changed);
    EXPECT_EQ(back->before, pass);
    EXPECT_TRUE(kernel.notes);
}

// Everything else that changes a table leaves replies as they are.
TEST_F(Replies, TheyStayOverOtherChanges) {
    kernel.put("bad").keeps_replies_out = true;
    kernel.put("more");
    ASSERT_TRUE(edit_replies(kernel, eth0, pass, {}, {}));
    ASSERT_TRUE(edit_set(kernel, eth0, "more", {.action = WantedAction{SIEVE_ACTION_COUNT, {}}}, {}));
    EXPECT_EQ(kernel.running.table.replies, pass);
    EXPECT_TRUE(kernel.running.table.find("bad")->keeps_replies_out);
    TableSpec spec = table(); // its default of drop is new
    ASSERT_TRUE(apply(kernel, spec, {}));
    EXPECT_EQ(kernel.running.table.replies, pass);
    EXPECT_EQ(kernel.count("attach notes"), 1U);
}

TEST_F(Replies, ANewDefaultOfDropSwitchesThemOn) {
    kernel.put("good", pass);
    const auto done = edit_default(kernel, eth0, drop, false, {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(kernel.running.table.replies, pass);
    EXPECT_TRUE(has(done->table.warnings, WarningKind::replies_unasked));
    const auto open = edit_default(kernel, eth0, pass, false, {});
    ASSERT_TRUE(open) << open.error().message;
    EXPECT_EQ(kernel.running.table.replies, pass) << "everything else stays";
}

TEST_F(Replies, OnlyASetThatDropsKeepsThemOut) {
    TableSpec spec = table();
    spec.sets[0].keeps_replies_out = true;
    const auto wrong = apply(kernel, spec, {});
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().kind, ErrorKind::invalid_request);
    EXPECT_FALSE(kernel.changed());
    spec.sets[0].action = WantedAction{drop, {}};
    spec.default_action = pass;
    ASSERT_TRUE(apply(kernel, spec, {}));
    EXPECT_TRUE(kernel.running.table.sets[0].keeps_replies_out);
    ASSERT_TRUE(edit_set(kernel, eth0, "good", {.keeps_replies_out = false}, {}));
    EXPECT_FALSE(kernel.running.table.sets[0].keeps_replies_out);
    ASSERT_TRUE(edit_set(kernel, eth0, "good", {.keeps_replies_out = true}, {}));
    const auto counted = edit_set(kernel, eth0, "good", {.action = WantedAction{SIEVE_ACTION_COUNT, {}}}, {});
    ASSERT_TRUE(counted) << counted.error().message;
    EXPECT_FALSE(kernel.running.table.sets[0].keeps_replies_out);
    const auto refused = edit_set(kernel, eth0, "good", {.keeps_replies_out = true}, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
}

TEST_F(Replies, TheLastUserTakesTheNotesAway) {
    ASSERT_TRUE(apply(kernel, table(), {}));
    kernel.at_tc[kernel::HookPoint::ingress] = {.ours = true, .program = 50, .table = {}};
    kernel.at_tc[kernel::HookPoint::ingress].table.replies = pass;
    ASSERT_TRUE(unload(kernel, {.interface = "eth0", .point = kernel::HookPoint::xdp}, {}));
    EXPECT_TRUE(kernel.notes) << "ingress needs them";
    ASSERT_TRUE(unload(kernel, {.interface = "eth0", .point = kernel::HookPoint::ingress}, {}));
    EXPECT_FALSE(kernel.notes);
}

// The table from before may come back, and needs what it had.
TEST_F(Replies, ProbationKeepsWhatEitherTableNeeds) {
    kernel.put("bad");
    ASSERT_TRUE(edit_replies(kernel, eth0, pass, {}, {}));
    ASSERT_TRUE(edit_replies(kernel, eth0, drop, {}, {}, {.confirm_within = std::chrono::seconds(60)}));
    EXPECT_TRUE(kernel.notes);
    ASSERT_TRUE(end_probation(kernel, eth0, ProbationEnd::keep, {}));
    EXPECT_FALSE(kernel.notes);
}

// A change that was not confirmed in time leaves them.
TEST_F(Replies, WhereTheyAreDroppedAlreadyNoNotesStay) {
    kernel.put("bad");
    kernel.notes = true;
    kernel.at_tc[kernel::HookPoint::ingress] = {.ours = true, .program = 50, .table = {}};
    sieve_action& at_ingress = kernel.at_tc[kernel::HookPoint::ingress].table.replies;
    at_ingress = pass;
    const HookName xdp{.interface = "eth0", .point = kernel::HookPoint::xdp};
    ASSERT_TRUE(edit_replies(kernel, xdp, drop, {}, {}));
    EXPECT_TRUE(kernel.notes) << "ingress needs them";
    at_ingress = drop;
    const auto again = edit_replies(kernel, xdp, drop, {}, {});
    ASSERT_TRUE(again);
    EXPECT_FALSE(again->table.changed);
    EXPECT_FALSE(kernel.notes);
}

} // namespace
} // namespace sieve::control
