// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Packets as source text that reads like them: Ethernet{} / Vlan{} / IPv4{.src = "10.0.0.1"} / Tcp{.sport =
// 1}.
//
// Types, next headers and lengths follow from the layers behind, unless a test gives them. A test may give
// wrong ones.
#pragma once

#include <arpa/inet.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sieve::test {

using Bytes = std::vector<std::uint8_t>;

// What a layer tells the layer before it about itself.
struct Identity {
    std::uint16_t ethertype = 0x88b5; // "local experimental": no IP
    std::uint8_t protocol = 253;      // likewise
};

inline void put8(Bytes& bytes, unsigned value) {
    bytes.push_back(static_cast<std::uint8_t>(value));
}
inline void put16(Bytes& bytes, unsigned value) {
    put8(bytes, value >> 8);
    put8(bytes, value);
}
inline void put32(Bytes& bytes, std::uint32_t value) {
    put16(bytes, value >> 16);
    put16(bytes, value & 0xffff);
}
inline void put_address(Bytes& bytes, int family, const std::string& text) {
    std::uint8_t address[16] = {};
    ::inet_pton(family, text.c_str(), address);
    bytes.insert(bytes.end(), address, address + (family == AF_INET ? 4 : 16));
}

// Every layer has its identity, and encode(): its bytes, given the next layer's identity and the number of
// bytes behind it.

struct Ethernet {
    std::optional<std::uint16_t> type{};

    [[nodiscard]] Identity identity() const { return {}; }
    [[nodiscard]] Bytes encode(const Identity& next, std::size_t) const {
        Bytes bytes{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
        put16(bytes, type.value_or(next.ethertype));
        return bytes;
    }
};

struct Vlan {
    std::uint16_t id = 7;
    std::uint16_t tpid = 0x8100;
    std::optional<std::uint16_t> type{};

    [[nodiscard]] Identity identity() const { return {.ethertype = tpid}; }
    [[nodiscard]] Bytes encode(const Identity& next, std::size_t) const {
        Bytes bytes;
        put16(bytes, id);
        put16(bytes, type.value_or(next.ethertype));
        return bytes;
    }
};

struct Arp {
    [[nodiscard]] Identity identity() const { return {.ethertype = 0x0806}; }
    [[nodiscard]] Bytes encode(const Identity&, std::size_t) const { return Bytes(28, 1); }
};

// IPv4 options that do nothing.
inline Bytes no_operations(std::size_t bytes) {
    return Bytes(bytes, 1);
}

// The IPv4 option of a loose (131) or strict (137) source route over these stops, whose pointer names the
// next one. One byte of padding goes before it.
inline Bytes source_route(std::uint8_t type, const std::vector<std::string>& stops,
                          std::uint8_t pointer = 4) {
    Bytes bytes{1, type, static_cast<std::uint8_t>(3 + 4 * stops.size()), pointer};
    for (const std::string& stop : stops) put_address(bytes, AF_INET, stop);
    return bytes;
}

struct IPv4 {
    std::string src = "192.0.2.1";
    std::string dst = "198.51.100.2";
    std::optional<std::uint8_t> protocol{};
    unsigned version = 4;
    std::optional<unsigned> ihl{};
    std::optional<std::uint16_t> total{};
    unsigned offset = 0; // a fragment's, in units of eight bytes
    bool more = false;
    Bytes options{}; // a multiple of four

    [[nodiscard]] Identity identity() const { return {.ethertype = 0x0800, .protocol = 4}; }
    [[nodiscard]] Bytes encode(const Identity& next, std::size_t behind) const {
        Bytes bytes;
        const std::size_t header = 20 + options.size();
        put8(bytes, version << 4 | ihl.value_or(static_cast<unsigned>(header / 4)));
        put8(bytes, 0);
        put16(bytes, total.value_or(static_cast<std::uint16_t>(header + behind)));
        put16(bytes, 0x1234);
        put16(bytes, (more ? 0x2000U : 0U) | offset);
        put8(bytes, 64);
        put8(bytes, protocol.value_or(next.protocol));
        put16(bytes, 0);
        put_address(bytes, AF_INET, src);
        put_address(bytes, AF_INET, dst);
        bytes.insert(bytes.end(), options.begin(), options.end());
        return bytes;
    }
};

struct IPv6 {
    std::string src = "2001:db8::1";
    std::string dst = "2001:db8::2";
    std::optional<std::uint8_t> next_header{};
    unsigned version = 6;
    std::optional<std::uint16_t> length{};
    unsigned hop_limit = 64;

    [[nodiscard]] Identity identity() const { return {.ethertype = 0x86dd, .protocol = 41}; }
    [[nodiscard]] Bytes encode(const Identity& next, std::size_t behind) const {
        Bytes bytes;
        put32(bytes, version << 28);
        put16(bytes, length.value_or(static_cast<std::uint16_t>(behind)));
        put8(bytes, next_header.value_or(next.protocol));
        put8(bytes, hop_limit);
        put_address(bytes, AF_INET6, src);
        put_address(bytes, AF_INET6, dst);
        return bytes;
    }
};

// An IPv6 extension header of (units + 1) * 8 bytes; type 51 (AH) counts in fours: (units + 2) * 4.
struct Extension {
    std::uint8_t type = 60; // destination options
    unsigned units = 0;
    std::optional<std::uint8_t> next_header{};
    std::uint8_t route = 0; // the routing type, of type 43
    std::uint8_t left = 0;  // the segments left, of type 43

    [[nodiscard]] Identity identity() const { return {.protocol = type}; }
    [[nodiscard]] Bytes encode(const Identity& next, std::size_t) const {
        Bytes bytes;
        put8(bytes, next_header.value_or(next.protocol));
        put8(bytes, units);
        bytes.resize(type == 51 ? (units + 2) * 4 : (units + 1) * 8, 0xee);
        if (type == 43) bytes[2] = route, bytes[3] = left;
        return bytes;
    }
};

struct Fragment6 {
    unsigned offset = 0; // in units of eight bytes
    bool more = false;
    std::optional<std::uint8_t> next_header{};

    [[nodiscard]] Identity identity() const { return {.protocol = 44}; }
    [[nodiscard]] Bytes encode(const Identity& next, std::size_t) const {
        Bytes bytes;
        put8(bytes, next_header.value_or(next.protocol));
        put8(bytes, 0);
        put16(bytes, offset << 3 | (more ? 1U : 0U));
        put32(bytes, 0xabcdef01);
        return bytes;
    }
};

// UDP, DCCP, SCTP and UDP-Lite begin alike, as TCP does, and no code here reads further.
template <std::uint8_t protocol_number, std::size_t header_bytes>
struct Ports {
    std::uint16_t sport = 1000;
    std::uint16_t dport = 2000;

    [[nodiscard]] Identity identity() const { return {.protocol = protocol_number}; }
    [[nodiscard]] Bytes encode(const Identity&, std::size_t) const {
        Bytes bytes;
        put16(bytes, sport);
        put16(bytes, dport);
        bytes.resize(header_bytes, 0x55);
        return bytes;
    }
};
using Udp = Ports<17, 8>;
using Dccp = Ports<33, 12>;
using Sctp = Ports<132, 12>;
using UdpLite = Ports<136, 8>;

inline constexpr std::uint8_t fin = 1, syn = 2, rst = 4, ack = 16;

struct Tcp {
    std::uint16_t sport = 1000;
    std::uint16_t dport = 2000;
    std::uint8_t flags = ack;

    [[nodiscard]] Identity identity() const { return {.protocol = 6}; }
    [[nodiscard]] Bytes encode(const Identity&, std::size_t) const {
        Bytes bytes;
        put16(bytes, sport);
        put16(bytes, dport);
        bytes.resize(20, 0x55);
        bytes[12] = 0x50; // the header's length, in words
        bytes[13] = flags;
        return bytes;
    }
};

// ICMP and ICMPv6. The second word is that of an echo; an error's is not read. An error quotes the IP packet
// that stands behind it.
template <std::uint8_t protocol_number, std::uint8_t echo>
struct IcmpOf {
    std::uint8_t type = echo;
    std::uint16_t id = 0;

    [[nodiscard]] Identity identity() const { return {.protocol = protocol_number}; }
    [[nodiscard]] Bytes encode(const Identity&, std::size_t) const {
        Bytes bytes{type, 0, 0, 0};
        put16(bytes, id);
        put16(bytes, 0);
        return bytes;
    }
};
using Icmp = IcmpOf<1, 8>;
using Icmp6 = IcmpOf<58, 128>;

// Any bytes; the default protocol is unknown.
struct Payload {
    std::size_t bytes = 0;
    std::uint8_t protocol = 253;

    [[nodiscard]] Identity identity() const { return {.protocol = protocol}; }
    [[nodiscard]] Bytes encode(const Identity&, std::size_t) const { return Bytes(bytes, 0xaa); }
};

using Layer = std::variant<Ethernet, Vlan, Arp, IPv4, IPv6, Extension, Fragment6, Tcp, Udp, Dccp, Sctp,
                           UdpLite, Icmp, Icmp6, Payload>;

class Packet {
  public:
    Packet(Layer layer) : layers_{std::move(layer)} {} // a single layer is a packet

    [[nodiscard]] Packet operator/(Layer layer) const {
        Packet longer = *this;
        longer.layers_.push_back(std::move(layer));
        return longer;
    }

    [[nodiscard]] Bytes bytes() const {
        Bytes behind;
        Identity next;
        for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
            Bytes whole = std::visit([&](const auto& it) { return it.encode(next, behind.size()); }, *layer);
            whole.insert(whole.end(), behind.begin(), behind.end());
            behind = std::move(whole);
            next = std::visit([](const auto& it) { return it.identity(); }, *layer);
        }
        return behind;
    }

  private:
    std::vector<Layer> layers_;
};

inline Packet operator/(Ethernet ethernet, Layer layer) {
    return Packet(Layer(ethernet)) / std::move(layer);
}

} // namespace sieve::test
