// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/packets/link_layer.hpp"

#include <linux/if_arp.h>
#include <linux/if_ether.h>

#include <algorithm>
#include <array>

#include <pcap/pcap.h>

namespace sieve::packets {

namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint16_t no_ethertype = 0;

struct Packet {
    std::uint16_t ethertype = no_ethertype;
    Bytes payload;
};

std::uint16_t big16(Bytes bytes, std::size_t at) {
    return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

template <class Values, class Value>
bool is_one_of(const Values& values, Value value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

// An IP packet without a link-layer header.
std::optional<Packet> read_raw(Bytes captured) {
    if (captured.empty()) return std::nullopt;
    const int version = captured[0] >> 4;
    if (version == 4) return Packet{ETH_P_IP, captured};
    if (version == 6) return Packet{ETH_P_IPV6, captured};
    return Packet{no_ethertype, captured};
}

// The IP packet follows four bytes with the address family, in the byte order of the machine (NULL) or of the
// network (LOOP). All families are below 256, so the value shows the byte order. The number for IPv6 differs
// from system to system.
std::optional<Packet> read_family(Bytes captured) {
    constexpr std::size_t header = 4;
    constexpr std::array<int, 4> inet6 = {10, 24, 28, 30}; // Linux, NetBSD, FreeBSD, macOS
    constexpr int inet = 2;
    if (captured.size() < header) return std::nullopt;
    const Bytes payload = captured.subspan(header);
    if (captured[1] != 0 || captured[2] != 0 || (captured[0] != 0 && captured[3] != 0))
        return Packet{no_ethertype, payload};
    const int family = captured[0] | captured[3];
    if (family == inet) return Packet{ETH_P_IP, payload};
    if (is_one_of(inet6, family)) return Packet{ETH_P_IPV6, payload};
    return Packet{no_ethertype, payload};
}

// Linux's cooked packets, version 1 or 2. The kind of device tells what the protocol field means (pcap's
// link-layer header types, LINKTYPE_LINUX_SLL). For a GRE device the field is GRE's protocol type, an
// Ethertype.
std::optional<Packet> read_cooked(Bytes captured, std::size_t header, std::size_t device,
                                  std::size_t protocol) {
    constexpr std::array<int, 5> not_ethertypes = {ARPHRD_NETLINK, ARPHRD_IEEE80211, ARPHRD_IEEE80211_PRISM,
                                                   ARPHRD_IEEE80211_RADIOTAP, ARPHRD_FRAD};
    if (captured.size() < header) return std::nullopt;
    const Bytes payload = captured.subspan(header);
    if (is_one_of(not_ethertypes, int{big16(captured, device)})) return Packet{no_ethertype, payload};
    return Packet{big16(captured, protocol), payload};
}

std::optional<Packet> read(int type, Bytes captured) {
    switch (type) {
    case DLT_NULL:
    case DLT_LOOP:
        return read_family(captured);
    case DLT_LINUX_SLL:
        return read_cooked(captured, 16, 2, 14);
    case DLT_LINUX_SLL2:
        return read_cooked(captured, 20, 8, 0);
    default:
        return read_raw(captured);
    }
}

} // namespace

std::optional<LinkLayer> LinkLayer::of(int type) {
    constexpr std::array<int, 8> known = {DLT_EN10MB, DLT_RAW,  DLT_IPV4,      DLT_IPV6,
                                          DLT_NULL,   DLT_LOOP, DLT_LINUX_SLL, DLT_LINUX_SLL2};
    if (!is_one_of(known, type)) return std::nullopt;
    return LinkLayer(type);
}

std::span<const std::uint8_t> LinkLayer::frame(Bytes captured) {
    if (type_ == DLT_EN10MB) return captured;
    const std::optional<Packet> packet = read(type_, captured);
    if (!packet) return {};
    frame_.assign(ETH_HLEN, 0);
    frame_[ETH_HLEN - 2] = static_cast<std::uint8_t>(packet->ethertype >> 8);
    frame_[ETH_HLEN - 1] = static_cast<std::uint8_t>(packet->ethertype);
    frame_.insert(frame_.end(), packet->payload.begin(), packet->payload.end());
    return frame_;
}

} // namespace sieve::packets
