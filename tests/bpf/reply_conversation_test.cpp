// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Random conversations of hosts behind the filter with peers and strangers, in both families, against the
// model: every packet that the model calls an answer arrives, and no other does.
#include <linux/bpf.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/mirror.hpp"
#include "bpf/note_program.hpp"
#include "bpf/packet.hpp"
#include "libsieve/kernel/flow_memory.hpp"
#include "libsieve/kernel/scratch.hpp"
#include "model/reply_model.hpp"

namespace sieve {
namespace {

using namespace test;
using Answer = ReplyModel::Answer;

// Few addresses, ports and identifiers, so that flows meet again, and strangers come close to them.
class Talk {
  public:
    explicit Talk(std::uint64_t seed) : random_(seed) {}

    std::size_t below(std::size_t most) { return random_() % most; }
    bool one_in(std::size_t n) { return below(n) == 0; }

    // A frame from one side to the other. What arrives often answers what has left lately, or nearly so: with
    // one bit off.
    Bytes leaves() {
        Bytes sent = frame(true);
        lately_[below(lately_.size())] = sent;
        return sent;
    }
    Bytes arrives() {
        const Bytes& sent = lately_[below(lately_.size())];
        if (sent.empty() || one_in(2)) return frame(false);
        Bytes answer = mirror(sent);
        if (one_in(2)) answer[14 + below(answer.size() - 14)] ^= static_cast<std::uint8_t>(1U << below(8));
        return answer;
    }

  private:
    struct Ends {
        bool v6 = false;
        std::size_t own = 0, peer = 0;
    };
    static std::string own(const Ends& ends) {
        return ends.v6 ? fmt::format("2001:db8::{:x}", ends.own + 1)
                       : fmt::format("192.0.2.{}", ends.own + 1);
    }
    static std::string peer(const Ends& ends) {
        return ends.v6 ? fmt::format("2001:db8:1::{:x}", ends.peer + 1)
                       : fmt::format("198.51.100.{}", ends.peer + 1);
    }
    static Packet ip(const Ends& ends, bool out, Packet before, std::optional<std::uint8_t> proto = {},
                     unsigned offset = 0, bool more = false) {
        const std::string src = out ? own(ends) : peer(ends), dst = out ? peer(ends) : own(ends);
        if (!ends.v6)
            return before / IPv4{.src = src, .dst = dst, .protocol = proto, .offset = offset, .more = more};
        before = before / IPv6{.src = src, .dst = dst};
        if (offset == 0 && !more) return before;
        return before / Fragment6{.offset = offset, .more = more, .next_header = proto};
    }
    // Without a layer before the IP header: of a quoted packet.
    static Packet bare(const Ends& ends, bool out) {
        const std::string src = out ? own(ends) : peer(ends), dst = out ? peer(ends) : own(ends);
        return ends.v6 ? Packet(IPv6{.src = src, .dst = dst}) : Packet(IPv4{.src = src, .dst = dst});
    }

    std::uint16_t own_port() {
        static constexpr std::array<std::uint16_t, 8> ports{40000, 40001, 50000, 123, 53, 68, 546, 1024};
        return ports[below(ports.size())];
    }
    std::uint16_t peer_port() {
        static constexpr std::array<std::uint16_t, 8> ports{443, 53, 123, 40000, 67, 547, 2049, 1024};
        return ports[below(ports.size())];
    }
    std::uint8_t flags() {
        static constexpr std::array<std::uint8_t, 8> all{syn, syn,       syn | ack, ack,
                                                         ack, fin | ack, rst,       rst | ack};
        return all[below(all.size())];
    }

    // The upper layer of a packet of a flow, in the host's direction if `out`.
    Layer upper(const Ends& ends, bool out) {
        const std::uint16_t sport = out ? own_port() : peer_port(), dport = out ? peer_port() : own_port();
        const auto id = static_cast<std::uint16_t>(below(3));
        switch (below(10)) {
        case 0:
        case 1:
        case 2:
            return Tcp{.sport = sport, .dport = dport, .flags = flags()};
        case 3:
        case 4:
        case 5:
            return Udp{.sport = sport, .dport = dport};
        case 6:
            if (ends.v6) return Icmp6{.type = static_cast<std::uint8_t>(128 + below(2)), .id = id};
            return Icmp{.type = static_cast<std::uint8_t>(below(2) * 8), .id = id};
        case 7:
            return Sctp{.sport = sport, .dport = dport};
        case 8:
            if (one_in(2)) return UdpLite{.sport = sport, .dport = dport};
            return Dccp{.sport = sport, .dport = dport};
        default:
            return Payload{.bytes = 8, .protocol = static_cast<std::uint8_t>(one_in(2) ? 50 : 47)};
        }
    }

    Bytes frame(bool out) {
        const Ends ends{one_in(2), below(2), below(4)};
        Packet before{Ethernet{}};
        if (one_in(8)) before = before / Vlan{};
        if (!out && one_in(4)) return error(ends, before);
        if (one_in(8)) {
            static constexpr std::array<std::uint8_t, 6> protos{6, 17, 1, 58, 132, 50};
            return (ip(ends, out, before, protos[below(protos.size())], 100) / Payload{16}).bytes();
        }
        Packet packet = ip(ends, out, before, {}, 0, one_in(8));
        if (ends.v6 && one_in(8)) packet = packet / Extension{.units = static_cast<unsigned>(below(4))};
        packet = packet / upper(ends, out);
        if (one_in(4)) packet = packet / Payload{below(40)};
        return packet.bytes();
    }

    // An error of a router or of the peer itself, about a packet that the host may have sent.
    Bytes error(const Ends& ends, const Packet& before) {
        Packet quoted = bare(ends, !one_in(8));
        const bool later = one_in(16);
        if (ends.v6 && (later || one_in(8)))
            quoted = quoted / Fragment6{.offset = later ? 100U : 0U, .more = true};
        quoted = quoted / upper(ends, true);
        Bytes tail = quoted.bytes();
        if (one_in(8)) tail.resize(below(tail.size() + 1)); // a router may quote little
        const Ends from{ends.v6, one_in(16) ? 1 - ends.own : ends.own, below(6)};
        Packet packet = ip(from, false, before);
        if (ends.v6)
            packet = packet / Icmp6{.type = static_cast<std::uint8_t>(1 + below(5))};
        else
            packet = packet / Icmp{.type = std::array<std::uint8_t, 5>{3, 4, 5, 11, 12}[below(5)]};
        Bytes frame = (packet / Payload{.bytes = tail.size()}).bytes();
        std::copy(tail.begin(), tail.end(), frame.end() - static_cast<std::ptrdiff_t>(tail.size()));
        return frame;
    }

    std::mt19937_64 random_;
    std::array<Bytes, 32> lately_;
};

std::string text_of(const Bytes& frame) {
    std::string text;
    for (const std::uint8_t byte : frame) text += fmt::format("{:02x}", byte);
    return text;
}

void converse(kernel::HookPoint point, std::uint64_t packets, std::uint64_t seed) {
    const auto scratch = value_or_fail(kernel::Scratch::load(true, point));
    const auto memory = value_or_fail(kernel::FlowMemory::create(100'000));
    const NoteProgram note;
    note.use(memory);
    ASSERT_TRUE(memory.put_into(scratch.instance()));
    kernel::WantedTable table;
    table.default_action = SIEVE_ACTION_DROP;
    table.replies = SIEVE_ACTION_PASS;
    ASSERT_TRUE(scratch.table().replace(table));

    ReplyModel model;
    Talk talk(seed);
    const auto begin = std::chrono::steady_clock::now();
    std::chrono::duration<double> moved{0};
    std::uint64_t answers = 0, others = 0, open = 0;
    for (std::uint64_t i = 0; i < packets; i++) {
        if (talk.one_in(10)) {
            // Often within a flow's limit, seldom beyond all limits.
            constexpr std::array<int, 8> steps{1, 2, 5, 11, 31, 61, 130, 190};
            const std::chrono::seconds step(talk.one_in(200) ? 7000 : steps[talk.below(steps.size())]);
            moved += memory.advance_clock(step);
        }
        const double time =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() + moved.count();
        if (talk.one_in(2)) {
            const Bytes frame = talk.leaves();
            note.see(frame);
            model.leaves(frame, time);
            continue;
        }
        const Bytes frame = talk.arrives();
        const Answer wanted = model.arrives(frame, time);
        const std::uint32_t verdict = value_or_fail(scratch.run(frame));
        const sieve_trace trace = scratch.trace();
        const bool passed = trace.decision == SIEVE_REPLY;
        // What has no key by nature passes, as without replies.
        const bool keyless = trace.outcome >= SIEVE_OUTCOME_ARP && trace.outcome <= SIEVE_OUTCOME_NON_IP;
        ASSERT_EQ(verdict == SIEVE_VERDICT_PASS, passed || keyless) << text_of(frame);
        if (wanted == Answer::either) {
            open++;
            continue;
        }
        (passed ? answers : others)++;
        ASSERT_EQ(passed, wanted == Answer::yes)
            << "packet " << i << ", seed " << seed << ": " << text_of(frame);
    }
    fmt::print("{}: {} packets: {} answers arrived, {} others were dropped, {} at the end of their time\n",
               kernel::hook_point_name(point), packets, answers, others, open);
    EXPECT_GT(answers, packets / 25);
    EXPECT_GT(others, packets / 5);
    EXPECT_EQ(note.counts().refused, 0U);
}

// SIEVE_TEST_CONVERSATION: how many packets for each hook.
std::uint64_t packets_wanted() {
    const char* wanted = std::getenv("SIEVE_TEST_CONVERSATION");
    return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 20'000;
}

TEST(ReplyConversation, AgreesWithTheModel) {
    const std::uint64_t seed = std::random_device{}();
    for (const kernel::HookPoint point : {kernel::HookPoint::xdp, kernel::HookPoint::ingress})
        converse(point, packets_wanted(), seed + static_cast<std::uint64_t>(point));
}

} // namespace
} // namespace sieve
