// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "model/link_model.hpp"

#include <set>

namespace sieve::model {

namespace {

using Packet = std::span<const std::uint8_t>;

constexpr unsigned ipv4 = 0x0800;
constexpr unsigned ipv6 = 0x86dd;
constexpr unsigned none = 0;

std::vector<std::uint8_t> ethernet(unsigned type, Packet payload) {
    std::vector<std::uint8_t> frame(12, 0);
    frame.push_back(static_cast<std::uint8_t>(type / 256));
    frame.push_back(static_cast<std::uint8_t>(type % 256));
    frame.insert(frame.end(), payload.begin(), payload.end());
    return frame;
}

unsigned number(Packet packet, std::size_t at) {
    return packet[at] * 256U + packet[at + 1];
}

// BSD's address families; AF_INET6 has as many numbers as there are systems.
unsigned type_of_family(std::uint32_t family) {
    static const std::set<std::uint32_t> six{10, 24, 28, 30};
    return family == 2 ? ipv4 : six.contains(family) ? ipv6 : none;
}

// "If the ARPHRD_ type is ... the protocol type field contains": Ethertypes, but for these devices.
unsigned type_of_cooked(unsigned device, unsigned protocol) {
    switch (device) {
    case 824: // ARPHRD_NETLINK: a netlink protocol
    case 801: // ARPHRD_IEEE80211
    case 802: // ARPHRD_IEEE80211_PRISM
    case 803: // ARPHRD_IEEE80211_RADIOTAP: ignored
    case 770: // ARPHRD_FRAD: ignored
        return none;
    default: // ARPHRD_IPGRE (778) included: a GRE protocol type, which is an Ethertype (RFC 2784)
        return protocol;
    }
}

} // namespace

std::vector<std::uint8_t> frame_of(LinkType type, Packet packet) {
    switch (type.link) {
    case Link::ethernet:
        return {packet.begin(), packet.end()};
    case Link::raw: {
        if (packet.empty()) return {};
        const unsigned version = packet[0] / 16;
        return ethernet(version == 4 ? ipv4 : version == 6 ? ipv6 : none, packet);
    }
    case Link::null: // in the byte order of the machine that captured
    case Link::loop: // in network byte order
    {
        if (packet.size() < 4) return {};
        const std::uint32_t big = number(packet, 0) * 65536 + number(packet, 2);
        const std::uint32_t little =
            packet[3] * 16777216U + packet[2] * 65536U + packet[1] * 256U + packet[0];
        return ethernet(type_of_family(big < little ? big : little), packet.subspan(4));
    }
    case Link::cooked:
        if (packet.size() < 16) return {};
        return ethernet(type_of_cooked(number(packet, 2), number(packet, 14)), packet.subspan(16));
    case Link::cooked2:
        if (packet.size() < 20) return {};
        return ethernet(type_of_cooked(number(packet, 8), number(packet, 0)), packet.subspan(20));
    }
    return {};
}

} // namespace sieve::model
