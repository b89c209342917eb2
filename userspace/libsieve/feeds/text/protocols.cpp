// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/protocols.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>

namespace sieve {
namespace {

struct Protocol {
    int number;
    std::string_view name;
};

// The names are those of the kernel's header, in lower case. If a number has several names, the first is
// printed. The table is our own, because the meaning of a feed must not depend on the machine's
// /etc/protocols.
constexpr std::array protocols{
    Protocol{IPPROTO_HOPOPTS, "hopopts"},
    Protocol{IPPROTO_IP, "ip"},
    Protocol{IPPROTO_ICMP, "icmp"},
    Protocol{IPPROTO_IGMP, "igmp"},
    Protocol{IPPROTO_IPIP, "ipip"},
    Protocol{IPPROTO_TCP, "tcp"},
    Protocol{IPPROTO_EGP, "egp"},
    Protocol{IPPROTO_PUP, "pup"},
    Protocol{IPPROTO_UDP, "udp"},
    Protocol{IPPROTO_IDP, "idp"},
    Protocol{IPPROTO_TP, "tp"},
    Protocol{IPPROTO_DCCP, "dccp"},
    Protocol{IPPROTO_IPV6, "ipv6"},
    Protocol{IPPROTO_ROUTING, "routing"},
    Protocol{IPPROTO_FRAGMENT, "fragment"},
    Protocol{IPPROTO_RSVP, "rsvp"},
    Protocol{IPPROTO_GRE, "gre"},
    Protocol{IPPROTO_ESP, "esp"},
    Protocol{IPPROTO_AH, "ah"},
    Protocol{IPPROTO_ICMPV6, "icmpv6"},
    Protocol{IPPROTO_ICMPV6, "ipv6-icmp"},
    Protocol{IPPROTO_ICMPV6, "icmp6"},
    Protocol{IPPROTO_NONE, "none"},
    Protocol{IPPROTO_DSTOPTS, "dstopts"},
    Protocol{89, "ospf"},
    Protocol{IPPROTO_MTP, "mtp"},
    Protocol{IPPROTO_BEETPH, "beetph"},
    Protocol{IPPROTO_ENCAP, "encap"},
    Protocol{IPPROTO_PIM, "pim"},
    Protocol{IPPROTO_COMP, "comp"},
    Protocol{IPPROTO_COMP, "ipcomp"},
    Protocol{112, "vrrp"},
    Protocol{115, "l2tp"},
    Protocol{IPPROTO_SCTP, "sctp"},
    Protocol{IPPROTO_MH, "mh"},
    Protocol{IPPROTO_UDPLITE, "udplite"},
    Protocol{IPPROTO_MPLS, "mpls"},
    Protocol{IPPROTO_ETHERNET, "ethernet"},
    Protocol{IPPROTO_RAW, "raw"},
};

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

} // namespace

int protocol_number(std::string_view name) {
    for (const Protocol& protocol : protocols)
        if (std::ranges::equal(name, protocol.name, {}, lower)) return protocol.number;
    return -1;
}

std::string_view protocol_name(std::uint8_t number) {
    for (const Protocol& protocol : protocols)
        if (protocol.number == number) return protocol.name;
    return {};
}

} // namespace sieve
