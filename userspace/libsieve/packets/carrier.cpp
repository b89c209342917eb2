// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/packets/carrier.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <netinet/in.h>

#include <cstring>

#include <sieve/extensions.h>
#include <sieve/ports.h>

namespace sieve::packets {

namespace {

constexpr std::size_t upper_bytes = 8; // a UDP header; the packet path reads less of any other header

void write_big_endian(std::uint8_t* to, std::uint64_t word) {
    for (int i = 7; i >= 0; i--, word >>= 8) to[i] = static_cast<std::uint8_t>(word);
}

// Whether all selected addresses are v4-mapped.
bool fits_ipv4(const sieve_key& key, std::uint32_t fields) {
    return ((fields & SIEVE_FIELD_SRC) == 0 || is_v4_mapped(key.word[0], key.word[1])) &&
           ((fields & SIEVE_FIELD_DST) == 0 || is_v4_mapped(key.word[2], key.word[3]));
}

std::uint8_t protocol_of(const sieve_key& key, std::uint32_t fields) {
    return (fields & SIEVE_FIELD_PROTO) != 0 ? static_cast<std::uint8_t>(key.word[4] >> SIEVE_PROTO_SHIFT)
                                             : static_cast<std::uint8_t>(IPPROTO_UDP);
}

} // namespace

bool is_v4_mapped(std::uint64_t upper, std::uint64_t lower) {
    return upper == 0 && (lower >> 32) == (SIEVE_V4_MAPPED >> 32);
}

std::string_view obstacle(const sieve_key& key, std::uint32_t fields) {
    const std::uint8_t proto = protocol_of(key, fields);
    if ((fields & SIEVE_FIELD_PORTS) != 0 && !sieve_has_ports(proto)) return "the protocol has no ports";
    if (!fits_ipv4(key, fields) && sieve_is_extension(proto))
        return "the protocol's number is an extension header's in IPv6";
    return {};
}

std::span<const std::uint8_t> Carrier::carry(const sieve_key& key, std::uint32_t fields) {
    if (!obstacle(key, fields).empty()) return {};
    const bool v4 = fits_ipv4(key, fields);
    const std::uint8_t proto = protocol_of(key, fields);

    bytes_.fill(0);
    ethhdr ethernet{};
    ethernet.h_proto = htons(v4 ? ETH_P_IP : ETH_P_IPV6);
    std::memcpy(bytes_.data(), &ethernet, sizeof(ethernet));
    std::uint8_t* at = bytes_.data() + sizeof(ethernet);
    if (v4) {
        iphdr ip{};
        ip.version = 4;
        ip.ihl = sizeof(ip) / 4;
        ip.tot_len = htons(sizeof(ip) + upper_bytes);
        ip.ttl = 64;
        ip.protocol = proto;
        ip.saddr = htonl(static_cast<std::uint32_t>(key.word[1]));
        ip.daddr = htonl(static_cast<std::uint32_t>(key.word[3]));
        std::memcpy(at, &ip, sizeof(ip));
        at += sizeof(ip);
    } else {
        ipv6hdr ip{};
        ip.version = 6;
        ip.payload_len = htons(upper_bytes);
        ip.nexthdr = proto;
        ip.hop_limit = 64; // with 255 an ICMPv6 packet could be neighbour discovery
        std::memcpy(at, &ip, sizeof(ip));
        for (std::size_t i = 0; i < 4; i++)
            write_big_endian(at + offsetof(ipv6hdr, saddr) + 8 * i, key.word[i]);
        at += sizeof(ip);
    }
    if (sieve_has_ports(proto)) {
        const std::uint16_t ports[2] = {htons(static_cast<std::uint16_t>(key.word[4] >> SIEVE_SPORT_SHIFT)),
                                        htons(static_cast<std::uint16_t>(key.word[4] >> SIEVE_DPORT_SHIFT))};
        std::memcpy(at, ports, sizeof(ports));
    }
    at += upper_bytes;
    return {bytes_.data(), at};
}

} // namespace sieve::packets
