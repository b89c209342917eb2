// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/event_ring.hpp"

#include <linux/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/packet.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/maps/exact_set.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

TEST(EventRing, TellsWhatWasMatchedAndWhatWasLost) {
    const Scratch scratch = value_or_fail(Scratch::load(false));
    const auto map = map_of(image_of({"10.0.0.1"}));
    ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_PASS, {{"set", SIEVE_ACTION_DROP, map.fd()}}}));
    const Bytes member =
        (Ethernet{} / IPv4{.src = "10.0.0.1"} / Udp{.sport = 7} / Payload{.bytes = 400}).bytes();
    const Bytes non_member = (Ethernet{} / IPv4{.src = "10.0.0.2"} / Udp{.sport = 7}).bytes();
    std::vector<sieve_event> seen;
    const auto keep = [&](const sieve_event& event) {
        seen.push_back(event);
        return true;
    };
    (void)scratch.run(member); // before anybody listens
    // The smallest ring possible, one page, and more packets than it holds.
    const auto page = static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE));
    const std::uint32_t packets = page / 40;
    {
        EventRing ring = value_or_fail(EventRing::start(scratch.instance(), {}, keep, page));
        for (std::uint32_t i = 0; i < packets; i++) {
            EXPECT_EQ(value_or_fail(scratch.run(member)), XDP_DROP);
            EXPECT_EQ(value_or_fail(scratch.run(non_member)), XDP_PASS);
        }
        ASSERT_TRUE(ring.poll(0));
        EXPECT_GE(seen.size(), page / (sizeof(sieve_event) + 16));
        EXPECT_LT(seen.size(), packets);
        EXPECT_EQ(seen.size() + value_or_fail(ring.lost()), packets);
        ASSERT_TRUE(ring.stop());
        EXPECT_FALSE(ring.in_place());
    }
    for (const sieve_event& event : seen) {
        EXPECT_EQ(event.length, member.size());
        EXPECT_EQ(event.captured, SIEVE_EVENT_HEAD);
        EXPECT_TRUE(std::equal(event.head, event.head + SIEVE_EVENT_HEAD, member.begin()));
        EXPECT_EQ(event.verdict, XDP_DROP);
        EXPECT_EQ(event.hits, 1U << event.decision);
        EXPECT_EQ(event.key.word[1], sieve_v4_mapped(0x0a000001));
        EXPECT_EQ(event.have, SIEVE_FIELD_ALL);
    }
    const volatile sieve_control& control = scratch.instance().control();
    EXPECT_EQ(control.watch, 0U);
    EXPECT_EQ(control.sample, 0U);
    EXPECT_EQ(control.ring_id, 0U);
}

TEST(EventRing, ShortPacketsAreWhole) {
    const Scratch scratch = value_or_fail(Scratch::load(false));
    const auto map = map_of(image_of({"10.0.0.1"}));
    ASSERT_TRUE(scratch.table().replace({SIEVE_ACTION_PASS, {{"set", SIEVE_ACTION_COUNT, map.fd()}}}));
    std::vector<sieve_event> seen;
    EventRing ring = value_or_fail(EventRing::start(scratch.instance(), {}, [&](const sieve_event& event) {
        seen.push_back(event);
        return true;
    }));
    std::vector<std::size_t> sizes;
    for (const unsigned payload : {0U, 1U, 213U, 214U, 215U, 1000U}) { // 42 bytes of headers come first
        const Bytes frame =
            (Ethernet{} / IPv4{.src = "10.0.0.1"} / Udp{} / Payload{.bytes = payload}).bytes();
        sizes.push_back(frame.size());
        ASSERT_TRUE(scratch.run(frame));
    }
    ASSERT_TRUE(ring.poll(0));
    ASSERT_EQ(seen.size(), sizes.size());
    for (std::size_t i = 0; i < sizes.size(); i++) {
        EXPECT_EQ(seen[i].length, sizes[i]);
        EXPECT_EQ(seen[i].captured, std::min<std::size_t>(sizes[i], SIEVE_EVENT_HEAD));
        EXPECT_EQ(seen[i].verdict, XDP_PASS);
        EXPECT_EQ(seen[i].decision, SIEVE_NO_SET);
    }
    EXPECT_TRUE(ring.stop());
}

// Only the packets that the listener named are sampled: matches, those that the default decides, and those
// whose match verification rejects.
TEST(EventRing, SamplesWhatTheListenerNames) {
    const Scratch scratch = value_or_fail(Scratch::load(false));
    const Image image = image_of({"10.0.0.1", "10.0.0.2"});
    const auto map = map_of(image);
    KeySet members(SIEVE_FIELD_SRC);
    members.add(value_or_fail(parse_key("10.0.0.1", SIEVE_FIELD_SRC)));
    // The exact set lacks a key of the filter, so that 10.0.0.2 is as good as a false positive.
    const std::vector<sieve_key> keys = {members.at(0)};
    const ExactSet exact = value_or_fail(ExactSet::create(image, keys, "set"));
    ASSERT_TRUE(
        scratch.table().replace({SIEVE_ACTION_PASS, {{"set", SIEVE_ACTION_DROP, map.fd(), 0, exact.fd()}}}));
    const auto sampled = [&](std::uint32_t which) {
        std::vector<std::string> seen;
        EventRing ring = value_or_fail(
            EventRing::start(scratch.instance(), {.which = which}, [&](const sieve_event& event) {
                seen.push_back(format_key(event.key, SIEVE_FIELD_SRC) + (event.hits != 0       ? " hit"
                                                                         : event.rejected != 0 ? " rejected"
                                                                         : event.decision == SIEVE_NO_SET
                                                                             ? " default"
                                                                             : ""));
                return true;
            }));
        for (const char* source : {"10.0.0.1", "10.0.0.2", "10.0.0.3"})
            EXPECT_TRUE(scratch.run((Ethernet{} / IPv4{.src = source} / Udp{}).bytes()));
        EXPECT_TRUE(ring.poll(0));
        EXPECT_TRUE(ring.stop());
        return seen;
    };
    using Seen = std::vector<std::string>;
    EXPECT_EQ(sampled(SIEVE_WATCH_EVENTS), (Seen{"10.0.0.1 hit"}));
    EXPECT_EQ(sampled(SIEVE_WATCH_DEFAULT), (Seen{"10.0.0.2 rejected", "10.0.0.3 default"}));
    EXPECT_EQ(sampled(SIEVE_WATCH_REJECTED), (Seen{"10.0.0.2 rejected"}));
    EXPECT_EQ(sampled(SIEVE_WATCH_SAMPLED), (Seen{"10.0.0.1 hit", "10.0.0.2 rejected", "10.0.0.3 default"}));
    EXPECT_EQ(sampled(SIEVE_WATCH_EVENTS), (Seen{"10.0.0.1 hit"}))
        << "nothing is left of an earlier listener";
}

} // namespace
} // namespace sieve::kernel
