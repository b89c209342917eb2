// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/programs/replay.hpp"

#include <linux/bpf.h>

#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/packet.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

class ReplayTest : public ::testing::Test {
  protected:
    void SetUp() override {
        const auto bad = map_of(image_of({"10.0.0.1"}), "bad"),
                   seen = map_of(image_of({"10.0.0.1", "10.0.0.2"}), "seen");
        auto started =
            Replay::start({SIEVE_ACTION_PASS,
                           {{"seen", SIEVE_ACTION_COUNT, seen.fd()}, {"bad", SIEVE_ACTION_DROP, bad.fd()}}});
        ASSERT_TRUE(started) << started.error().message;
        replay_ = std::make_unique<Replay>(std::move(*started));
    }

    [[nodiscard]] Replayed run(const Bytes& frame) const { return value_or_fail(replay_->run(frame)); }

    std::unique_ptr<Replay> replay_;
};

TEST_F(ReplayTest, SaysWhoDecided) {
    const Replayed dropped = run((Ethernet{} / IPv4{.src = "10.0.0.1"} / Udp{}).bytes());
    EXPECT_EQ(dropped.verdict, XDP_DROP);
    ASSERT_NE(dropped.decided_by, nullptr);
    EXPECT_EQ(dropped.decided_by->name, "bad");
    EXPECT_EQ(__builtin_popcountll(dropped.trace.hits), 2);
    const Replayed counted = run((Ethernet{} / IPv4{.src = "10.0.0.2"} / Udp{}).bytes());
    EXPECT_EQ(counted.verdict, XDP_PASS);
    EXPECT_EQ(counted.decided_by, nullptr);
    EXPECT_EQ(counted.trace.decision, SIEVE_NO_SET);
    EXPECT_EQ(__builtin_popcountll(counted.trace.hits), 1);
}

TEST_F(ReplayTest, FramesShorterThanEthernetAreTruncated) {
    (void)run((Ethernet{} / IPv4{.src = "10.0.0.1"} / Udp{}).bytes());
    for (std::size_t bytes = 0; bytes < shortest_run; bytes++) {
        const Replayed replayed = run(Bytes(bytes, 0));
        EXPECT_EQ(replayed.verdict, XDP_DROP) << "as the table says of unreadable packets";
        EXPECT_EQ(replayed.trace.outcome, SIEVE_OUTCOME_TRUNCATED);
        EXPECT_EQ(replayed.trace.decision, SIEVE_NOT_ASKED);
        EXPECT_EQ(replayed.trace.have, 0U) << "nothing of the packet before";
    }
    EXPECT_EQ(run(Bytes(shortest_run, 0)).trace.outcome, SIEVE_OUTCOME_NON_IP);
}

TEST_F(ReplayTest, LongFramesAreJudgedByTheirHeads) {
    for (const std::size_t payload : {1400U, 3000U, 3500U, 4096U, 9000U, 60'000U}) {
        const Replayed replayed =
            run((Ethernet{} / IPv4{.src = "10.0.0.1"} / Udp{} / Payload{.bytes = payload}).bytes());
        EXPECT_EQ(replayed.verdict, XDP_DROP) << payload;
        EXPECT_EQ(replayed.trace.outcome, SIEVE_OUTCOME_COMPLETE) << payload;
    }
}

} // namespace
} // namespace sieve::kernel
