/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the packets that parse.h leaves unfinished. These have IPv4 options, more VLAN tags or more IPv6
 * extension headers than parse.h follows, or a source route; or their headers lie where direct access does
 * not reach (in further buffers of a jumbo frame, in pages beside the linear part). Such a packet is read
 * again from the start. Each header is copied out of the packet. The copy costs a helper call, but works
 * wherever the header lies.
 *
 * The loop bounds, SIEVE_MAX_VLAN_TAGS and SIEVE_MAX_EXTENSIONS, limit the cost of a hostile packet to a few
 * microseconds. With bpf_loop, the verifier checks the code for one header once, however many there may be.
 */
#ifndef SIEVE_BPF_PARSE_DEEP_H
#define SIEVE_BPF_PARSE_DEEP_H

#include "parse.h"

/* IPv4 options (RFC 791, 3.1): those of one byte, those that name a route, and how many bytes they can have.
 */
#define SIEVE_OPTION_END 0
#define SIEVE_OPTION_NONE 1
#define SIEVE_OPTION_LOOSE_ROUTE 131
#define SIEVE_OPTION_STRICT_ROUTE 137
#define SIEVE_MOST_OPTION_BYTES 40

/* The state of a walk over headers. */
struct sieve_walk {
    SIEVE_CONTEXT* ctx;
    __s64 available; /* bytes from `at` on that belong to the IP packet, or to its options, by its header */
    __u32 at;        /* offset in the packet */
    __u16 outcome;   /* COMPLETE until something stops the walk */
    __be16 type;     /* Ethernet type of what is at `at` */
    __u8 next;       /* next-header value of what is at `at`, within IPv6 */
    __u8 routed;     /* the packet may be on a source route */
    __u8 reserved[6];
};

static long sieve_walk_tag(__u32 turn, struct sieve_walk* walk) {
    struct sieve_vlan_tag tag;

    (void)turn;
    if (!sieve_is_vlan(walk->type)) return 1;
    if (sieve_load(walk->ctx, walk->at, &tag, sizeof(tag)) != 0) {
        walk->outcome = SIEVE_OUTCOME_TRUNCATED;
        return 1;
    }
    walk->type = tag.protocol;
    walk->at += sizeof(tag);
    return 0;
}

/* A byte of the option at `at`; negative if the options end before it. */
static __always_inline int sieve_option_byte(const struct sieve_walk* walk, __u32 number) {
    __u8 byte;

    if (walk->available <= number || sieve_load(walk->ctx, walk->at + number, &byte, sizeof(byte)) != 0)
        return -1;
    return byte;
}

/* Takes one option. The packet may go elsewhere than its header says if this option is a route, whose pointer
 * (from 1, the option's first byte) names a stop within the option; or if its length leads nowhere, so that
 * nobody can tell what follows. */
static long sieve_walk_option(__u32 turn, struct sieve_walk* walk) {
    int type = sieve_option_byte(walk, 0), length = 1;

    (void)turn;
    if (type < 0 || type == SIEVE_OPTION_END) return 1;
    if (type != SIEVE_OPTION_NONE) {
        length = sieve_option_byte(walk, 1);
        if (length < 2 || length > walk->available) walk->routed = 1;
        if ((type == SIEVE_OPTION_LOOSE_ROUTE || type == SIEVE_OPTION_STRICT_ROUTE) &&
            (length == 2 || sieve_option_byte(walk, 2) <= length))
            walk->routed = 1;
    }
    walk->at += length;
    walk->available -= length;
    return walk->routed != 0;
}

static long sieve_walk_extension(__u32 turn, struct sieve_walk* walk) {
    struct sieve_fragment header;
    __u64 bytes;

    (void)turn;
    if (!sieve_is_extension(walk->next)) return 1;
    if (walk->available < (__s64)sizeof(header) ||
        sieve_load(walk->ctx, walk->at, &header, sizeof(header)) != 0) {
        walk->outcome = SIEVE_OUTCOME_CUT_CHAIN;
        return 1;
    }
    if (sieve_is_later_fragment(walk->next, &header)) {
        walk->outcome = SIEVE_OUTCOME_FRAGMENT;
        walk->next = header.next;
        return 1;
    }
    if (sieve_is_on_route(walk->next, &header)) walk->routed = 1;
    bytes = sieve_extension_bytes(walk->next, &header);
    walk->next = header.next;
    walk->at += bytes;
    walk->available -= bytes;
    return 0;
}

static __always_inline void sieve_deep_transport(const struct sieve_walk* walk, __u8 proto,
                                                 struct sieve_parsed* parsed) {
    struct sieve_ports ports;

    sieve_take_protocol(proto, parsed);
    parsed->outcome = SIEVE_OUTCOME_COMPLETE;
    if (!sieve_has_ports(proto)) return;
    if (walk->available < (__s64)sizeof(ports) ||
        sieve_load(walk->ctx, walk->at, &ports, sizeof(ports)) != 0) {
        parsed->outcome = SIEVE_OUTCOME_SHORT;
        return;
    }
    sieve_take_ports(&ports, proto, parsed);
}

/* Parses ICMPv6 that may be neighbour discovery. */
static __always_inline void sieve_deep_icmp(const struct sieve_walk* walk, struct sieve_parsed* parsed) {
    __u8 type;

    sieve_take_protocol(IPPROTO_ICMPV6, parsed);
    if (sieve_load(walk->ctx, walk->at, &type, sizeof(type)) != 0)
        parsed->outcome = SIEVE_OUTCOME_SHORT;
    else if (sieve_is_discovery(type))
        sieve_set_discovery(parsed);
    else
        parsed->outcome = SIEVE_OUTCOME_COMPLETE;
}

static __always_inline void sieve_deep_ipv4(struct sieve_walk* walk, struct sieve_parsed* parsed) {
    struct iphdr ip __attribute__((aligned(8)));
    __u32 header, total, behind;
    __u8 last;

    parsed->outcome = SIEVE_OUTCOME_TRUNCATED;
    if (sieve_load(walk->ctx, walk->at, &ip, sizeof(ip)) != 0) return;
    header = ip.ihl * 4;
    total = sieve_stated_length(walk->ctx, parsed, ip.tot_len, 0);
    if (ip.version != 4 || header < sizeof(ip) || total < header) {
        parsed->outcome = SIEVE_OUTCOME_MALFORMED;
        return;
    }
    behind = walk->at + header;
    if (sieve_load(walk->ctx, behind - 1, &last, sizeof(last)) != 0) return; /* ends inside its options */
    walk->at += sizeof(ip);
    walk->available = header - sizeof(ip);
    bpf_loop(SIEVE_MOST_OPTION_BYTES, sieve_walk_option, walk, 0);
    if (!sieve_take_ipv4(&ip, parsed)) return;
    sieve_take_offsets(behind - header, header, parsed);
    walk->at = behind;
    walk->available = (__s64)total - header;
    sieve_deep_transport(walk, ip.protocol, parsed);
}

static __always_inline void sieve_deep_ipv6(struct sieve_walk* walk, struct sieve_parsed* parsed) {
    struct ipv6hdr ip __attribute__((aligned(8)));
    const __u32 network = walk->at;
    __u8 last;

    parsed->outcome = SIEVE_OUTCOME_TRUNCATED;
    if (sieve_load(walk->ctx, walk->at, &ip, sizeof(ip)) != 0) return;
    parsed->outcome = SIEVE_OUTCOME_MALFORMED;
    if (ip.version != 6) return;
    sieve_take_ipv6(&ip, parsed);
    walk->at += sizeof(ip);
    walk->available = sieve_ipv6_payload(walk->ctx, parsed, &ip);
    walk->next = ip.nexthdr;
    bpf_loop(SIEVE_MAX_EXTENSIONS, sieve_walk_extension, walk, 0);
    if (walk->outcome == SIEVE_OUTCOME_FRAGMENT)
        sieve_take_later_fragment(walk->next, parsed);
    else if (walk->outcome != SIEVE_OUTCOME_COMPLETE)
        parsed->outcome = walk->outcome;
    else if (sieve_is_extension(walk->next))
        parsed->outcome = SIEVE_OUTCOME_LONG_CHAIN;
    else if (walk->available < 0 || sieve_load(walk->ctx, walk->at - 1, &last, sizeof(last)) != 0)
        parsed->outcome = SIEVE_OUTCOME_CUT_CHAIN; /* the last extension header is not whole */
    else if (!walk->routed && sieve_may_be_discovery(&ip, walk->next, walk->available))
        sieve_deep_icmp(walk, parsed);
    else
        sieve_deep_transport(walk, walk->next, parsed);
    if (parsed->outcome == SIEVE_OUTCOME_COMPLETE) sieve_take_offsets(network, walk->at - network, parsed);
}

/* Fills `parsed` anew. This is a global function: it runs rarely, and it gets its own stack frame. The return
 * value means nothing. */
__noinline int sieve_parse_deep(SIEVE_CONTEXT* ctx, struct sieve_parsed* parsed) {
    struct sieve_walk walk = {.ctx = ctx, .outcome = SIEVE_OUTCOME_COMPLETE};
    __u32 bytes;
    __u8 version;

    if (!parsed) return 0; /* cannot happen, but the verifier asks */
    bytes = parsed->bytes;
    __builtin_memset(parsed, 0, sizeof(*parsed));
    parsed->bytes = bytes;
    parsed->outcome = SIEVE_OUTCOME_TRUNCATED;
    if (sieve_link() == SIEVE_LINK_IP) {
        if (sieve_load(ctx, 0, &version, sizeof(version)) != 0) return 0;
        walk.type = version >> 4 == 4 ? bpf_htons(ETH_P_IP) : version >> 4 == 6 ? bpf_htons(ETH_P_IPV6) : 0;
    } else {
        walk.at = sizeof(struct ethhdr);
        if (sieve_load(ctx, __builtin_offsetof(struct ethhdr, h_proto), &walk.type, sizeof(walk.type)) != 0)
            return 0;
        bpf_loop(SIEVE_MAX_VLAN_TAGS, sieve_walk_tag, &walk, 0);
        if (walk.outcome != SIEVE_OUTCOME_COMPLETE) return 0;
    }
    if (walk.type == bpf_htons(ETH_P_IP))
        sieve_deep_ipv4(&walk, parsed);
    else if (walk.type == bpf_htons(ETH_P_IPV6))
        sieve_deep_ipv6(&walk, parsed);
    else if (walk.type == bpf_htons(ETH_P_ARP))
        parsed->outcome = SIEVE_OUTCOME_ARP;
    else
        parsed->outcome = sieve_is_vlan(walk.type) ? SIEVE_OUTCOME_DEEP_VLAN : SIEVE_OUTCOME_NON_IP;
    if (walk.routed && parsed->outcome < SIEVE_OUTCOME_FIRST_UNREADABLE)
        parsed->outcome = SIEVE_OUTCOME_SOURCE_ROUTE;
    return 0;
}

/* Reads on after sieve_parse(), if the packet continues where sieve_parse() stopped. */
static __always_inline void sieve_parse_further(SIEVE_CONTEXT* ctx, struct sieve_parsed* parsed) {
    if (parsed->outcome == SIEVE_OUTCOME_LONG_CHAIN || parsed->outcome == SIEVE_OUTCOME_DEEP_VLAN ||
        parsed->outcome == SIEVE_OUTCOME_SOURCE_ROUTE ||
        (parsed->outcome != SIEVE_OUTCOME_MALFORMED && (__u64)ctx->data_end - ctx->data < parsed->bytes))
        sieve_parse_deep(ctx, parsed);
}

#endif
