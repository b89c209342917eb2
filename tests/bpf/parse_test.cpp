// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The parser in the kernel (BPF_PROG_TEST_RUN), in each hook's program: known packets, every truncation of
// them, and mutations of them, against the model.
#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <sieve/policy.h>

#include "bpf/packet.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "model/parse_model.hpp"

namespace sieve {
namespace {

using namespace test;

constexpr std::uint32_t addresses = SIEVE_FIELD_ADDRESSES;
constexpr std::uint32_t all = SIEVE_FIELD_ALL;
constexpr std::uint32_t with_proto = SIEVE_FIELD_ADDRESSES | SIEVE_FIELD_PROTO;

class Parse : public ::testing::TestWithParam<kernel::HookPoint> {
  protected:
    static void SetUpTestSuite() {
        for (const kernel::HookPoint point : kernel::all_hook_points) {
            auto loaded = kernel::Scratch::load(true, point);
            ASSERT_TRUE(loaded) << loaded.error().message;
            scratches_.emplace(point, std::move(*loaded));
        }
    }
    static void TearDownTestSuite() { scratches_.clear(); }

    void SetUp() override { scratch_ = &scratches_.at(GetParam()); }
    void TearDown() override { begin_with(SIEVE_LINK_ETHERNET); }

    // What packets begin with from now on.
    void begin_with(sieve_link link) { scratch_->instance().control().link = link; }

    [[nodiscard]] sieve_link link() const {
        return static_cast<sieve_link>(scratch_->instance().control().link);
    }

    // What the program saw of a frame. The kernel needs at least 14 bytes, so shorter frames are not tested.
    // Nor are frames that the kernel refuses for tc's programs, all of them cut inside their IP header.
    // `segment` is not zero for a packet that awaits segmentation.
    Parsed seen(const Bytes& frame, std::uint32_t segment = 0) {
        Parsed parsed;
        if (!scratch_->can_run(frame)) return parse_by_model(frame, link(), segment != 0);
        const auto verdict = scratch_->run(frame, segment);
        EXPECT_TRUE(verdict) << verdict.error().message;
        const sieve_trace trace = scratch_->trace();
        parsed.outcome = trace.outcome;
        parsed.have = trace.have;
        // The program leaves old words where `have` does not cover them. Their values do not matter.
        if ((trace.have & SIEVE_FIELD_SRC) != 0)
            parsed.key[0] = trace.key.word[0], parsed.key[1] = trace.key.word[1];
        if ((trace.have & SIEVE_FIELD_DST) != 0)
            parsed.key[2] = trace.key.word[2], parsed.key[3] = trace.key.word[3];
        parsed.key[4] = trace.key.word[4] & sieve_transport_mask(trace.have);
        return parsed;
    }

    void expect(const Packet& packet, std::uint32_t outcome, std::uint32_t have) {
        const Parsed parsed = seen(packet.bytes());
        EXPECT_EQ(parsed.outcome, outcome);
        EXPECT_EQ(parsed.have, have);
        EXPECT_EQ(parsed, parse_by_model(packet.bytes()));
    }

    static std::map<kernel::HookPoint, kernel::Scratch> scratches_;
    kernel::Scratch* scratch_ = nullptr;
};

std::map<kernel::HookPoint, kernel::Scratch> Parse::scratches_;

INSTANTIATE_TEST_SUITE_P(Hooks, Parse, testing::ValuesIn(kernel::all_hook_points),
                         [](const auto& info) { return std::string(kernel::hook_point_name(info.param)); });

Packet chain(int extensions, const Layer& last) {
    Packet packet = Ethernet{} / IPv6{};
    for (int i = 0; i < extensions; i++) packet = packet / Extension{.units = static_cast<unsigned>(i % 3)};
    return packet / last;
}

Packet tagged(int tags, const Layer& next) {
    Packet packet{Ethernet{}};
    for (int i = 0; i < tags; i++)
        packet = packet / Vlan{.tpid = static_cast<std::uint16_t>(i % 2 == 0 ? 0x88a8 : 0x8100)};
    return packet / next;
}

// One packet of every sort, whole and well-formed: the raw material of truncations and mutations.
std::vector<Packet> corpus() {
    std::vector<Packet> packets{
        Ethernet{} / Arp{},
        Ethernet{} / Payload{.bytes = 46},
        Ethernet{.type = 60} / Payload{.bytes = 60}, // 802.3 length
        Ethernet{} / IPv4{} / Tcp{},
        Ethernet{} / IPv4{} / Udp{} / Payload{.bytes = 20},
        Ethernet{} / IPv4{} / Dccp{},
        Ethernet{} / IPv4{} / Sctp{},
        Ethernet{} / IPv4{} / UdpLite{},
        Ethernet{} / IPv4{} / Icmp{},
        Ethernet{} / IPv4{} / IPv4{} / Udp{},
        Ethernet{} / IPv4{.options = no_operations(40)} / Tcp{},
        Ethernet{} / IPv4{.options = source_route(131, {"203.0.113.1", "203.0.113.2"})} / Tcp{},
        Ethernet{} / IPv4{.more = true} / Udp{},
        Ethernet{} / IPv4{.offset = 5} / Payload{.bytes = 30, .protocol = 17},
        Ethernet{} / IPv6{} / Tcp{},
        Ethernet{} / IPv6{} / Udp{},
        Ethernet{} / IPv6{} / Icmp6{},
        Ethernet{} / IPv6{.hop_limit = 255} / Icmp6{.type = 135},
        Ethernet{} / IPv6{} / Extension{.type = 0} / Extension{.type = 43, .units = 2} / Tcp{},
        Ethernet{} / IPv6{} / Extension{.type = 51, .units = 4} / Udp{},
        Ethernet{} / IPv6{} / Extension{.units = 4} / Icmp6{},
        tagged(9, IPv6{}) / Extension{.units = 4} / Icmp6{},
        Ethernet{} / IPv6{} / Extension{.type = 43, .units = 4, .route = 4, .left = 1} / Udp{},
        Ethernet{} / IPv6{} / Fragment6{} / Udp{},
        Ethernet{} / IPv6{} / Fragment6{.more = true} / Extension{} / Udp{},
        Ethernet{} / IPv6{} / Fragment6{.offset = 3} / Payload{.bytes = 16, .protocol = 17},
        tagged(1, IPv4{}) / Tcp{},
        tagged(4, IPv6{}) / Extension{} / Udp{},
        tagged(4, IPv4{.options = no_operations(12)}) / Udp{},
        tagged(2, Arp{}),
    };
    for (const std::uint8_t type : {135, 139, 140})
        packets.push_back(Ethernet{} / IPv6{} / Extension{.type = type} / Udp{});
    for (int i = 0; i <= 9; i++) packets.push_back(chain(i, Udp{}));
    for (const int i : {20, 64, 65, 66}) packets.push_back(chain(i, Udp{}));
    for (const int i : {2, 3, 4, 5, 6, 20, 64, 65, 66}) {
        packets.push_back(tagged(i, IPv4{}) / Udp{});
        packets.push_back(tagged(i, IPv6{}) / Extension{} / Udp{});
    }
    return packets;
}

TEST_P(Parse, Transports) {
    for (const auto& [packet, proto] :
         std::vector<std::pair<Packet, unsigned>>{{Ethernet{} / IPv4{} / Tcp{}, 6},
                                                  {Ethernet{} / IPv4{} / Udp{}, 17},
                                                  {Ethernet{} / IPv4{} / Dccp{}, 33},
                                                  {Ethernet{} / IPv4{} / Sctp{}, 132},
                                                  {Ethernet{} / IPv4{} / UdpLite{}, 136},
                                                  {Ethernet{} / IPv6{} / Tcp{}, 6},
                                                  {Ethernet{} / IPv6{} / Udp{}, 17},
                                                  {Ethernet{} / IPv6{} / Dccp{}, 33},
                                                  {Ethernet{} / IPv6{} / Sctp{}, 132},
                                                  {Ethernet{} / IPv6{} / UdpLite{}, 136},
                                                  {chain(9, UdpLite{}), 136}}) {
        expect(packet, SIEVE_OUTCOME_COMPLETE, SIEVE_FIELD_ALL);
        EXPECT_EQ(seen(packet.bytes()).key[4], 1000ULL << 24 | 2000ULL << 8 | proto);
    }
}

TEST_P(Parse, Addresses) {
    const Parsed v4 = seen((Ethernet{} / IPv4{.src = "1.2.3.4", .dst = "250.251.252.253"} / Udp{}).bytes());
    EXPECT_EQ(v4.key[0], 0U);
    EXPECT_EQ(v4.key[1], 0xffff01020304U);
    EXPECT_EQ(v4.key[2], 0U);
    EXPECT_EQ(v4.key[3], 0xfffffafbfcfdU);
    const Parsed v6 =
        seen((Ethernet{} / IPv6{.src = "2001:db8:1:2:3:4:5:6", .dst = "fe80::1"} / Udp{}).bytes());
    EXPECT_EQ(v6.key[0], 0x20010db800010002U);
    EXPECT_EQ(v6.key[1], 0x0003000400050006U);
    EXPECT_EQ(v6.key[2], 0xfe80000000000000U);
    EXPECT_EQ(v6.key[3], 1U);
}

TEST_P(Parse, ProtocolsWithoutPortsAreComplete) {
    expect(Ethernet{} / IPv4{} / Icmp{}, SIEVE_OUTCOME_COMPLETE, with_proto);
    expect(Ethernet{} / IPv6{} / Icmp6{}, SIEVE_OUTCOME_COMPLETE, with_proto);
    expect(Ethernet{} / IPv4{} / Payload{.bytes = 8, .protocol = 50}, SIEVE_OUTCOME_COMPLETE, with_proto);
    expect(Ethernet{} / IPv6{} / Payload{.bytes = 8, .protocol = 50}, SIEVE_OUTCOME_COMPLETE, with_proto);
    expect(Ethernet{} / IPv4{} / Payload{.bytes = 0, .protocol = 47}, SIEVE_OUTCOME_COMPLETE, with_proto);
}

TEST_P(Parse, TunnelsAreNotEntered) {
    const Packet packet = Ethernet{} / IPv4{.src = "10.0.0.1"} / IPv4{.src = "10.0.0.2"} / Udp{};
    expect(packet, SIEVE_OUTCOME_COMPLETE, with_proto);
    EXPECT_EQ(seen(packet.bytes()).key[1], 0xffff0a000001U);
}

// From four tags on, another parser reads the tags.
TEST_P(Parse, VlanTagsUpToTheBound) {
    for (const int tags : {0, 1, 2, 3, 4, 5, 6, 20, 63, 64}) {
        SCOPED_TRACE(tags);
        expect(tagged(tags, IPv4{.options = no_operations(8)}) / Udp{}, SIEVE_OUTCOME_COMPLETE, all);
        expect(tagged(tags, IPv6{}) / Extension{} / Tcp{}, SIEVE_OUTCOME_COMPLETE, all);
        expect(tagged(tags, IPv4{.offset = 7}) / Udp{}, SIEVE_OUTCOME_FRAGMENT, with_proto);
        expect(tagged(tags, IPv4{.version = 5}) / Udp{}, SIEVE_OUTCOME_MALFORMED, 0);
        expect(tagged(tags, IPv6{.hop_limit = 255}) / Icmp6{.type = 135}, SIEVE_OUTCOME_NEIGHBOUR, 0);
        expect(tagged(tags, Arp{}), SIEVE_OUTCOME_ARP, 0);
        expect(tagged(tags, Payload{.bytes = 50}), SIEVE_OUTCOME_NON_IP, 0);
    }
    for (const int tags : {65, 66, 200}) {
        expect(tagged(tags, IPv4{}) / Udp{}, SIEVE_OUTCOME_DEEP_VLAN, 0);
        expect(tagged(tags, Arp{}), SIEVE_OUTCOME_DEEP_VLAN, 0);
    }
}

TEST_P(Parse, Ipv4Options) {
    for (std::size_t options = 0; options <= 40; options += 4) {
        const Packet packet =
            Ethernet{} / IPv4{.options = no_operations(options)} / Udp{.sport = 1, .dport = 2};
        expect(packet, SIEVE_OUTCOME_COMPLETE, SIEVE_FIELD_ALL);
        EXPECT_EQ(seen(packet.bytes()).key[4], 1ULL << 24 | 2 << 8 | 17);
    }
}

// Such a packet is on its way to the route's last stop, which the header does not name (RFC 791).
TEST_P(Parse, Ipv4SourceRoutes) {
    for (const std::uint8_t type : {131, 137}) {
        SCOPED_TRACE(int{type});
        const Bytes one = source_route(type, {"203.0.113.1"});
        expect(Ethernet{} / IPv4{.options = one} / Udp{}, SIEVE_OUTCOME_SOURCE_ROUTE, all);
        expect(tagged(9, IPv4{.options = one}) / Udp{}, SIEVE_OUTCOME_SOURCE_ROUTE, all);
        expect(Ethernet{} / IPv4{.offset = 5, .options = one} / Udp{}, SIEVE_OUTCOME_SOURCE_ROUTE,
               with_proto);
        expect(Ethernet{} / IPv4{.options = one} / Icmp{}, SIEVE_OUTCOME_SOURCE_ROUTE, with_proto);
        expect(Ethernet{} / IPv4{.protocol = 6, .options = one}, SIEVE_OUTCOME_SHORT, with_proto);
        // Behind other options, up to the last bytes of the longest header.
        for (std::size_t before = 0; before <= 32; before += 4) {
            Bytes options = no_operations(before);
            options.insert(options.end(), one.begin(), one.end());
            expect(Ethernet{} / IPv4{.options = options} / Udp{}, SIEVE_OUTCOME_SOURCE_ROUTE, all);
        }
        const std::vector<std::string> stops{"203.0.113.1", "203.0.113.2", "203.0.113.3"};
        // The pointer's units are bytes; it starts at 4. Behind the option's end, nothing is left.
        for (std::uint8_t pointer = 0; pointer < 20; pointer++)
            expect(Ethernet{} / IPv4{.options = source_route(type, stops, pointer)} / Udp{},
                   pointer <= 15 ? SIEVE_OUTCOME_SOURCE_ROUTE : SIEVE_OUTCOME_COMPLETE, all);
    }
}

TEST_P(Parse, OtherIpv4Options) {
    // End of list, then what looks like a route; record route; time stamp; router alert.
    for (const Bytes& options :
         {Bytes{0, 131, 3, 4}, Bytes{7, 7, 4, 131, 7, 4, 0, 0}, Bytes{68, 8, 5, 0, 131, 7, 4, 0},
          Bytes{148, 4, 0, 0}, Bytes{148, 2, 148, 2}, Bytes{1, 1, 130, 1 + 4, 0, 0, 0, 0}})
        expect(Ethernet{} / IPv4{.options = options} / Udp{}, SIEVE_OUTCOME_COMPLETE, all);
    // Lengths that lead nowhere: nobody can tell which options follow.
    for (const Bytes& options : {Bytes{148, 0, 0, 0}, Bytes{148, 1, 0, 0}, Bytes{148, 5, 0, 0},
                                 Bytes{1, 1, 1, 148}, Bytes{1, 1, 131, 2}, Bytes{131, 2, 0, 0}})
        expect(Ethernet{} / IPv4{.options = options} / Udp{}, SIEVE_OUTCOME_SOURCE_ROUTE, all);
}

// Whatever the type: of type 0 nobody may make use (RFC 5095), 2 is Mobile IPv6, 3 RPL, 4 segment routing.
TEST_P(Parse, Ipv6RoutingHeaders) {
    for (const std::uint8_t route : {0, 2, 3, 4, 253}) {
        SCOPED_TRACE(int{route});
        const Extension left{.type = 43, .units = 2, .route = route, .left = 1};
        const Extension done{.type = 43, .units = 2, .route = route, .left = 0};
        expect(Ethernet{} / IPv6{} / done / Udp{}, SIEVE_OUTCOME_COMPLETE, all);
        expect(Ethernet{} / IPv6{} / left / Udp{}, SIEVE_OUTCOME_SOURCE_ROUTE, all);
        expect(Ethernet{} / IPv6{} / done / left / Icmp6{}, SIEVE_OUTCOME_SOURCE_ROUTE, with_proto);
        expect(Ethernet{} / IPv6{} / left / done / Icmp6{}, SIEVE_OUTCOME_SOURCE_ROUTE, with_proto);
        expect(chain(20, left) / Udp{}, SIEVE_OUTCOME_SOURCE_ROUTE, all);
        expect(chain(64, left) / Udp{}, SIEVE_OUTCOME_LONG_CHAIN, addresses);
        expect(Ethernet{} / IPv6{} / left / Fragment6{.offset = 3} / Payload{.bytes = 8, .protocol = 17},
               SIEVE_OUTCOME_SOURCE_ROUTE, with_proto);
        // It goes on to another link, so it is no neighbour discovery.
        expect(Ethernet{} / IPv6{.hop_limit = 255} / left / Icmp6{.type = 135}, SIEVE_OUTCOME_SOURCE_ROUTE,
               with_proto);
        expect(Ethernet{} / IPv6{.hop_limit = 255} / done / Icmp6{.type = 135}, SIEVE_OUTCOME_NEIGHBOUR, 0);
        expect(Ethernet{} / IPv6{.length = 4} / left / Udp{}, SIEVE_OUTCOME_CUT_CHAIN, addresses);
    }
    // Only a routing header has segments.
    for (const std::uint8_t type : {0, 60})
        expect(Ethernet{} / IPv6{} / Extension{.type = type} / Udp{}, SIEVE_OUTCOME_COMPLETE, all);
    expect(Ethernet{} / IPv6{} / Fragment6{.more = true} / Udp{}, SIEVE_OUTCOME_COMPLETE, all);
}

TEST_P(Parse, Ipv4Fragments) {
    expect(Ethernet{} / IPv4{.more = true} / Udp{}, SIEVE_OUTCOME_COMPLETE, SIEVE_FIELD_ALL);
    expect(Ethernet{} / IPv4{.offset = 1, .more = true} / Udp{}, SIEVE_OUTCOME_FRAGMENT, with_proto);
    expect(Ethernet{} / IPv4{.offset = 0x1fff} / Udp{}, SIEVE_OUTCOME_FRAGMENT, with_proto);
    // A first fragment that is too small for its ports.
    expect(Ethernet{} / IPv4{.protocol = 17, .more = true} / Payload{.bytes = 3}, SIEVE_OUTCOME_SHORT,
           with_proto);
}

// From eight headers on, another parser reads the headers.
TEST_P(Parse, Ipv6ExtensionChainsUpToTheBound) {
    for (const int extensions : {0, 1, 2, 7, 8, 9, 10, 30, 63, 64}) {
        SCOPED_TRACE(extensions);
        expect(chain(extensions, Udp{}), SIEVE_OUTCOME_COMPLETE, all);
        expect(chain(extensions, Icmp6{}), SIEVE_OUTCOME_COMPLETE, with_proto);
    }
    for (const int extensions : {65, 66, 100})
        expect(chain(extensions, Udp{}), SIEVE_OUTCOME_LONG_CHAIN, addresses);
    expect(chain(20, Fragment6{.offset = 5}) / Payload{.bytes = 8, .protocol = 17}, SIEVE_OUTCOME_FRAGMENT,
           with_proto);
    // The chain of headers continues in the next fragment.
    expect(Ethernet{} / IPv6{} / Fragment6{.more = true} / Extension{.next_header = 60},
           SIEVE_OUTCOME_CUT_CHAIN, addresses);
    expect(Ethernet{} / IPv6{} / Extension{.type = 0, .units = 200} / Extension{.type = 60, .units = 100} /
               Tcp{},
           SIEVE_OUTCOME_COMPLETE, SIEVE_FIELD_ALL);
}

// Whatever follows it: a protocol without ports asks for no byte.
TEST_P(Parse, AnExtensionHeaderThatIsNotWhole) {
    for (const int before : {0, 1, 20}) {
        SCOPED_TRACE(before);
        const Packet whole = chain(before, Extension{.units = 3}) / Icmp6{};
        Bytes bytes = whole.bytes();
        bytes.resize(bytes.size() - Packet{Icmp6{}}.bytes().size());
        for (const bool cut : {false, true}) {
            if (cut) bytes.pop_back();
            const Parsed parsed = seen(bytes);
            EXPECT_EQ(parsed.outcome, cut ? SIEVE_OUTCOME_CUT_CHAIN : SIEVE_OUTCOME_COMPLETE);
            EXPECT_EQ(parsed, parse_by_model(bytes));
        }
    }
    for (const std::uint16_t bytes : {8, 31}) {
        expect(Ethernet{} / IPv6{.length = bytes} / Extension{.units = 3} / Icmp6{}, SIEVE_OUTCOME_CUT_CHAIN,
               addresses);
        expect(tagged(9, IPv6{.length = bytes}) / Extension{.units = 3} / Icmp6{}, SIEVE_OUTCOME_CUT_CHAIN,
               addresses);
    }
    expect(Ethernet{} / IPv6{.length = 32} / Extension{.units = 3} / Icmp6{}, SIEVE_OUTCOME_COMPLETE,
           with_proto);
}

// Mobility, HIP and Shim6 are upper protocols to Linux, which hands them to raw sockets and looks no further.
TEST_P(Parse, Ipv6HeadersThatLinuxDoesNotFollow) {
    for (const std::uint8_t type : {135, 139, 140}) {
        SCOPED_TRACE(int{type});
        for (const int before : {0, 2, 9, 64}) {
            const Packet packet = chain(before, Extension{.type = type}) / Udp{};
            expect(packet, SIEVE_OUTCOME_COMPLETE, with_proto);
            EXPECT_EQ(seen(packet.bytes()).key[4], type);
        }
        // Its length field does not matter, nor whether it is there.
        expect(Ethernet{} / IPv6{} / Payload{.bytes = 2, .protocol = type}, SIEVE_OUTCOME_COMPLETE,
               with_proto);
        expect(Ethernet{} / IPv6{} / Fragment6{.offset = 1, .next_header = type} / Payload{.bytes = 8},
               SIEVE_OUTCOME_FRAGMENT, with_proto);
    }
}

TEST_P(Parse, Ipv6Fragments) {
    // An atomic fragment (RFC 6946) is a whole packet.
    expect(Ethernet{} / IPv6{} / Fragment6{} / Udp{}, SIEVE_OUTCOME_COMPLETE, SIEVE_FIELD_ALL);
    expect(Ethernet{} / IPv6{} / Fragment6{.more = true} / Udp{}, SIEVE_OUTCOME_COMPLETE, SIEVE_FIELD_ALL);
    expect(Ethernet{} / IPv6{} / Fragment6{.offset = 1} / Payload{.bytes = 8, .protocol = 17},
           SIEVE_OUTCOME_FRAGMENT, with_proto);
    // In a later fragment, the header behind the fragment header is somewhere else.
    expect(Ethernet{} / IPv6{} / Fragment6{.offset = 1, .next_header = 60} / Payload{.bytes = 8},
           SIEVE_OUTCOME_FRAGMENT, addresses);
    expect(Ethernet{} / IPv6{} / Extension{} / Fragment6{.offset = 9} / Payload{.bytes = 8, .protocol = 6},
           SIEVE_OUTCOME_FRAGMENT, with_proto);
}

TEST_P(Parse, NeighbourDiscovery) {
    for (std::uint8_t type = 130; type <= 140; type++) {
        const bool discovery = type >= 133 && type <= 137;
        expect(Ethernet{} / IPv6{.hop_limit = 255} / Icmp6{.type = type},
               discovery ? SIEVE_OUTCOME_NEIGHBOUR : SIEVE_OUTCOME_COMPLETE, discovery ? 0 : with_proto);
        // Routed at least once, so not of this link.
        expect(Ethernet{} / IPv6{.hop_limit = 254} / Icmp6{.type = type}, SIEVE_OUTCOME_COMPLETE, with_proto);
    }
}

TEST_P(Parse, HeadersThatContradictThemselves) {
    expect(Ethernet{} / IPv4{.version = 6} / Udp{}, SIEVE_OUTCOME_MALFORMED, 0);
    expect(Ethernet{} / IPv4{.ihl = 4} / Udp{}, SIEVE_OUTCOME_MALFORMED, 0);
    expect(Ethernet{} / IPv4{.ihl = 0} / Udp{}, SIEVE_OUTCOME_MALFORMED, 0);
    expect(Ethernet{} / IPv4{.total = 19} / Udp{}, SIEVE_OUTCOME_MALFORMED, 0);
    expect(Ethernet{} / IPv4{.ihl = 15, .total = 59} / Payload{.bytes = 80}, SIEVE_OUTCOME_MALFORMED, 0);
    expect(Ethernet{} / IPv6{.version = 4} / Udp{}, SIEVE_OUTCOME_MALFORMED, 0);
    // The header claims options that the packet does not have.
    expect(Ethernet{} / IPv4{.ihl = 15, .total = 60} / Payload{.bytes = 10}, SIEVE_OUTCOME_TRUNCATED, 0);
}

TEST_P(Parse, PaddingIsNotPorts) {
    // By the IP header's length, the packet ends before, within, or right behind the ports.
    for (std::uint16_t bytes = 0; bytes < 8; bytes++) {
        const bool ports = bytes >= 4;
        expect(Ethernet{} / IPv4{.total = static_cast<std::uint16_t>(20 + bytes)} / Udp{} /
                   Payload{.bytes = 18},
               ports ? SIEVE_OUTCOME_COMPLETE : SIEVE_OUTCOME_SHORT, ports ? all : with_proto);
        expect(Ethernet{} / IPv6{.length = bytes} / Udp{} / Payload{.bytes = 18},
               ports ? SIEVE_OUTCOME_COMPLETE : SIEVE_OUTCOME_SHORT, ports ? all : with_proto);
        expect(Ethernet{} / IPv6{.length = bytes} / Extension{} / Udp{}, SIEVE_OUTCOME_CUT_CHAIN, addresses);
    }
}

// Before a hop-by-hop header, Linux reads a length of zero as "all there is", jumbogram or not.
TEST_P(Parse, NoLengthBeforeAHopByHopHeader) {
    expect(Ethernet{} / IPv6{.length = 0} / Extension{.type = 0} / Udp{}, SIEVE_OUTCOME_COMPLETE, all);
    expect(Ethernet{} / IPv6{.length = 0} / Extension{.type = 0} / Extension{} / Tcp{},
           SIEVE_OUTCOME_COMPLETE, all);
    expect(tagged(9, IPv6{.length = 0}) / Extension{.type = 0} / Udp{}, SIEVE_OUTCOME_COMPLETE, all);
    // Before any other header, zero is the length.
    expect(Ethernet{} / IPv6{.length = 0} / Extension{} / Udp{}, SIEVE_OUTCOME_CUT_CHAIN, addresses);
    expect(Ethernet{} / IPv6{.length = 0} / Udp{}, SIEVE_OUTCOME_SHORT, with_proto);
    // So is any other number.
    expect(Ethernet{} / IPv6{.length = 8} / Extension{.type = 0} / Udp{}, SIEVE_OUTCOME_SHORT, with_proto);
}

TEST_P(Parse, WhatIsNotIp) {
    expect(Ethernet{} / Arp{}, SIEVE_OUTCOME_ARP, 0);
    expect(Ethernet{} / Payload{.bytes = 46}, SIEVE_OUTCOME_NON_IP, 0);
    expect(Ethernet{.type = 46} / Payload{.bytes = 46}, SIEVE_OUTCOME_NON_IP, 0);
    expect(Packet(Ethernet{.type = 0x0800}), SIEVE_OUTCOME_TRUNCATED, 0);
    expect(Packet(Ethernet{.type = 0x8100}), SIEVE_OUTCOME_TRUNCATED, 0);
}

// Without its Ethernet header.
Bytes bare(const Packet& packet) {
    const Bytes whole = packet.bytes();
    return {whole.begin() + 14, whole.end()};
}

TEST_P(Parse, PacketsWithoutALinkHeader) {
    begin_with(SIEVE_LINK_IP);
    const auto agree = [this](const Bytes& packet, std::uint32_t outcome, std::uint32_t have) {
        const Parsed parsed = seen(packet);
        EXPECT_EQ(parsed.outcome, outcome);
        EXPECT_EQ(parsed.have, have);
        EXPECT_EQ(parsed, parse_by_model(packet, SIEVE_LINK_IP));
    };
    agree(bare(Ethernet{} / IPv4{} / Udp{}), SIEVE_OUTCOME_COMPLETE, all);
    agree(bare(Ethernet{} / IPv4{.options = no_operations(40)} / Tcp{}), SIEVE_OUTCOME_COMPLETE, all);
    agree(bare(Ethernet{} / IPv4{.options = source_route(137, {"192.0.2.9"})} / Tcp{}),
          SIEVE_OUTCOME_SOURCE_ROUTE, all);
    agree(bare(Ethernet{} / IPv6{} / Udp{}), SIEVE_OUTCOME_COMPLETE, all);
    agree(bare(chain(8, Tcp{})), SIEVE_OUTCOME_COMPLETE, all);
    agree(bare(Ethernet{} / IPv6{.hop_limit = 255} / Icmp6{.type = 135}), SIEVE_OUTCOME_NEIGHBOUR, 0);
    agree(Bytes(60, 0x10), SIEVE_OUTCOME_NON_IP, 0);
    agree(Bytes(60, 0x4f), SIEVE_OUTCOME_SOURCE_ROUTE, with_proto); // its options cannot be read
    // An Ethernet frame is no bare IP packet: its first byte belongs to an address.
    agree((Ethernet{} / IPv4{} / Udp{}).bytes(), SIEVE_OUTCOME_NON_IP, 0);
    for (const Packet& packet : corpus()) {
        const Bytes whole = bare(packet);
        for (std::size_t length = kernel::shortest_run; length <= whole.size(); length++) {
            const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
            ASSERT_EQ(seen(cut), parse_by_model(cut, SIEVE_LINK_IP)) << "cut to " << length;
        }
    }
}

// BIG TCP: packets that await segmentation may be too long for their length fields, which then hold zero. At
// XDP only the packet's length shows this, and no test run can have such a length.
TEST_P(Parse, PacketsThatAwaitSegmentationMayLackALength) {
    const Packet v4 = Ethernet{} / IPv4{.total = 0} / Tcp{} / Payload{.bytes = 1000};
    const Packet v6 = Ethernet{} / IPv6{.length = 0} / Tcp{} / Payload{.bytes = 1000};
    const Packet jumbo =
        Ethernet{} / IPv6{.length = 0} / Extension{.type = 0} / Tcp{} / Payload{.bytes = 1000};
    expect(v4, SIEVE_OUTCOME_MALFORMED, 0);
    expect(v6, SIEVE_OUTCOME_SHORT, with_proto);
    expect(jumbo, SIEVE_OUTCOME_COMPLETE, all);
    if (GetParam() == kernel::HookPoint::xdp) return;
    for (const Packet& packet : {v4, v6, jumbo}) {
        const Parsed parsed = seen(packet.bytes(), 500);
        EXPECT_EQ(parsed.outcome, SIEVE_OUTCOME_COMPLETE);
        EXPECT_EQ(parsed.have, all);
        EXPECT_EQ(parsed.key[4], 1000ULL << 24 | 2000ULL << 8 | 6);
        EXPECT_EQ(parsed, parse_by_model(packet.bytes(), SIEVE_LINK_ETHERNET, true));
    }
    // A length other than zero counts.
    const Packet stated = Ethernet{} / IPv4{.total = 22} / Tcp{} / Payload{.bytes = 1000};
    EXPECT_EQ(seen(stated.bytes(), 500), parse_by_model(stated.bytes(), SIEVE_LINK_ETHERNET, true));
    EXPECT_EQ(seen(stated.bytes(), 500).outcome, SIEVE_OUTCOME_SHORT);
}

TEST_P(Parse, EveryTruncationOfEveryPacket) {
    std::size_t asked = 0;
    const std::vector<Packet> packets = corpus();
    for (std::size_t i = 0; i < packets.size(); i++) {
        const Bytes whole = packets[i].bytes();
        for (std::size_t length = kernel::shortest_run; length <= whole.size(); length++, asked++) {
            const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
            ASSERT_EQ(seen(cut), parse_by_model(cut)) << "packet " << i << " cut to " << length;
        }
    }
    EXPECT_GT(asked, 2000U);
}

TEST_P(Parse, MutationsAgreeWithTheModel) {
    std::mt19937_64 random(20260730);
    const std::vector<Packet> packets = corpus();
    std::array<std::size_t, SIEVE_OUTCOME_SLOTS> outcomes{};
    for (int i = 0; i < 200'000; i++) {
        Bytes bytes = packets[random() % packets.size()].bytes();
        // Few bytes change, mostly in the headers, often to values that have a meaning there.
        for (std::uint64_t changes = 1 + random() % 3; changes > 0; changes--) {
            static constexpr std::uint8_t telling[] = {0,   1,   2,   3,   4,    6,    7,   17,  33,
                                                       43,  44,  51,  58,  60,   131,  132, 135, 136,
                                                       137, 139, 140, 255, 0x45, 0x46, 0x60};
            const std::size_t at = 12 + random() % std::min<std::size_t>(bytes.size() - 12, 90);
            bytes[at] = random() % 2 == 0 ? static_cast<std::uint8_t>(random())
                                          : telling[random() % std::size(telling)];
        }
        if (random() % 4 == 0)
            bytes.resize(kernel::shortest_run + random() % (bytes.size() - kernel::shortest_run + 1));
        const sieve_link link = i % 8 == 0 ? SIEVE_LINK_IP : SIEVE_LINK_ETHERNET;
        const bool segmented = GetParam() != kernel::HookPoint::xdp && i % 16 < 2;
        begin_with(link);
        if (link == SIEVE_LINK_IP && bytes.size() >= 14 + kernel::shortest_run)
            bytes.erase(bytes.begin(), bytes.begin() + 14);
        const Parsed parsed = seen(bytes, segmented ? 100 : 0);
        outcomes[parsed.outcome]++;
        ASSERT_EQ(parsed, parse_by_model(bytes, link, segmented)) << "mutation " << i;
    }
    for (std::uint32_t outcome = 0; outcome < SIEVE_OUTCOMES; outcome++)
        EXPECT_GT(outcomes[outcome], 100U) << "outcome " << outcome << " was hardly met";
}

} // namespace
} // namespace sieve
