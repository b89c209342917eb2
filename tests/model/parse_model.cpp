// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "model/parse_model.hpp"

#include <set>
namespace sieve::test {

namespace {

// Thrown by a read beyond the end; carries no further information.
struct PastTheEnd {};

class Reader {
  public:
    Reader(const Bytes& packet, bool segmented) : packet_(packet), segmented_(segmented) {}

    [[nodiscard]] std::uint64_t number(std::size_t at, std::size_t bytes) const {
        if (at + bytes > packet_.size()) throw PastTheEnd{};
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < bytes; i++) value = value << 8 | packet_[at + i];
        return value;
    }
    [[nodiscard]] bool holds(std::size_t at, std::size_t bytes) const { return at + bytes <= packet_.size(); }

    // The length that a header states at `at`. Zero may mean that the length is too large for the field.
    [[nodiscard]] std::size_t length(std::size_t at) const {
        const std::size_t stated = number(at, 2);
        return stated == 0 && segmented_ ? 65536 : stated;
    }

  private:
    const Bytes& packet_;
    bool segmented_;
};

Parsed without_key(std::uint32_t outcome) {
    return {.outcome = outcome, .have = 0, .key = {}};
}

// The upper protocol `proto` at `at`; the IP header says that the packet ends at `end`.
void upper(const Reader& read, std::size_t at, std::size_t end, unsigned proto, Parsed& parsed) {
    parsed.have |= SIEVE_FIELD_PROTO;
    parsed.key[4] = proto;
    parsed.outcome = SIEVE_OUTCOME_COMPLETE;
    static const std::set<unsigned> ported{6, 17, 33, 132, 136}; // TCP, UDP, DCCP, SCTP, UDP-Lite
    if (!ported.contains(proto)) return;
    if (at + 4 > end || !read.holds(at, 4)) {
        parsed.outcome = SIEVE_OUTCOME_SHORT;
        return;
    }
    parsed.have |= SIEVE_FIELD_SPORT | SIEVE_FIELD_DPORT;
    parsed.key[4] = read.number(at, 2) << 24 | read.number(at + 2, 2) << 8 | proto;
}

// Whether a packet's IPv4 options, from `at` up to `end`, may send it elsewhere than its header says: a loose
// or strict source route (RFC 791) that is not at its end, or anything that leaves this open.
bool may_be_on_route(const Reader& read, std::size_t at, std::size_t end) {
    while (at < end) {
        const std::uint64_t type = read.number(at, 1);
        if (type == 0) return false; // the end of the list
        if (type == 1) {             // no operation
            at++;
            continue;
        }
        if (end - at < 2) return true;
        const std::uint64_t length = read.number(at + 1, 1);
        if (length < 2 || length > end - at) return true;
        if ((type == 131 || type == 137) && (length == 2 || read.number(at + 2, 1) <= length)) return true;
        at += length;
    }
    return false;
}

// What is known of a packet whose destination may be only a stop of a route.
Parsed on_route(Parsed parsed) {
    if (parsed.outcome == SIEVE_OUTCOME_COMPLETE || parsed.outcome == SIEVE_OUTCOME_FRAGMENT)
        parsed.outcome = SIEVE_OUTCOME_SOURCE_ROUTE;
    return parsed;
}

Parsed ipv4(const Reader& read, std::size_t at) {
    if (!read.holds(at, 20)) return without_key(SIEVE_OUTCOME_TRUNCATED);
    const std::uint64_t first = read.number(at, 1);
    const std::size_t header = (first & 15) * 4;
    const std::size_t total = read.length(at + 2);
    if (first >> 4 != 4 || header < 20 || total < header) return without_key(SIEVE_OUTCOME_MALFORMED);
    if (!read.holds(at, header)) return without_key(SIEVE_OUTCOME_TRUNCATED);
    Parsed parsed;
    parsed.have = SIEVE_FIELD_SRC | SIEVE_FIELD_DST;
    parsed.key[1] = 0xffff00000000 | read.number(at + 12, 4);
    parsed.key[3] = 0xffff00000000 | read.number(at + 16, 4);
    const auto proto = static_cast<unsigned>(read.number(at + 9, 1));
    if ((read.number(at + 6, 2) & 0x1fff) != 0) {
        parsed.have |= SIEVE_FIELD_PROTO;
        parsed.key[4] = proto;
        parsed.outcome = SIEVE_OUTCOME_FRAGMENT;
    } else {
        upper(read, at + header, at + total, proto, parsed);
    }
    return may_be_on_route(read, at + 20, at + header) ? on_route(parsed) : parsed;
}

Parsed ipv6(const Reader& read, std::size_t at) {
    if (!read.holds(at, 40)) return without_key(SIEVE_OUTCOME_TRUNCATED);
    if (read.number(at, 1) >> 4 != 6) return without_key(SIEVE_OUTCOME_MALFORMED);
    static const std::set<std::uint64_t> extensions{0, 43, 44, 51, 60};
    Parsed parsed;
    parsed.have = SIEVE_FIELD_SRC | SIEVE_FIELD_DST;
    for (std::size_t i = 0; i < 4; i++) parsed.key[i] = read.number(at + 8 + 8 * i, 8);
    std::uint64_t type = read.number(at + 6, 1);
    // Linux: before a hop-by-hop header, a length of zero means that no length is given.
    const std::size_t end =
        at + 40 + (read.number(at + 4, 2) == 0 && type == 0 ? 65536 : read.length(at + 4));
    std::size_t next = at + 40;
    bool routed = false; // a routing header has segments left (RFC 8200, 4.4)
    for (int headers = 0; extensions.contains(type); headers++) {
        parsed.outcome = SIEVE_OUTCOME_LONG_CHAIN;
        if (headers == 64) return parsed;
        parsed.outcome = SIEVE_OUTCOME_CUT_CHAIN;
        if (next + 8 > end || !read.holds(next, 8)) return parsed;
        if (type == 44 && read.number(next + 2, 2) >> 3 != 0) {
            parsed.outcome = SIEVE_OUTCOME_FRAGMENT;
            if (const std::uint64_t behind = read.number(next, 1); !extensions.contains(behind)) {
                parsed.have |= SIEVE_FIELD_PROTO;
                parsed.key[4] = behind;
            }
            return routed ? on_route(parsed) : parsed;
        }
        routed = routed || (type == 43 && read.number(next + 3, 1) != 0);
        const std::size_t length = read.number(next + 1, 1);
        const std::size_t bytes = type == 44 ? 8 : type == 51 ? (length + 2) * 4 : (length + 1) * 8;
        type = read.number(next, 1);
        next += bytes;
    }
    if (next > end || !read.holds(0, next)) return parsed; // the last extension header is not whole
    if (type == 58 && read.number(at + 7, 1) == 255 && next + 1 <= end && !routed) {
        if (!read.holds(next, 1)) { // it may be neighbour discovery
            parsed.have |= SIEVE_FIELD_PROTO;
            parsed.key[4] = 58;
            parsed.outcome = SIEVE_OUTCOME_SHORT;
            return parsed;
        }
        if (read.number(next, 1) >= 133 && read.number(next, 1) <= 137)
            return without_key(SIEVE_OUTCOME_NEIGHBOUR);
    }
    upper(read, next, end, static_cast<unsigned>(type), parsed);
    return routed ? on_route(parsed) : parsed;
}

Parsed bare(const Reader& read) {
    switch (read.number(0, 1) >> 4) {
    case 4:
        return ipv4(read, 0);
    case 6:
        return ipv6(read, 0);
    default:
        return without_key(SIEVE_OUTCOME_NON_IP);
    }
}

Parsed ethernet(const Reader& read) {
    std::size_t at = 12;
    std::uint64_t type = read.number(at, 2);
    at += 2;
    int tags = 0;
    for (; (type == 0x8100 || type == 0x88a8) && tags < 64; tags++) {
        type = read.number(at + 2, 2);
        at += 4;
    }
    switch (type) {
    case 0x0800:
        return ipv4(read, at);
    case 0x86dd:
        return ipv6(read, at);
    case 0x0806:
        return without_key(SIEVE_OUTCOME_ARP);
    case 0x8100:
    case 0x88a8:
        return without_key(SIEVE_OUTCOME_DEEP_VLAN);
    default:
        return without_key(SIEVE_OUTCOME_NON_IP);
    }
}

} // namespace

std::ostream& operator<<(std::ostream& out, const Parsed& parsed) {
    out << "outcome " << parsed.outcome << ", have " << std::hex << parsed.have << ", key";
    for (const std::uint64_t word : parsed.key) out << ' ' << word;
    return out << std::dec;
}

Parsed parse_by_model(const Bytes& packet, sieve_link link, bool segmented) {
    try {
        const Reader read(packet, segmented);
        return link == SIEVE_LINK_IP ? bare(read) : ethernet(read);
    } catch (const PastTheEnd&) {
        return without_key(SIEVE_OUTCOME_TRUNCATED);
    }
}

} // namespace sieve::test
