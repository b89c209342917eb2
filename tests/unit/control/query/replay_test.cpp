// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/query/replay.hpp"

#include <linux/bpf.h>

#include <gtest/gtest.h>

#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

TEST(Replay, HasTheSetsAsLoadWouldPutThem) {
    const test::Files files;
    test::FakeKernel kernel;
    TableSpec spec;
    spec.default_action = SIEVE_ACTION_DROP;
    spec.sets = {test::Files::set("a", files.feed("a", {"192.0.2.1"})),
                 test::Files::set("b", files.feed("b", {"192.0.2.2"}))};
    spec.sets[0].action = WantedAction{SIEVE_ACTION_COUNT, {}};
    spec.sets[1].feed.build.kind.kind = SIEVE_KIND_XORSAT; // an exact kind has nothing to verify
    spec.sets[1].verify = Verification{};
    const auto replayer = start_replay(kernel, spec, find_inputs(spec.sets).value(), {});
    ASSERT_TRUE(replayer) << replayer.error().message;
    const kernel::TableInForce& table = (*replayer)->table();
    EXPECT_EQ(table.default_action, SIEVE_ACTION_DROP);
    ASSERT_EQ(table.sets.size(), 2U);
    EXPECT_EQ(table.sets[0].action, SIEVE_ACTION_COUNT);
    EXPECT_EQ(table.sets[1].action, SIEVE_ACTION_PASS) << "the opposite of the default";
    EXPECT_NE(table.sets[1].exact_id, 0U);
    EXPECT_FALSE(kernel.changed());
    spec.sets[1].name = "a";
    EXPECT_EQ(start_replay(kernel, spec, find_inputs(spec.sets).value(), {}).error().kind,
              ErrorKind::invalid_request);
}

TEST(Replay, TotalsCountVerdictsHitsAndTheDefault) {
    ReplayTotals totals;
    kernel::Replayed packet;
    packet.verdict = XDP_DROP;
    packet.trace.hits = 0b101;
    packet.trace.decision = 2;
    totals.add(packet, 100);
    packet.verdict = XDP_PASS;
    packet.trace.hits = 0;
    packet.trace.decision = SIEVE_NO_SET;
    packet.trace.outcome = SIEVE_OUTCOME_FRAGMENT;
    totals.add(packet, 60);
    EXPECT_EQ(totals.packets, 2U);
    EXPECT_EQ(totals.bytes, 160U);
    EXPECT_EQ(totals.dropped, 1U);
    EXPECT_EQ(totals.passed, 1U);
    EXPECT_EQ(totals.redirected, 0U);
    EXPECT_EQ(totals.hits[0], 1U);
    EXPECT_EQ(totals.hits[1], 0U);
    EXPECT_EQ(totals.hits[2], 1U);
    EXPECT_EQ(totals.by_default, 1U);
    EXPECT_EQ(totals.outcomes[SIEVE_OUTCOME_FRAGMENT], 1U);
}

} // namespace
} // namespace sieve::control
