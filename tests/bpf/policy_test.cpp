// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which set decides: order, actions, the default, and the packets that pass whatever the default is.
#include <linux/bpf.h>

#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/packet.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve {
namespace {

using namespace test;
using kernel::WantedSet;

class Policy : public ::testing::Test {
  protected:
    void SetUp() override { scratch_ = &shared_program(); }

    void put(sieve_action default_action, std::vector<WantedSet> sets,
             sieve_action unreadable = SIEVE_ACTION_DROP) {
        const auto done = scratch_->table().replace(
            {.default_action = default_action, .sets = std::move(sets), .unreadable = unreadable});
        ASSERT_TRUE(done) << done.error().message;
    }

    [[nodiscard]] std::uint32_t verdict(const Packet& packet) const {
        const auto verdict = scratch_->run(packet.bytes());
        EXPECT_TRUE(verdict) << verdict.error().message;
        return verdict.value_or(XDP_ABORTED);
    }

    // The name of the deciding set, "default", or "not asked".
    [[nodiscard]] std::string decided_by(const Packet& packet) const {
        const std::uint32_t said = verdict(packet);
        const sieve_trace trace = scratch_->trace();
        EXPECT_EQ(trace.verdict, said);
        if (trace.decision == SIEVE_NO_SET) return "default";
        if (trace.decision == SIEVE_NOT_ASKED) return "not asked";
        const auto table = scratch_->table().read();
        for (const auto& set : table.sets)
            if (set.slot == trace.decision) return set.name;
        return "nobody";
    }

    // Hits of a set since it was loaded.
    [[nodiscard]] sieve_counter hits(const std::string& name) const {
        const auto table = scratch_->table().read();
        const kernel::SetInForce* set = table.find(name);
        if (set == nullptr) return {};
        return kernel::difference(kernel::read_stats(scratch_->instance())->hit[set->slot], set->baseline);
    }

    kernel::Scratch* scratch_ = nullptr;
};

Packet from(const std::string& source) {
    return Ethernet{} / IPv4{.src = source} / Udp{} / Payload{.bytes = 18};
}

TEST_F(Policy, WithoutSetsTheDefaultDecides) {
    EXPECT_EQ(verdict(from("10.0.0.1")), XDP_PASS) << "a program that was just loaded passes";
    put(SIEVE_ACTION_DROP, {});
    EXPECT_EQ(verdict(from("10.0.0.1")), XDP_DROP);
    EXPECT_EQ(decided_by(from("10.0.0.1")), "default");
}

TEST_F(Policy, ABlocklistDropsItsMembersOnly) {
    const auto map = map_of(image_of({"10.0.0.1", "10.0.0.2"}));
    put(SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}});
    EXPECT_EQ(verdict(from("10.0.0.1")), XDP_DROP);
    EXPECT_EQ(verdict(from("10.0.0.2")), XDP_DROP);
    EXPECT_EQ(verdict(from("10.0.0.3")), XDP_PASS);
}

TEST_F(Policy, TheFirstMatchDecides) {
    const auto first = map_of(image_of({"10.0.0.1"}));
    const auto second = map_of(image_of({"10.0.0.1", "10.0.0.2"}));
    put(SIEVE_ACTION_PASS,
        {{"friends", SIEVE_ACTION_PASS, first.fd()}, {"bad", SIEVE_ACTION_DROP, second.fd()}});
    EXPECT_EQ(decided_by(from("10.0.0.1")), "friends");
    EXPECT_EQ(verdict(from("10.0.0.1")), XDP_PASS);
    EXPECT_EQ(decided_by(from("10.0.0.2")), "bad");
    EXPECT_EQ(verdict(from("10.0.0.2")), XDP_DROP);
    put(SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, -1}, {"friends", SIEVE_ACTION_PASS, -1}});
    EXPECT_EQ(decided_by(from("10.0.0.1")), "bad");
    EXPECT_EQ(verdict(from("10.0.0.1")), XDP_DROP);
}

TEST_F(Policy, CountGoesOn) {
    const auto watched = map_of(image_of({"10.0.0.1", "10.0.0.2"}));
    const auto bad = map_of(image_of({"10.0.0.1"}));
    put(SIEVE_ACTION_PASS,
        {{"watched", SIEVE_ACTION_COUNT, watched.fd()}, {"bad", SIEVE_ACTION_DROP, bad.fd()}});
    const std::size_t bytes = from("10.0.0.1").bytes().size();
    EXPECT_EQ(decided_by(from("10.0.0.1")), "bad");
    EXPECT_EQ(decided_by(from("10.0.0.2")), "default");
    EXPECT_EQ(decided_by(from("10.0.0.3")), "default");
    EXPECT_EQ(hits("watched").packets, 2U);
    EXPECT_EQ(hits("watched").bytes, 2 * bytes);
    EXPECT_EQ(hits("bad").packets, 1U);
    EXPECT_EQ(hits("bad").bytes, bytes);
}

// The packets that the default decided follow from other counters.
TEST_F(Policy, CountsWhatTheDefaultDecided) {
    const auto watched = map_of(image_of({"10.0.0.1", "10.0.0.2"}));
    const auto bad = map_of(image_of({"10.0.0.1"}));
    put(SIEVE_ACTION_PASS,
        {{"watched", SIEVE_ACTION_COUNT, watched.fd()}, {"bad", SIEVE_ACTION_DROP, bad.fd()}},
        SIEVE_ACTION_PASS);
    const auto before = kernel::read_stats(scratch_->instance());
    const std::vector<Packet> packets = {
        from("10.0.0.1"),
        from("10.0.0.2"),
        from("10.0.0.3"),
        Ethernet{.type = 0x0806} / Payload{.bytes = 28}, // no key: the sets are not asked
        Ethernet{} / IPv4{.src = "10.0.0.1", .protocol = 6} /
            Payload{.bytes = 3}, // unreadable, with addresses
        Ethernet{} / IPv4{.src = "10.0.0.4", .protocol = 6} / Payload{.bytes = 3}};
    std::uint64_t by_default = 0, decided = 0;
    for (const Packet& packet : packets) {
        const std::string who = decided_by(packet);
        by_default += who == "default" ? 1 : 0;
        decided += who == "bad" ? 1 : 0;
    }
    EXPECT_EQ(by_default, 3U);
    const auto after = kernel::read_stats(scratch_->instance());
    EXPECT_EQ(after->by_default() - before->by_default(), by_default);
    EXPECT_EQ(after->decided - before->decided, decided);
    EXPECT_EQ(after->asked_unreadable - before->asked_unreadable, 2U);
    // With unreadable packets dropped, no set is asked about them, and the default decides nothing.
    put(SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, -1}});
    EXPECT_EQ(decided_by(packets.back()), "not asked");
    EXPECT_EQ(kernel::read_stats(scratch_->instance())->by_default(), after->by_default());
}

TEST_F(Policy, ASetThatDecidedHidesThoseBehindIt) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    put(SIEVE_ACTION_PASS,
        {{"first", SIEVE_ACTION_DROP, map.fd()}, {"second", SIEVE_ACTION_COUNT, map.fd()}});
    EXPECT_EQ(decided_by(from("10.0.0.1")), "first");
    EXPECT_EQ(hits("second").packets, 0U);
}

TEST_F(Policy, AnAllowlistLetsInWhatKeepsTheHostOnTheNet) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    put(SIEVE_ACTION_DROP, {{"friends", SIEVE_ACTION_PASS, map.fd()}});
    EXPECT_EQ(verdict(from("10.0.0.1")), XDP_PASS);
    EXPECT_EQ(verdict(from("10.0.0.2")), XDP_DROP);
    const Packet without_key[] = {
        Ethernet{} / Arp{},
        Ethernet{} / Vlan{} / Arp{},
        Ethernet{} / IPv6{.hop_limit = 255} / Icmp6{.type = 135},
        Ethernet{} / IPv6{.hop_limit = 255} / Icmp6{.type = 136},
        Ethernet{} / Payload{.bytes = 46},
    };
    for (const Packet& packet : without_key) {
        EXPECT_EQ(verdict(packet), XDP_PASS);
        EXPECT_EQ(decided_by(packet), "not asked");
    }
    // But a non-member's echo request counts as a non-member's. So do its fragments, which hide their ports.
    EXPECT_EQ(verdict(Ethernet{} / IPv6{} / Icmp6{}), XDP_DROP);
    EXPECT_EQ(verdict(Ethernet{} / IPv4{.src = "10.0.0.2", .offset = 1} / Payload{.bytes = 20}), XDP_DROP);
}

Packet with_tags(int tags, const Layer& next) {
    Packet packet{Ethernet{}};
    for (int i = 0; i < tags; i++) packet = packet / Vlan{.id = 0};
    return packet / next;
}

Packet with_extensions(int extensions, const std::string& source, const Layer& last) {
    Packet packet = Ethernet{} / IPv6{.src = source};
    for (int i = 0; i < extensions; i++) packet = packet / Extension{};
    return packet / last;
}

// One packet for each reason, from 10.0.0.1 or 2001:db8::9 as far as the packet can be read.
std::vector<std::pair<std::uint32_t, Packet>> unreadable_packets() {
    return {
        {SIEVE_OUTCOME_SHORT, Ethernet{} / IPv4{.src = "10.0.0.1", .protocol = 6} / Payload{.bytes = 1}},
        {SIEVE_OUTCOME_CUT_CHAIN,
         Ethernet{} / IPv6{.src = "2001:db8::9"} / Fragment6{.more = true} / Extension{.next_header = 60}},
        {SIEVE_OUTCOME_LONG_CHAIN, with_extensions(65, "2001:db8::9", Udp{})},
        {SIEVE_OUTCOME_TRUNCATED, Ethernet{.type = 0x0800} / Payload{.bytes = 10}},
        {SIEVE_OUTCOME_MALFORMED, Ethernet{} / IPv4{.src = "10.0.0.1", .version = 5} / Udp{}},
        {SIEVE_OUTCOME_DEEP_VLAN, with_tags(65, IPv4{.src = "10.0.0.1"}) / Udp{}},
        {SIEVE_OUTCOME_SOURCE_ROUTE,
         Ethernet{} / IPv4{.src = "10.0.0.1", .options = source_route(131, {"10.0.0.7"})} / Udp{}},
    };
}

TEST_F(Policy, UnreadablePacketsAreDroppedUnlessToldOtherwise) {
    const auto map = map_of(image_of({"10.0.0.1", "2001:db8::9"}));
    ASSERT_EQ(unreadable_packets().size(), SIEVE_OUTCOMES - SIEVE_OUTCOME_FIRST_UNREADABLE);
    for (const auto& [reason, packet] : unreadable_packets()) {
        SCOPED_TRACE(kernel::outcome_name(reason));
        const auto expect = [&, reason = reason, &packet = packet](std::uint32_t wanted, const char* by) {
            const auto before = *kernel::read_stats(scratch_->instance());
            EXPECT_EQ(decided_by(packet), by);
            EXPECT_EQ(scratch_->trace().verdict, wanted);
            EXPECT_EQ(scratch_->trace().outcome, reason);
            const auto after = *kernel::read_stats(scratch_->instance());
            EXPECT_EQ(after.outcome[reason], before.outcome[reason] + 1);
            EXPECT_EQ(kernel::unreadable_packets(after), kernel::unreadable_packets(before) + 1);
            EXPECT_EQ(after.dropped.packets, before.dropped.packets + (wanted == XDP_DROP));
        };
        const bool has_addresses = reason < SIEVE_OUTCOME_TRUNCATED || reason == SIEVE_OUTCOME_SOURCE_ROUTE;
        // No set is asked, not even one that would let the packet pass.
        for (const sieve_action by_default : {SIEVE_ACTION_PASS, SIEVE_ACTION_DROP})
            for (const sieve_action action : {SIEVE_ACTION_PASS, SIEVE_ACTION_DROP}) {
                put(by_default, {{"set", action, map.fd()}}, SIEVE_ACTION_DROP);
                expect(XDP_DROP, "not asked");
            }
        // The sets are asked about the fields that were read.
        put(SIEVE_ACTION_PASS, {{"set", SIEVE_ACTION_DROP, map.fd()}}, SIEVE_ACTION_PASS);
        expect(has_addresses ? XDP_DROP : XDP_PASS, has_addresses ? "set" : "not asked");
        put(SIEVE_ACTION_DROP, {}, SIEVE_ACTION_PASS);
        expect(has_addresses ? XDP_DROP : XDP_PASS, has_addresses ? "default" : "not asked");
    }
    // A program that no controller has configured drops nothing.
    const auto fresh = kernel::Scratch::load(true);
    ASSERT_TRUE(fresh);
    for (const auto& [reason, packet] : unreadable_packets()) EXPECT_EQ(fresh->run(packet.bytes()), XDP_PASS);
}

// Whatever headers the stack removes from a frame, it finds no listed source behind them.
TEST_F(Policy, NothingHidesAMember) {
    const auto hosts = map_of(image_of({"10.0.0.1", "2001:db8::9"}));
    const auto ports = map_of(image_of({"10.0.0.1 53", "2001:db8::9 53"}, "src,dport"));
    for (const int fd : {hosts.fd(), ports.fd()}) {
        put(SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, fd}});
        for (int tags = 0; tags < 300; tags++)
            EXPECT_EQ(verdict(with_tags(tags, IPv4{.src = "10.0.0.1"}) / Udp{.dport = 53}), XDP_DROP) << tags;
        for (int extensions = 0; extensions < 150; extensions++)
            EXPECT_EQ(verdict(with_extensions(extensions, "2001:db8::9", Udp{.dport = 53})), XDP_DROP)
                << extensions;
        EXPECT_EQ(verdict(Ethernet{} / IPv6{.src = "2001:db8::9", .length = 0} / Extension{.type = 0} /
                          Udp{.dport = 53}),
                  XDP_DROP);
        EXPECT_EQ(verdict(with_tags(60, IPv4{.src = "10.0.0.2"}) / Udp{.dport = 53}), XDP_PASS);
        EXPECT_EQ(verdict(with_extensions(60, "2001:db8::8", Udp{.dport = 53})), XDP_PASS);
    }
}

TEST_F(Policy, AKeyWithPortsNeedsAPacketWithPorts) {
    const auto map = map_of(image_of({"10.0.0.1 0", "10.0.0.1 53"}, "src,dport"));
    put(SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}});
    EXPECT_EQ(verdict(Ethernet{} / IPv4{.src = "10.0.0.1"} / Udp{.dport = 53}), XDP_DROP);
    EXPECT_EQ(verdict(Ethernet{} / IPv4{.src = "10.0.0.1"} / Tcp{.dport = 53}), XDP_DROP);
    EXPECT_EQ(verdict(Ethernet{} / IPv4{.src = "10.0.0.1"} / Udp{.dport = 0}), XDP_DROP);
    EXPECT_EQ(verdict(Ethernet{} / IPv4{.src = "10.0.0.1"} / Udp{.dport = 54}), XDP_PASS);
    // Port 0 is a port. A missing port is not.
    EXPECT_EQ(verdict(Ethernet{} / IPv4{.src = "10.0.0.1"} / Icmp{}), XDP_PASS);
    EXPECT_EQ(
        verdict(Ethernet{} / IPv4{.src = "10.0.0.1", .protocol = 17, .offset = 1} / Payload{.bytes = 8}),
        XDP_PASS);
}

TEST_F(Policy, Ipv4AndIpv6InOneSet) {
    const auto map = map_of(image_of({"10.0.0.1", "2001:db8::9"}));
    put(SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}});
    EXPECT_EQ(verdict(from("10.0.0.1")), XDP_DROP);
    EXPECT_EQ(verdict(Ethernet{} / IPv6{.src = "2001:db8::9"} / Tcp{}), XDP_DROP);
    EXPECT_EQ(verdict(Ethernet{} / IPv6{.src = "2001:db8::a"} / Tcp{}), XDP_PASS);
    // The destination is not the source.
    EXPECT_EQ(verdict(Ethernet{} / IPv6{.src = "2001:db8::a", .dst = "2001:db8::9"} / Tcp{}), XDP_PASS);
}

TEST_F(Policy, EveryPacketIsCountedOnce) {
    const auto map = map_of(image_of({"10.0.0.1"}));
    put(SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}});
    const auto before = *kernel::read_stats(scratch_->instance());
    const std::vector<Packet> packets{from("10.0.0.1"), from("10.0.0.1"), from("10.0.0.2"),
                                      Ethernet{} / Arp{},
                                      Ethernet{} / IPv4{.offset = 1} / Payload{.bytes = 8}};
    std::uint64_t bytes = 0;
    for (const Packet& packet : packets) {
        (void)verdict(packet);
        bytes += packet.bytes().size();
    }
    const auto after = *kernel::read_stats(scratch_->instance());
    const sieve_counter passed = kernel::difference(after.passed, before.passed);
    const sieve_counter dropped = kernel::difference(after.dropped, before.dropped);
    EXPECT_EQ(dropped.packets, 2U);
    EXPECT_EQ(passed.packets, 3U);
    EXPECT_EQ(dropped.bytes + passed.bytes, bytes);
    EXPECT_EQ(after.outcome[SIEVE_OUTCOME_COMPLETE] - before.outcome[SIEVE_OUTCOME_COMPLETE], 3U);
    EXPECT_EQ(after.outcome[SIEVE_OUTCOME_ARP] - before.outcome[SIEVE_OUTCOME_ARP], 1U);
    EXPECT_EQ(after.outcome[SIEVE_OUTCOME_FRAGMENT] - before.outcome[SIEVE_OUTCOME_FRAGMENT], 1U);
}

} // namespace
} // namespace sieve
