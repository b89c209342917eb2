// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which packets pass because they answer what this host began, and which do not: by what has left, by time,
// and by what the packet says.
#include <linux/bpf.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/note_program.hpp"
#include "bpf/packet.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/hooks/flow_memory.hpp"
#include "libsieve/kernel/maps/mapped_filter.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

namespace sieve {
namespace {

using namespace test;
using namespace std::chrono_literals;
using kernel::HookPoint;
using kernel::WantedSet;

const std::string host = "192.0.2.1", peer = "198.51.100.7", router = "203.0.113.9",
                  stranger = "198.51.100.8";
const std::string host6 = "2001:db8::1", peer6 = "2001:db8:7::7", router6 = "2001:db8:9::9";

const Packet out = Ethernet{} / IPv4{.src = host, .dst = peer};
const Packet in = Ethernet{} / IPv4{.src = peer, .dst = host};
const Packet out6 = Ethernet{} / IPv6{.src = host6, .dst = peer6};
const Packet in6 = Ethernet{} / IPv6{.src = peer6, .dst = host6};

// The table drops by default, and asks what is about to be dropped whether it is a reply.
class Replies : public ::testing::TestWithParam<HookPoint> {
  protected:
    void SetUp() override {
        scratch_ = &shared_program(GetParam());
        memory_ = std::make_unique<kernel::FlowMemory>(value_or_fail(kernel::FlowMemory::create(10000)));
        note_.use(*memory_);
        ASSERT_TRUE(memory_->put_into(scratch_->instance()));
        put({});
    }

    void put(std::vector<WantedSet> sets, sieve_action default_action = SIEVE_ACTION_DROP,
             sieve_action replies = SIEVE_ACTION_PASS) {
        kernel::WantedTable table;
        table.default_action = default_action;
        table.sets = std::move(sets);
        table.replies = replies;
        const auto done = scratch_->table().replace(table);
        ASSERT_TRUE(done) << done.error().message;
    }

    // What the host sends.
    void leaves(const Packet& packet) const { note_.see(packet); }

    [[nodiscard]] bool passes(const Packet& packet) const { return passes(packet.bytes()); }
    [[nodiscard]] bool passes(const Bytes& frame) const {
        const std::uint32_t verdict = value_or_fail(scratch_->run(frame));
        EXPECT_EQ(scratch_->trace().decision == SIEVE_REPLY, verdict == SIEVE_VERDICT_PASS);
        return verdict == SIEVE_VERDICT_PASS;
    }

    void wait(std::chrono::seconds time) const { memory_->age(time); }

    // Of an answer that passes, no single bit of these bytes may differ.
    void only_these_bits(const Bytes& answer,
                         const std::vector<std::pair<std::size_t, std::size_t>>& fields) {
        ASSERT_TRUE(passes(answer));
        for (const auto& [first, bytes] : fields)
            for (std::size_t bit = 0; bit < bytes * 8; bit++) {
                Bytes other = answer;
                other[first + bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
                EXPECT_FALSE(passes(other)) << "byte " << first + bit / 8 << ", bit " << bit % 8;
            }
    }

    kernel::Scratch* scratch_ = nullptr;
    std::unique_ptr<kernel::FlowMemory> memory_;
    NoteProgram note_;
};

// Where the fields of a frame without tags and options are.
using Fields = std::vector<std::pair<std::size_t, std::size_t>>;
const Fields tuple4 = {{26, 8}, {34, 4}}, addresses4 = {{26, 8}}, tuple6 = {{22, 32}, {54, 4}},
             addresses6 = {{22, 32}};

TEST_P(Replies, TcpTakesASynToBegin) {
    const Packet answer = in / Tcp{.sport = 443, .dport = 40000, .flags = syn | ack};
    for (const std::uint8_t flags :
         {std::uint8_t{syn | ack}, rst, std::uint8_t{rst | ack}, ack, fin, std::uint8_t{fin | ack}}) {
        leaves(out / Tcp{.sport = 40000, .dport = 443, .flags = flags});
        EXPECT_FALSE(passes(answer)) << unsigned{flags};
    }
    EXPECT_EQ(note_.counts().begun, 0U);
    leaves(out / Tcp{.sport = 40000, .dport = 443, .flags = syn});
    EXPECT_TRUE(passes(answer));
    only_these_bits(answer.bytes(), tuple4);
}

TEST_P(Replies, TcpOfIPv6) {
    leaves(out6 / Tcp{.sport = 40000, .dport = 443, .flags = syn});
    only_these_bits((in6 / Tcp{.sport = 443, .dport = 40000, .flags = syn | ack}).bytes(), tuple6);
}

TEST_P(Replies, TcpLastsByItsState) {
    const Packet answer = in / Tcp{.sport = 443, .dport = 40000};
    const auto sends = [&](std::uint8_t flags) {
        leaves(out / Tcp{.sport = 40000, .dport = 443, .flags = flags});
    };
    sends(syn);
    wait(60s);
    EXPECT_TRUE(passes(answer));
    wait(9s);
    EXPECT_FALSE(passes(answer)) << "half-open for more than a minute";

    sends(syn);
    sends(ack);
    wait(7440s);
    EXPECT_TRUE(passes(answer));
    wait(9s);
    EXPECT_FALSE(passes(answer));
    sends(ack);
    EXPECT_TRUE(passes(answer)) << "the host goes on";

    sends(fin | ack);
    wait(120s);
    EXPECT_TRUE(passes(answer));
    sends(ack);
    wait(120s);
    EXPECT_TRUE(passes(answer)) << "half-closed: the peer still sends, the host acknowledges";
    wait(9s);
    EXPECT_FALSE(passes(answer));

    sends(syn);
    sends(ack);
    sends(rst);
    wait(10s);
    EXPECT_TRUE(passes(answer));
    wait(9s);
    EXPECT_FALSE(passes(answer)) << "a replay after RST";
    sends(rst); // the host's answer to the replay
    EXPECT_FALSE(passes(answer));
}

// However often a peer answers, only the host keeps a flow.
TEST_P(Replies, APeerRenewsNothing) {
    leaves(out / Udp{.sport = 40000, .dport = 53});
    for (int i = 0; i < 7; i++) {
        EXPECT_TRUE(passes(in / Udp{.sport = 53, .dport = 40000}));
        wait(9s);
    }
    wait(9s);
    EXPECT_FALSE(passes(in / Udp{.sport = 53, .dport = 40000}));
}

TEST_P(Replies, UdpLastsLongerAsAStream) {
    const Packet asks = out / Udp{.sport = 40000, .dport = 53};
    const Packet answer = in / Udp{.sport = 53, .dport = 40000};
    EXPECT_FALSE(passes(answer));
    leaves(asks);
    only_these_bits(answer.bytes(), tuple4);
    wait(60s);
    EXPECT_TRUE(passes(answer));
    wait(9s);
    EXPECT_FALSE(passes(answer));

    leaves(asks);
    wait(10s);
    leaves(asks);
    wait(180s);
    EXPECT_TRUE(passes(answer));
    wait(9s);
    EXPECT_FALSE(passes(answer));
    leaves(asks);
    wait(69s);
    EXPECT_FALSE(passes(answer)) << "an expired stream begins anew";
}

TEST_P(Replies, ServersOfUdpBeginNothing) {
    leaves(out / Udp{.sport = 53, .dport = 40000});
    EXPECT_FALSE(passes(in / Udp{.sport = 40000, .dport = 53}));
    leaves(out / Udp{.sport = 67, .dport = 68});
    EXPECT_FALSE(passes(in / Udp{.sport = 68, .dport = 67}));
    EXPECT_EQ(note_.counts().begun, 0U);
    leaves(out / Udp{.sport = 123, .dport = 123});
    EXPECT_TRUE(passes(in / Udp{.sport = 123, .dport = 123})) << "NTP";
}

// A stranger chooses his port, so that a server's answers to him may look like questions. They do not keep
// the flow.
TEST_P(Replies, FlowsBetweenEqualPortsAreNotRenewed) {
    const Packet asks = out / Udp{.sport = 5060, .dport = 5060};
    const Packet answer = in / Udp{.sport = 5060, .dport = 5060};
    leaves(asks);
    wait(50s);
    EXPECT_TRUE(passes(answer));
    leaves(asks);
    wait(19s);
    EXPECT_FALSE(passes(answer));
    leaves(asks);
    EXPECT_TRUE(passes(answer)) << "it begins anew";
}

TEST_P(Replies, DhcpAnswersFromAnyServer) {
    const Packet offer =
        Ethernet{} / IPv4{.src = router, .dst = "192.0.2.77"} / Udp{.sport = 67, .dport = 68};
    const Packet offer6 =
        Ethernet{} / IPv6{.src = "fe80::9", .dst = "fe80::1"} / Udp{.sport = 547, .dport = 546};
    EXPECT_FALSE(passes(offer));
    EXPECT_FALSE(passes(offer6));
    leaves(Ethernet{} / IPv4{.src = "0.0.0.0", .dst = "255.255.255.255"} / Udp{.sport = 68, .dport = 67});
    EXPECT_TRUE(passes(offer));
    EXPECT_FALSE(passes(offer6));
    only_these_bits(offer.bytes(), {{34, 4}});
    leaves(Ethernet{} / IPv6{.src = "fe80::1", .dst = "ff02::1:2"} / Udp{.sport = 546, .dport = 547});
    only_these_bits(offer6.bytes(), {{54, 4}});
    wait(69s);
    EXPECT_FALSE(passes(offer));
    EXPECT_FALSE(passes(offer6));
}

TEST_P(Replies, OnlyWhoIsPingedAnswers) {
    const Packet answer = in / Icmp{.type = 0, .id = 77};
    leaves(out / Icmp{.type = 0, .id = 77});
    EXPECT_FALSE(passes(answer)) << "the host answered somebody's ping";
    leaves(out / Icmp{.type = 8, .id = 77});
    only_these_bits(answer.bytes(), {{26, 8}, {34, 1}, {38, 2}});
    EXPECT_FALSE(passes(in / Icmp{.type = 8, .id = 77})) << "a ping";
    EXPECT_FALSE(passes(in / Icmp{.type = 13, .id = 77})) << "a timestamp request";
    wait(60s);
    EXPECT_TRUE(passes(answer));
    wait(9s);
    EXPECT_FALSE(passes(answer));

    const Packet answer6 = in6 / Icmp6{.type = 129, .id = 77};
    leaves(out6 / Icmp6{.type = 129, .id = 77});
    EXPECT_FALSE(passes(answer6));
    leaves(out6 / Icmp6{.type = 128, .id = 77});
    only_these_bits(answer6.bytes(), {{22, 32}, {54, 1}, {58, 2}});
}

// Bytes of an error from a router, about a packet.
Bytes error4(std::uint8_t type, const Packet& quoted, const std::string& from = router,
             const std::string& to = host) {
    const Bytes tail = quoted.bytes();
    Bytes frame =
        (Ethernet{} / IPv4{.src = from, .dst = to} / Icmp{.type = type} / Payload{.bytes = tail.size()})
            .bytes();
    std::copy(tail.begin(), tail.end(), frame.end() - static_cast<std::ptrdiff_t>(tail.size()));
    return frame;
}
Bytes error6(std::uint8_t type, const Packet& quoted, const std::string& to = host6) {
    const Bytes tail = quoted.bytes();
    Bytes frame =
        (Ethernet{} / IPv6{.src = router6, .dst = to} / Icmp6{.type = type} / Payload{.bytes = tail.size()})
            .bytes();
    std::copy(tail.begin(), tail.end(), frame.end() - static_cast<std::ptrdiff_t>(tail.size()));
    return frame;
}
constexpr std::size_t quote4 = 14 + 20 + 8, quote6 = 14 + 40 + 8;

TEST_P(Replies, ErrorsPassByThePacketThatTheyQuote) {
    const Packet sent = Packet(IPv4{.src = host, .dst = peer}) / Udp{.sport = 40000, .dport = 33434};
    const Packet sent6 =
        Packet(IPv6{.src = host6, .dst = peer6}) / Tcp{.sport = 40000, .dport = 443, .flags = syn};
    for (int type = 0; type < 256; type++) {
        EXPECT_FALSE(passes(error4(static_cast<std::uint8_t>(type), sent))) << "not sent, type " << type;
        // Types 133 to 137 are neighbour discovery only with a hop limit of 255.
        EXPECT_FALSE(passes(error6(static_cast<std::uint8_t>(type), sent6))) << "not sent, type " << type;
    }
    leaves(Packet(Ethernet{}) / IPv4{.src = host, .dst = peer} / Udp{.sport = 40000, .dport = 33434});
    leaves(out6 / Tcp{.sport = 40000, .dport = 443, .flags = syn});
    for (int type = 0; type < 256; type++) {
        EXPECT_EQ(passes(error4(static_cast<std::uint8_t>(type), sent)),
                  type == 3 || type == 11 || type == 12)
            << type;
        EXPECT_EQ(passes(error6(static_cast<std::uint8_t>(type), sent6)), type >= 1 && type <= 4) << type;
    }
    // Addresses, protocol and ports of the quoted packet, and the error's own target.
    only_these_bits(error4(3, sent), {{30, 4}, {quote4 + 9, 1}, {quote4 + 12, 8}, {quote4 + 20, 4}});
    only_these_bits(error6(2, sent6), {{38, 16}, {quote6 + 6, 1}, {quote6 + 8, 32}, {quote6 + 40, 4}});
}

TEST_P(Replies, ErrorsQuotePingsFragmentsAndOthers) {
    leaves(out / Icmp{.type = 8, .id = 5});
    const Packet from(IPv4{.src = host, .dst = peer});
    EXPECT_TRUE(passes(error4(11, from / Icmp{.type = 8, .id = 5})));
    EXPECT_FALSE(passes(error4(11, from / Icmp{.type = 8, .id = 6})));
    EXPECT_FALSE(passes(error4(11, from / Icmp{.type = 0, .id = 5}))) << "about an answer of the host";
    leaves(out / Udp{.sport = 40000, .dport = 2049});
    EXPECT_TRUE(passes(
        error4(11, Packet(IPv4{.src = host, .dst = peer, .protocol = 17, .offset = 100}) / Payload{8})));
    EXPECT_FALSE(passes(
        error4(11, Packet(IPv4{.src = host, .dst = router, .protocol = 17, .offset = 100}) / Payload{8})));
    leaves(out6 / Udp{.sport = 40000, .dport = 2049});
    const Packet from6(IPv6{.src = host6, .dst = peer6});
    EXPECT_TRUE(
        passes(error6(2, from6 / Fragment6{.offset = 0, .more = true} / Udp{.sport = 40000, .dport = 2049})));
    EXPECT_FALSE(
        passes(error6(2, from6 / Fragment6{.offset = 0, .more = true} / Udp{.sport = 40000, .dport = 2050})));
    EXPECT_TRUE(passes(error6(3, from6 / Fragment6{.offset = 100} / Udp{})));
    leaves(out / Payload{.bytes = 8, .protocol = 50});
    EXPECT_TRUE(passes(error4(3, from / Payload{.bytes = 8, .protocol = 50})));
    EXPECT_FALSE(passes(error4(3, from / Payload{.bytes = 8, .protocol = 51})));
    EXPECT_TRUE(passes(error4(3, Packet(IPv4{.src = host, .dst = peer, .options = no_operations(8)}) /
                                     Udp{.sport = 40000, .dport = 2049})));
}

TEST_P(Replies, CutErrorsAreNone) {
    leaves(out / Udp{.sport = 40000, .dport = 33434});
    const Bytes whole =
        error4(3, Packet(IPv4{.src = host, .dst = peer}) / Udp{.sport = 40000, .dport = 33434});
    ASSERT_TRUE(passes(whole));
    for (std::size_t bytes = 34; bytes < whole.size(); bytes++)
        EXPECT_FALSE(passes(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes))))
            << bytes;
}

// The peer began; a set lets it in. No flow is noted, but path MTU discovery works: the sets are asked again.
TEST_P(Replies, ErrorsAboutWhatASetLetsIn) {
    const auto friends = map_of(image_of({peer + " 22", peer6 + " 22"}, "src,dport"));
    put({WantedSet{.name = "friends", .action = SIEVE_ACTION_PASS, .map_fd = friends.fd()}});
    const Packet answered = Packet(IPv4{.src = host, .dst = peer}) / Tcp{.sport = 22, .dport = 50000};
    const Packet answered6 = Packet(IPv6{.src = host6, .dst = peer6}) / Tcp{.sport = 22, .dport = 50000};
    only_these_bits(error4(3, answered), {{30, 4}, {quote4 + 12, 8}, {quote4 + 20, 2}});
    only_these_bits(error6(2, answered6), {{38, 16}, {quote6 + 8, 32}, {quote6 + 40, 2}});
    EXPECT_FALSE(passes(Ethernet{} / IPv4{.src = router, .dst = host} / Icmp{.type = 8}));
    const auto stats = value_or_fail(kernel::read_stats(scratch_->instance()));
    EXPECT_EQ(stats.hit[0].packets, 0U) << "asking about a quoted packet counts no hit";

    put({WantedSet{.name = "friends", .action = SIEVE_ACTION_DROP, .map_fd = friends.fd()}});
    EXPECT_FALSE(passes(error4(3, answered)));
}

// Whoever forges errors about packets that were never sent takes nothing from the members of a set.
TEST_P(Replies, AnErrorTakesNothingFromALimit) {
    const auto blocked = map_of(image_of({router})), odd = map_of(image_of({peer}));
    constexpr std::uint32_t burst = 5;
    put({WantedSet{.name = "blocked", .action = SIEVE_ACTION_DROP, .map_fd = blocked.fd()},
         WantedSet{
             .name = "odd", .action = SIEVE_ACTION_LIMIT, .map_fd = odd.fd(), .target = 1, .burst = burst}},
        SIEVE_ACTION_PASS);
    const Packet quoted = Packet(IPv4{.src = host, .dst = peer}) / Udp{.sport = 40000, .dport = 53};
    for (std::uint32_t i = 0; i < 4 * burst; i++) EXPECT_TRUE(passes(error4(3, quoted)));
    const Bytes member = (in / Udp{.sport = 53, .dport = 40000}).bytes();
    for (std::uint32_t i = 0; i < burst; i++)
        EXPECT_EQ(value_or_fail(scratch_->run(member)), std::uint32_t{SIEVE_VERDICT_PASS}) << i;
}

TEST_P(Replies, AnErrorMarksNoEntry) {
    KeySet keys(SIEVE_FIELD_SRC);
    for (const std::string& one : {peer, peer6}) keys.add(value_or_fail(parse_key(one, SIEVE_FIELD_SRC)));
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_EXACT;
    options.spare.hits = true;
    const auto friends = map_of(value_or_fail(build_set(std::move(keys), options, {})).image);
    put({WantedSet{.name = "friends", .action = SIEVE_ACTION_PASS, .map_fd = friends.fd()}});
    scratch_->instance().control().trial = 0; // packets, and no controller, ask
    auto filter = value_or_fail(kernel::MappedFilter::open(friends.id()));
    const auto marked = [&] {
        int count = 0;
        EXPECT_TRUE(kind_of(filter.lookup())
                        .exact()
                        ->for_each_entry(filter.lookup(), filter.filter(), 0,
                                         [&](const sieve_key&, std::uint64_t, bool hit) { count += hit; }));
        return count;
    };
    const Tcp answer{.sport = 22, .dport = 50000};
    EXPECT_TRUE(passes(error4(3, Packet(IPv4{.src = host, .dst = peer}) / answer)));
    EXPECT_TRUE(passes(error6(2, Packet(IPv6{.src = host6, .dst = peer6}) / answer)));
    EXPECT_EQ(marked(), 0);
    for (const Packet& from : {in, in6})
        EXPECT_EQ(value_or_fail(scratch_->run((from / Tcp{.sport = 50000, .dport = 22}).bytes())),
                  std::uint32_t{SIEVE_VERDICT_PASS});
    EXPECT_EQ(marked(), 2);
}

// Where everything passes that no set drops, an error from a listed source needs a flow.
TEST_P(Replies, TheDefaultVouchesForNoError) {
    const auto listed = map_of(image_of({router}));
    put({WantedSet{.name = "listed", .action = SIEVE_ACTION_DROP, .map_fd = listed.fd()}}, SIEVE_ACTION_PASS);
    const Packet sent = Packet(IPv4{.src = host, .dst = peer}) / Udp{.sport = 40000, .dport = 33434};
    EXPECT_FALSE(passes(error4(3, sent)));
    leaves(out / Udp{.sport = 40000, .dport = 33434});
    EXPECT_TRUE(passes(error4(3, sent)));
}

TEST_P(Replies, LaterFragmentsInAnyOrder) {
    const Bytes later =
        (Ethernet{} / IPv4{.src = peer, .dst = host, .protocol = 17, .offset = 185} / Payload{100}).bytes();
    const Bytes later6 = (in6 / Fragment6{.offset = 154, .next_header = 17} / Payload{100}).bytes();
    EXPECT_FALSE(passes(later));
    EXPECT_FALSE(passes(later6));
    leaves(out / Udp{.sport = 40000, .dport = 53});
    leaves(out6 / Udp{.sport = 40000, .dport = 53});
    only_these_bits(later, {{23, 1}, {26, 8}}); // before the first
    only_these_bits(later6, {{22, 32}, {54, 1}});
    EXPECT_TRUE(
        passes(Ethernet{} / IPv4{.src = peer, .dst = host, .more = true} / Udp{.sport = 53, .dport = 40000}));
    EXPECT_TRUE(passes(in6 / Fragment6{.more = true} / Udp{.sport = 53, .dport = 40000}));
    EXPECT_FALSE(
        passes(Ethernet{} / IPv4{.src = peer, .dst = host, .more = true} / Udp{.sport = 54, .dport = 40000}));
    wait(69s);
    EXPECT_FALSE(passes(later));
    EXPECT_FALSE(passes(later6));
}

// The peer of a flow may send later fragments at any offset, over its first one as well: their addresses and
// protocol are all that is known. The stack discards a datagram whose fragments overlap. A first fragment
// needs a flow of its ports, so that none brings other ports.
TEST_P(Replies, OverlappingFragmentsOfAFlowsPeer) {
    const auto first = [](std::uint16_t sport) {
        return Ethernet{} / IPv4{.src = peer, .dst = host, .more = true} /
               Udp{.sport = sport, .dport = 40000} / Payload{64};
    };
    const auto later = [](unsigned offset) {
        return Ethernet{} / IPv4{.src = peer, .dst = host, .protocol = 17, .offset = offset} / Payload{64};
    };
    const auto first6 = [](std::uint16_t sport) {
        return in6 / Fragment6{.more = true} / Udp{.sport = sport, .dport = 40000} / Payload{64};
    };
    const auto later6 = [](unsigned offset) {
        return in6 / Fragment6{.offset = offset, .next_header = 17} / Payload{64};
    };
    for (const bool noted : {false, true}) {
        if (noted) {
            leaves(out / Udp{.sport = 40000, .dport = 53});
            leaves(out6 / Udp{.sport = 40000, .dport = 53});
        }
        EXPECT_EQ(passes(first(53)), noted);
        EXPECT_EQ(passes(first6(53)), noted);
        for (const unsigned offset : {1U, 2U, 8U, 9U, 8191U}) { // the first one ends with unit 9
            EXPECT_EQ(passes(later(offset)), noted) << offset;
            EXPECT_EQ(passes(later6(offset)), noted) << offset;
        }
        for (const std::uint16_t sport : {52, 54}) {
            EXPECT_FALSE(passes(first(sport))) << "a first one over the first one, from another port";
            EXPECT_FALSE(passes(first6(sport)));
        }
    }
}

TEST_P(Replies, LaterFragmentsOfTcpOnceItIsEstablished) {
    const Packet later =
        Ethernet{} / IPv4{.src = peer, .dst = host, .protocol = 6, .offset = 185} / Payload{100};
    leaves(out / Tcp{.sport = 40000, .dport = 443, .flags = syn});
    EXPECT_FALSE(passes(later));
    leaves(out / Tcp{.sport = 40000, .dport = 443});
    EXPECT_TRUE(passes(later));
}

TEST_P(Replies, OthersByAddressesAndProtocol) {
    leaves(out / Payload{.bytes = 40, .protocol = 50});
    leaves(out / Sctp{.sport = 40000, .dport = 3868});
    leaves(out / Dccp{.sport = 40000, .dport = 5004});
    only_these_bits((in / Payload{.bytes = 40, .protocol = 50}).bytes(), {{26, 8}});
    EXPECT_FALSE(passes(in / Payload{.bytes = 40, .protocol = 47}));
    EXPECT_TRUE(passes(in / Sctp{.sport = 3869, .dport = 40001})) << "an association may have many addresses";
    only_these_bits((in / Dccp{.sport = 5004, .dport = 40000}).bytes(), tuple4);
    wait(600s);
    EXPECT_TRUE(passes(in / Payload{.bytes = 40, .protocol = 50}));
    wait(9s);
    EXPECT_FALSE(passes(in / Payload{.bytes = 40, .protocol = 50}));
}

TEST_P(Replies, BehindTagsOptionsAndExtensionHeaders) {
    leaves(Ethernet{} / Vlan{} / Vlan{} / IPv4{.src = host, .dst = peer, .options = no_operations(8)} /
           Tcp{.sport = 40000, .dport = 443, .flags = syn});
    EXPECT_TRUE(passes(in / Tcp{.sport = 443, .dport = 40000, .flags = syn | ack}));
    leaves(Ethernet{} / IPv6{.src = host6, .dst = peer6} / Extension{.units = 3} /
           Tcp{.sport = 40001, .dport = 443, .flags = syn});
    EXPECT_TRUE(passes(in6 / Extension{} / Tcp{.sport = 443, .dport = 40001, .flags = syn | ack}));
    leaves(out / Icmp{.id = 9});
    EXPECT_TRUE(passes(Ethernet{} / Vlan{} / Vlan{} / Vlan{} / Vlan{} / Vlan{} /
                       IPv4{.src = peer, .dst = host, .options = no_operations(40)} /
                       Icmp{.type = 0, .id = 9}));
    EXPECT_FALSE(passes(Ethernet{} / Vlan{} / Vlan{} / Vlan{} / Vlan{} / Vlan{} /
                        IPv4{.src = peer, .dst = host, .options = no_operations(40)} /
                        Icmp{.type = 0, .id = 8}));
}

TEST_P(Replies, UnreadablePacketsAreNone) {
    leaves(out / Udp{.sport = 40000, .dport = 53});
    EXPECT_FALSE(
        passes(Ethernet{} / IPv4{.src = peer, .dst = host, .options = source_route(131, {"10.0.0.1"})} /
               Udp{.sport = 53, .dport = 40000}));
    EXPECT_FALSE(
        passes(Ethernet{} / IPv4{.src = peer, .dst = host, .total = 22} / Udp{.sport = 53, .dport = 40000}));
}

TEST_P(Replies, SetsThatDropAndSetsThatKeepRepliesOut) {
    const auto listed = map_of(image_of({peer}));
    leaves(out / Udp{.sport = 40000, .dport = 53});
    const Packet answer = in / Udp{.sport = 53, .dport = 40000};
    WantedSet set{.name = "listed", .action = SIEVE_ACTION_DROP, .map_fd = listed.fd()};
    put({set}, SIEVE_ACTION_PASS);
    EXPECT_TRUE(passes(answer));
    EXPECT_FALSE(passes(in / Udp{.sport = 53, .dport = 40001}));
    const auto stats = value_or_fail(kernel::read_stats(scratch_->instance()));
    EXPECT_EQ(stats.hit[0].packets, 2U) << "a match is counted as one";
    EXPECT_EQ(stats.replied.packets, 1U);
    EXPECT_EQ(stats.replied.bytes, answer.bytes().size());
    EXPECT_EQ(stats.dropped.packets, 1U);
    EXPECT_EQ(stats.by_default(), 0U);

    set.keeps_replies_out = true;
    put({set}, SIEVE_ACTION_PASS);
    EXPECT_TRUE(scratch_->table().read().sets[0].keeps_replies_out);
    EXPECT_FALSE(passes(answer));
    EXPECT_EQ(scratch_->trace().decision, scratch_->table().read().sets[0].slot);
}

TEST_P(Replies, AreNotWhatTheDefaultDecided) {
    leaves(out / Udp{.sport = 40000, .dport = 53});
    EXPECT_TRUE(passes(in / Udp{.sport = 53, .dport = 40000}));
    EXPECT_FALSE(passes(in / Udp{.sport = 54, .dport = 40000}));
    const auto stats = value_or_fail(kernel::read_stats(scratch_->instance()));
    EXPECT_EQ(stats.by_default(), 1U);
    EXPECT_EQ(stats.passed.packets, 1U);
    const auto later = kernel::since(stats, kernel::totals_of(stats));
    EXPECT_EQ(later.replied.packets, 0U);
}

TEST_P(Replies, OnlyIfTheTableSaysSo) {
    leaves(out / Udp{.sport = 40000, .dport = 53});
    const Packet answer = in / Udp{.sport = 53, .dport = 40000};
    EXPECT_EQ(scratch_->table().read().replies, SIEVE_ACTION_PASS);
    EXPECT_TRUE(passes(answer));
    put({}, SIEVE_ACTION_DROP, SIEVE_ACTION_DROP);
    EXPECT_FALSE(passes(answer));
    put({});
    EXPECT_TRUE(passes(answer));
    ASSERT_TRUE(kernel::FlowMemory::take_out_of(scratch_->instance()));
    EXPECT_FALSE(passes(answer)) << "without a memory there is no reply";
}

TEST_P(Replies, LearningTakesWhatExistsAlready) {
    const Packet answer = in / Tcp{.sport = 443, .dport = 40000};
    memory_->learn_for(30s);
    EXPECT_NEAR(static_cast<double>(memory_->facts().learning.count()), 30, 5);
    leaves(out / Tcp{.sport = 40001, .dport = 443, .flags = syn | ack});
    leaves(out / Tcp{.sport = 40001, .dport = 443, .flags = rst});
    EXPECT_FALSE(passes(in / Tcp{.sport = 443, .dport = 40001}));
    leaves(out / Tcp{.sport = 40000, .dport = 443});
    EXPECT_TRUE(passes(answer));
    wait(7440s);
    EXPECT_TRUE(passes(answer));
    leaves(out / Tcp{.sport = 40002, .dport = 443});
    EXPECT_FALSE(passes(in / Tcp{.sport = 443, .dport = 40002})) << "the time is over";
    EXPECT_EQ(memory_->facts().learning, 0s);
}

TEST_P(Replies, PacketsThatAwaitSegmentationAreSeen) {
    note_.see((out / Tcp{.sport = 40000, .dport = 443, .flags = syn} / Payload{2000}).bytes(), 1400);
    EXPECT_TRUE(passes(in / Tcp{.sport = 443, .dport = 40000}));
}

// A packet that enters writes nothing, whatever it is.
TEST_P(Replies, AStrangerWritesNothing) {
    const kernel::FlowMemoryFacts before = memory_->facts();
    for (const std::uint8_t flags : {syn, ack, rst, fin, std::uint8_t{syn | ack}})
        EXPECT_FALSE(passes(in / Tcp{.sport = 443, .dport = 40000, .flags = flags}));
    EXPECT_FALSE(passes(in / Udp{.sport = 40000, .dport = 53}));
    EXPECT_FALSE(passes(in / Icmp{.type = 8}));
    EXPECT_EQ(memory_->facts().used, before.used);
    leaves(out / Udp{.sport = 40000, .dport = 53});
    const std::uint64_t used = memory_->facts().used;
    EXPECT_EQ(used, 2U) << "the flow, and its pair of addresses";
    EXPECT_TRUE(passes(in / Udp{.sport = 53, .dport = 40000}));
    EXPECT_EQ(memory_->facts().used, used);
}

// What an attacker can send, by kind, beside flows of every kind that exist: the table says how many packets
// got through. Each kind is many packets of flows close to the ones that exist.
TEST_P(Replies, NothingGetsAroundThem) {
    struct Kind {
        const char* name;
        std::uint64_t sent = 0, through = 0;
    };
    std::vector<Kind> kinds;
    const auto attack = [&](const Bytes& frame) {
        kinds.back().sent++;
        if (scratch_->can_run(frame) && value_or_fail(scratch_->run(frame)) == SIEVE_VERDICT_PASS)
            kinds.back().through++;
    };
    const auto bits_off = [&](const Bytes& frame, const Fields& fields) {
        for (const auto& [first, bytes] : fields)
            for (std::size_t bit = 0; bit < bytes * 8; bit++) {
                Bytes other = frame;
                other[first + bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
                attack(other);
            }
    };
    const auto tcp = [](std::uint16_t port, std::uint8_t flags) {
        return out / Tcp{.sport = port, .dport = 443, .flags = flags};
    };
    const auto answer = [](std::uint16_t port, std::uint8_t flags) {
        return (in / Tcp{.sport = 443, .dport = port, .flags = flags}).bytes();
    };
    constexpr std::array<std::uint8_t, 8> all_flags = {syn,       syn | ack, ack,       fin,
                                                       fin | ack, rst,       rst | ack, 0};

    kinds.push_back({"flows that never were"});
    for (int i = 0; i < 2000; i++) {
        const auto port = static_cast<std::uint16_t>(32768 + i);
        attack(answer(port, all_flags[static_cast<std::size_t>(i) % all_flags.size()]));
        attack((in / Udp{.sport = 53, .dport = port}).bytes());
        attack((in6 / Udp{.sport = 53, .dport = port}).bytes());
        attack((in / Icmp{.type = 0, .id = port}).bytes());
    }
    for (std::uint16_t port = 40000; port < 40040; port++) {
        leaves(tcp(port, syn));
        leaves(tcp(port, ack));
        leaves(out / Udp{.sport = port, .dport = 53});
        leaves(out6 / Udp{.sport = port, .dport = 53});
        leaves(out / Icmp{.type = 8, .id = port});
    }
    kinds.push_back({"one bit off in addresses or ports"});
    bits_off(answer(40000, syn | ack), {{26, 8}, {34, 2}}); // the local port's bits lead to flows that exist
    bits_off((in / Udp{.sport = 53, .dport = 40000}).bytes(), {{26, 8}, {34, 2}});
    bits_off((in6 / Udp{.sport = 53, .dport = 40000}).bytes(), {{22, 32}, {54, 2}});
    kinds.push_back({"pings, timestamps, redirects"});
    for (int type = 0; type < 256; type++)
        if (type != 0 && type != 3 && type != 11 && type != 12)
            attack((in / Icmp{.type = static_cast<std::uint8_t>(type), .id = 40000}).bytes());
    kinds.push_back({"errors that quote what was not sent"});
    const Packet quoted = Packet(IPv4{.src = host, .dst = peer}) / Tcp{.sport = 40000, .dport = 443};
    ASSERT_TRUE(passes(error4(3, quoted)));
    bits_off(error4(3, quoted), {{30, 4}, {quote4 + 12, 8}, {quote4 + 22, 2}});
    for (std::uint16_t port = 41000; port < 42000; port++) {
        attack(error4(3, Packet(IPv4{.src = host, .dst = peer}) / Udp{.sport = port, .dport = 53}));
        attack(error6(2, Packet(IPv6{.src = host6, .dst = peer6}) / Tcp{.sport = port, .dport = 443}));
        attack(error4(11, Packet(IPv4{.src = host, .dst = peer}) / Icmp{.type = 0, .id = port}));
        attack(error4(3, Packet(IPv4{.src = peer, .dst = host}) / Udp{.sport = 53, .dport = port}, router,
                      peer));
    }
    kinds.push_back({"fragments of others, overlapping too"});
    for (unsigned offset = 1; offset < 200; offset++) {
        for (const std::uint8_t proto : {6, 17})
            attack((Ethernet{} / IPv4{.src = stranger, .dst = host, .protocol = proto, .offset = offset} /
                    Payload{64})
                       .bytes());
        attack((Ethernet{} / IPv4{.src = peer, .dst = host, .protocol = 132, .offset = offset} / Payload{64})
                   .bytes());
    }
    for (std::uint16_t port = 41000; port < 41200; port++) { // whose first one belongs to no flow
        attack((Ethernet{} / IPv4{.src = peer, .dst = host, .more = true} / Udp{.sport = 53, .dport = port})
                   .bytes());
        attack((in6 / Fragment6{.more = true} / Udp{.sport = 53, .dport = port}).bytes());
    }
    kinds.push_back({"replays after RST"});
    for (std::uint16_t port = 40000; port < 40040; port++) leaves(tcp(port, rst));
    wait(19s);
    for (std::uint16_t port = 40000; port < 40040; port++)
        for (const std::uint8_t flags : all_flags) attack(answer(port, flags));
    kinds.push_back({"replays after FIN"});
    for (std::uint16_t port = 42000; port < 42040; port++)
        for (const std::uint8_t flags : {syn, ack, std::uint8_t{fin | ack}}) leaves(tcp(port, flags));
    wait(129s);
    for (std::uint16_t port = 42000; port < 42040; port++)
        for (const std::uint8_t flags : all_flags) attack(answer(port, flags));
    kinds.push_back({"old flows of UDP, and pings"});
    wait(69s);
    for (std::uint16_t port = 40000; port < 40040; port++) {
        attack((in / Udp{.sport = 53, .dport = port}).bytes());
        attack((in6 / Udp{.sport = 53, .dport = port}).bytes());
        attack((in / Icmp{.type = 0, .id = port}).bytes());
    }
    kinds.push_back({"floods from outside, and their echoes"});
    const std::uint64_t used = memory_->facts().used;
    for (int i = 0; i < 20000; i++) {
        const auto port = static_cast<std::uint16_t>(1024 + i);
        attack(answer(port, syn));
        // What the host makes of it must not begin a flow.
        leaves(out / Tcp{.sport = port,
                         .dport = 443,
                         .flags = static_cast<std::uint8_t>(i % 2 == 0 ? rst | ack : syn | ack)});
        attack(answer(port, ack));
    }
    EXPECT_LE(memory_->facts().used, used);
    kinds.push_back({"floods from inside, beside what they begin"});
    for (std::uint16_t port = 43000; port < 43040; port++)
        for (const std::uint8_t flags : {syn, ack}) leaves(tcp(port, flags));
    const std::uint64_t evicted = note_.counts().evicted;
    for (std::uint16_t port = 1024; port < 61024; port++) // twice as many as there is room for
        leaves(out / Tcp{.sport = port, .dport = 8443, .flags = syn});
    EXPECT_GT(note_.counts().evicted, evicted) << "the memory is full";
    for (std::uint16_t port = 43000; port < 43040; port++)
        EXPECT_TRUE(passes(answer(port, ack))) << "established, and not evicted";
    for (std::uint16_t port = 1024; port < 3024; port++) {
        attack((in / Tcp{.sport = 8442, .dport = port, .flags = ack}).bytes());
        attack((in / Tcp{.sport = 443, .dport = port, .flags = ack}).bytes());
        attack((in / Udp{.sport = 8443, .dport = port}).bytes());
    }
    for (const Kind& kind : kinds) {
        fmt::print("{:<42} {:>7} sent {:>3} through\n", kind.name, kind.sent, kind.through);
        EXPECT_EQ(kind.through, 0U) << kind.name;
        EXPECT_GT(kind.sent, 100U) << kind.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Hooks, Replies,
                         ::testing::Values(HookPoint::xdp, HookPoint::ingress, HookPoint::egress),
                         [](const auto& info) { return std::string(kernel::hook_point_name(info.param)); });

} // namespace
} // namespace sieve
