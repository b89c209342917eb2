// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kernel's sketch against exact counts: it is never too low, and too high as rarely as the theorem says.
#include "libsieve/kernel/maps/sketch.hpp"

#include <linux/bpf.h>

#include <cmath>
#include <map>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/packet.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

TEST(Sketch, CountsWithinTheBound) {
    const Scratch scratch = value_or_fail(Scratch::load(false));
    std::vector<std::string> members;
    for (int i = 0; i < 900; i++) members.push_back(fmt::format("10.1.{}.{}", i / 250, i % 250));
    const auto map = map_of(image_of(members));
    ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_PASS, {{"set", SIEVE_ACTION_DROP, map.fd()}}}));
    const auto send = [&](std::size_t i) {
        const auto frame = (Ethernet{} / IPv4{.src = members[i]} / Udp{}).bytes();
        ASSERT_EQ(value_or_fail(scratch.run(frame)), XDP_DROP);
    };
    EXPECT_FALSE(is_tallying(scratch.instance()));
    send(0);
    ASSERT_TRUE(start_tally(scratch.instance()));
    EXPECT_TRUE(is_tallying(scratch.instance()));
    // Zipf: the i-th member 2000/(i+1) times.
    std::map<std::uint64_t, std::uint64_t> exact; // by the key's word
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < members.size(); i++) {
        const std::uint64_t times = 2000 / (i + 1) + 1;
        for (std::uint64_t k = 0; k < times; k++) send(i);
        exact[sieve_v4_mapped(static_cast<std::uint32_t>(0x0a010000 + (i / 250 << 8) + i % 250))] = times;
        total += times;
    }
    const Tally tally = value_or_fail(read_tally(scratch.instance(), 1024));
    EXPECT_EQ(tally.total, total);
    ASSERT_GT(tally.keys.size(), 300U);
    std::uint64_t above = 0, previous = ~0ULL;
    for (const HeavyKey& heavy : tally.keys) {
        ASSERT_TRUE(exact.contains(heavy.key.word[1]));
        EXPECT_EQ(heavy.key.word[0] | heavy.key.word[2] | heavy.key.word[3] | heavy.key.word[4], 0U);
        const std::uint64_t truth = exact.at(heavy.key.word[1]);
        EXPECT_GE(heavy.packets, truth);
        if (static_cast<double>(heavy.packets - truth) > tally_error * static_cast<double>(total)) above++;
        EXPECT_LE(heavy.packets, previous);
        previous = heavy.packets;
    }
    const double allowed = tally_failure() * static_cast<double>(tally.keys.size());
    EXPECT_LE(static_cast<double>(above), allowed + 5 * std::sqrt(allowed) + 1);
    // The twenty heaviest keys are there, in order as far as the error can tell them apart.
    for (std::size_t i = 0; i < 10; i++)
        EXPECT_EQ(exact.at(tally.keys[i].key.word[1]), 2000 / (i + 1) + 1) << i;

    ASSERT_TRUE(stop_tally(scratch.instance()));
    EXPECT_FALSE(is_tallying(scratch.instance()));
    send(0);
    EXPECT_EQ(value_or_fail(read_tally(scratch.instance(), 10)).total, 0U);
}

} // namespace
} // namespace sieve::kernel
