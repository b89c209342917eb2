// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tests that share a program must not learn of each other.
#include "bpf/shared_program.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/packet.hpp"
#include "libsieve/kernel/maps/stats.hpp"

namespace sieve::test {
namespace {

TEST(SharedProgram, ForgetsTheTestBefore) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    const Bytes frame = (Ethernet{} / IPv4{.src = "10.0.0.1"} / Udp{}).bytes();
    for (const kernel::HookPoint point : kernel::all_hook_points) {
        SCOPED_TRACE(kernel::hook_point_name(point));
        {
            const kernel::Scratch& used = shared_program(point);
            ok_or_fail(used.table().replace({.default_action = SIEVE_ACTION_DROP,
                                             .sets = {{.name = "bad", .map_fd = map.fd()}},
                                             .probation = std::chrono::hours(1)}));
            EXPECT_EQ(value_or_fail(used.run(frame)), SIEVE_VERDICT_DROP);
            used.instance().control().sample = 7;
        }
        const kernel::Scratch& next = shared_program(point);
        EXPECT_TRUE(next.table().read().sets.empty());
        EXPECT_FALSE(next.table().read().probation);
        EXPECT_EQ(next.instance().control().sample, 0U);
        EXPECT_EQ(value_or_fail(kernel::read_stats(next.instance())).dropped.packets, 0U);
        EXPECT_EQ(value_or_fail(next.run(frame)), SIEVE_VERDICT_PASS);
        EXPECT_EQ(value_or_fail(kernel::read_stats(next.instance())).passed.packets, 1U);
    }
}

} // namespace
} // namespace sieve::test
