// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What hosts behind the filter, their peers and strangers send: frames at random.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>

#include <fmt/core.h>

#include "bpf/mirror.hpp"
#include "bpf/packet.hpp"

namespace sieve::test {

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
        remember(sent);
        return sent;
    }
    // A frame that has left otherwise.
    void remember(const Bytes& sent) { lately_[below(lately_.size())] = sent; }

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

inline std::string text_of(const Bytes& frame) {
    std::string text;
    for (const std::uint8_t byte : frame) text += fmt::format("{:02x}", byte);
    return text;
}

// SIEVE_TEST_CONVERSATION: how many packets each conversation has.
inline std::uint64_t packets_of_conversation() {
    const char* wanted = std::getenv("SIEVE_TEST_CONVERSATION");
    return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 20'000;
}

} // namespace sieve::test
