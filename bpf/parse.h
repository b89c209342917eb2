/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packet to flow key.
 *
 * Ethernet and up to SIEVE_FAST_VLAN_TAGS tags, or no link header at all (enum sieve_link); IPv4 without
 * options, IPv6 with up to SIEVE_FAST_EXTENSIONS extension headers; then the ports, if the upper protocol has
 * any (sieve/ports.h). parse_deep.h reads the rare packets that have more, or whose headers lie where direct
 * access does not reach. Tunnels are not entered. A field is provided only if the packet truly carries it:
 * bytes beyond the length that the IP header states are padding, not ports.
 *
 * A packet on a source route is unreadable: its header names the next stop, and where the packet goes to
 * stands elsewhere, in a form that depends on the sort of route.
 *
 * The cursor only moves forward, each read is checked against the packet's end, and every loop has a constant
 * bound.
 *
 * Include the hook's header (hook_xdp.h, hook_tc.h) first. It defines a packet's context, and tells which
 * packets may have zero in the IP header's length field, and with what packets begin: sieve_link().
 */
#ifndef SIEVE_BPF_PARSE_H
#define SIEVE_BPF_PARSE_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include <sieve/extensions.h>
#include <sieve/policy.h>
#include <sieve/ports.h>

#ifndef SIEVE_CONTEXT
#error "include the hook's header first"
#endif

static __always_inline __u32 sieve_link(void);

#define SIEVE_FAST_VLAN_TAGS 4
#define SIEVE_FAST_EXTENSIONS 8

/* The largest length that an IP header can state. */
#define SIEVE_LONGEST_STATED 0xffff

/* An IPv4 header's first byte if the header has no options: version 4, and five words long. */
#define SIEVE_PLAIN_IPV4 0x45

#define SIEVE_IPV4_OFFSET_MASK 0x1fff
#define SIEVE_IPV6_OFFSET_MASK 0xfff8
/* Where a fragment header has the low byte of its offset, a routing header has the segments left. */
#define SIEVE_SEGMENTS_LEFT_MASK 0xff

/* ICMPv6 types of neighbour discovery (RFC 4861), which is link-local by its hop limit of 255. */
#define SIEVE_ND_FIRST 133
#define SIEVE_ND_LAST 137
#define SIEVE_ND_HOP_LIMIT 255

/* Tells the verifier where an IP header can start: at most after Ethernet and four tags. */
#define SIEVE_OFFSET_MASK 0x3f

struct sieve_vlan_tag {
    __be16 control;
    __be16 protocol;
};

/* The fragment header. In the other extension headers, `length_or_zero` is the length; the members behind it
 * have no meaning there, but for SIEVE_SEGMENTS_LEFT_MASK. */
struct sieve_fragment {
    __u8 next;
    __u8 length_or_zero;
    __be16 offset;
    __be32 identification;
};

struct sieve_ports {
    __be16 source;
    __be16 destination;
};

struct sieve_parsed {
    struct sieve_key key;
    __u8 have;    /* enum sieve_field bits */
    __u8 outcome; /* enum sieve_outcome */
    /* Where the IP header begins, and how many bytes from there the upper header begins. `header` is 0 if
     * there is no upper header, or if either number does not fit. One byte each: on Linux 6.1 the stack is
     * full. */
    __u8 network;
    __u8 header;
    __u32 bytes; /* of the packet, as its hook counts them */
};

/* Notes where the upper header begins. No branch. */
static __always_inline void sieve_take_offsets(__u64 network, __u64 header, struct sieve_parsed* parsed) {
    parsed->network = network;
    parsed->header = header & sieve_ones_if(((header | network) - 256) >> 63);
}

/* True if the type of frame is a VLAN tag. */
static __always_inline int sieve_is_vlan(__be16 type) {
    return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD);
}

static __always_inline void sieve_take_protocol(__u8 proto, struct sieve_parsed* parsed) {
    parsed->have |= SIEVE_FIELD_PROTO;
    parsed->key.word[4] = sieve_transport_word(0, 0, proto);
}

static __always_inline void sieve_take_ports(const struct sieve_ports* ports, __u8 proto,
                                             struct sieve_parsed* parsed) {
    parsed->have |= SIEVE_FIELD_PORTS;
    parsed->key.word[4] =
        sieve_transport_word(bpf_ntohs(ports->source), bpf_ntohs(ports->destination), proto);
}

/* `end` is the packet's end. `available` is the number of bytes from the cursor on that belong to the IP
 * packet by the length that its header states. */
static __always_inline void sieve_parse_transport(void* cursor, void* end, __s64 available, __u8 proto,
                                                  struct sieve_parsed* parsed) {
    struct sieve_ports* ports = cursor;

    sieve_take_protocol(proto, parsed);
    parsed->outcome = SIEVE_OUTCOME_COMPLETE;
    if (!sieve_has_ports(proto)) return;
    if ((void*)(ports + 1) > end || available < (__s64)sizeof(*ports)) {
        parsed->outcome = SIEVE_OUTCOME_SHORT;
        return;
    }
    sieve_take_ports(ports, proto, parsed);
}

/*
 * The length that an IP header states. Zero means "longer than the field can tell" in packets that the stack
 * builds for segmentation (BIG TCP), and wherever `open_end` is negative. For such packets the result is
 * SIEVE_LONGEST_STATED, which is enough to make their ports part of them. The code has no branch: the
 * verifier would walk everything that follows once for each side.
 */
static __always_inline __u32 sieve_stated_length(SIEVE_CONTEXT* ctx, const struct sieve_parsed* parsed,
                                                 __be16 length, __s64 open_end) {
    __s64 stated = bpf_ntohs(length);
    __s64 lacks = (stated - 1) & (sieve_length_reserve(ctx, parsed->bytes) | open_end); /* both negative */

    SIEVE_KEEP(lacks);
    return stated | sieve_within((__u64)lacks >> 48, SIEVE_LONGEST_STATED);
}

/* Takes the addresses. True if the upper protocol's header follows, false for a later fragment. */
static __always_inline int sieve_take_ipv4(const struct iphdr* ip, struct sieve_parsed* parsed) {
    parsed->key.word[1] = sieve_v4_mapped(bpf_ntohl(ip->saddr));
    parsed->key.word[3] = sieve_v4_mapped(bpf_ntohl(ip->daddr));
    parsed->have = SIEVE_FIELD_ADDRESSES;
    if (!(ip->frag_off & bpf_htons(SIEVE_IPV4_OFFSET_MASK))) return 1;
    sieve_take_protocol(ip->protocol, parsed);
    parsed->outcome = SIEVE_OUTCOME_FRAGMENT;
    return 0;
}

static __always_inline void sieve_parse_ipv4(SIEVE_CONTEXT* ctx, void* cursor, void* end,
                                             struct sieve_parsed* parsed) {
    struct iphdr* ip = cursor;
    __u32 total;

    if ((void*)(ip + 1) > end) {
        parsed->outcome = SIEVE_OUTCOME_TRUNCATED;
        return;
    }
    if (*(__u8*)cursor != SIEVE_PLAIN_IPV4) {
        parsed->outcome = SIEVE_OUTCOME_SOURCE_ROUTE; /* until the options have been read (parse_deep.h) */
        return;
    }
    total = sieve_stated_length(ctx, parsed, ip->tot_len, 0);
    if (total < sizeof(*ip)) {
        parsed->outcome = SIEVE_OUTCOME_MALFORMED;
        return;
    }
    if (!sieve_take_ipv4(ip, parsed)) return;
    parsed->network = (__u64)cursor - (__u64)ctx->data;
    parsed->header = sizeof(*ip);
    sieve_parse_transport(ip + 1, end, (__s64)total - (__s64)sizeof(*ip), ip->protocol, parsed);
}

static __always_inline __u64 sieve_load_be64(const void* bytes) {
    return bpf_be64_to_cpu(*(const __be64*)bytes);
}

/* Whether an extension header's type is `wanted`. The result is a number and the code has no branch: the
 * verifier would walk the rest of the chain once for each side. */
static __always_inline __u64 sieve_extension_is(__u8 type, __u8 wanted) {
    return sieve_shift_right(1ULL << wanted, type) & 1;
}

/* Not zero if the header is a fragment header, of a fragment other than the first. A number, as above. */
static __always_inline __u64 sieve_is_later_fragment(__u8 type, const struct sieve_fragment* header) {
    return sieve_extension_is(type, SIEVE_NEXTHDR_FRAGMENT) *
           (header->offset & bpf_htons(SIEVE_IPV6_OFFSET_MASK));
}

/* Not zero if the header is a routing header, of whatever type, and the packet has stops before it (RFC 8200,
 * 4.4). A number, as above. */
static __always_inline __u64 sieve_is_on_route(__u8 type, const struct sieve_fragment* header) {
    return sieve_extension_is(type, SIEVE_NEXTHDR_ROUTING) *
           (header->offset & bpf_htons(SIEVE_SEGMENTS_LEFT_MASK));
}

/* Takes what a later fragment tells: its protocol, unless an extension header hides it. */
static __always_inline void sieve_take_later_fragment(__u8 next, struct sieve_parsed* parsed) {
    parsed->outcome = SIEVE_OUTCOME_FRAGMENT;
    if (!sieve_is_extension(next)) sieve_take_protocol(next, parsed);
}

/* The size of an extension header in bytes: 8 for a fragment header, (length + 2) * 4 for an authentication
 * header, (length + 1) * 8 for the others. The mask changes nothing; it tells the verifier the bound. */
static __always_inline __u64 sieve_extension_bytes(__u8 type, const struct sieve_fragment* header) {
    __u64 is_fragment = sieve_extension_is(type, SIEVE_NEXTHDR_FRAGMENT);
    __u64 is_auth = sieve_extension_is(type, SIEVE_NEXTHDR_AUTH);

    return sieve_within(((header->length_or_zero & (is_fragment - 1)) + 1 + is_auth) << (3 - is_auth), 4095);
}

static __always_inline void sieve_take_ipv6(const struct ipv6hdr* ip, struct sieve_parsed* parsed) {
    parsed->key.word[0] = sieve_load_be64(&ip->saddr);
    parsed->key.word[1] = sieve_load_be64((const void*)&ip->saddr + 8);
    parsed->key.word[2] = sieve_load_be64(&ip->daddr);
    parsed->key.word[3] = sieve_load_be64((const void*)&ip->daddr + 8);
    parsed->have = SIEVE_FIELD_ADDRESSES;
}

/*
 * The number of bytes behind the IPv6 header, by the length that it states. Before a hop-by-hop header, Linux
 * takes a length of zero to mean "all there is", with or without the jumbo payload option (ip6_rcv_core()).
 */
static __always_inline __s64 sieve_ipv6_payload(SIEVE_CONTEXT* ctx, const struct sieve_parsed* parsed,
                                                const struct ipv6hdr* ip) {
    return sieve_stated_length(ctx, parsed, ip->payload_len, (__s64)ip->nexthdr - 1 - SIEVE_NEXTHDR_HOP);
}

static __always_inline int sieve_may_be_discovery(const struct ipv6hdr* ip, __u8 type, __s64 available) {
    return type == IPPROTO_ICMPV6 && ip->hop_limit == SIEVE_ND_HOP_LIMIT && available >= 1;
}

static __always_inline int sieve_is_discovery(__u8 icmp_type) {
    return icmp_type >= SIEVE_ND_FIRST && icmp_type <= SIEVE_ND_LAST;
}

static __always_inline void sieve_set_discovery(struct sieve_parsed* parsed) {
    parsed->have = 0;
    parsed->outcome = SIEVE_OUTCOME_NEIGHBOUR;
}

/*
 * Parses the IPv6 packet at `offset`. This is a global function, so that the verifier walks the chain of
 * extension headers once and not once for each number of VLAN tags. The return value means nothing.
 */
__noinline int sieve_parse_ipv6(SIEVE_CONTEXT* ctx, struct sieve_parsed* parsed, __u32 offset) {
    void* end = (void*)(long)ctx->data_end;
    struct ipv6hdr* ip = (void*)(long)ctx->data + (offset & SIEVE_OFFSET_MASK);
    void* cursor = ip + 1;
    __s64 available;
    __u8 type;
    int i;

    if (!parsed) return 0; /* cannot happen, but the verifier asks */
    parsed->outcome = SIEVE_OUTCOME_TRUNCATED;
    if (cursor > end) return 0;
    parsed->outcome = SIEVE_OUTCOME_MALFORMED;
    if (ip->version != 6) return 0;
    sieve_take_ipv6(ip, parsed);
    parsed->outcome = SIEVE_OUTCOME_CUT_CHAIN; /* until the chain has been walked to its end */

    available = sieve_ipv6_payload(ctx, parsed, ip);
    type = ip->nexthdr;
    /* One turn more than the allowed headers: the last turn finds the upper protocol or gives up. */
    for (i = 0; i <= SIEVE_FAST_EXTENSIONS; i++) {
        struct sieve_fragment* header = cursor;
        __u64 bytes;

        if (!sieve_is_extension(type)) {
            if (sieve_may_be_discovery(ip, type, available)) {
                if (cursor + 1 > end) {
                    sieve_take_protocol(type, parsed);
                    parsed->outcome = SIEVE_OUTCOME_SHORT;
                    return 0;
                }
                if (sieve_is_discovery(*(__u8*)cursor)) {
                    sieve_set_discovery(parsed);
                    return 0;
                }
            }
            sieve_take_offsets(offset & SIEVE_OFFSET_MASK, ((__u64)cursor - (__u64)ip) & 0xffff, parsed);
            sieve_parse_transport(cursor, end, available, type, parsed);
            return 0;
        }
        /* No extension header is shorter than the fragment header's eight bytes. */
        if ((void*)(header + 1) > end || available < (__s64)sizeof(*header)) return 0;
        if (sieve_is_later_fragment(type, header)) {
            sieve_take_later_fragment(header->next, parsed);
            return 0;
        }
        if (sieve_is_on_route(type, header)) {
            parsed->outcome = SIEVE_OUTCOME_SOURCE_ROUTE; /* parse_deep.h reads the rest */
            return 0;
        }
        bytes = sieve_extension_bytes(type, header);
        type = header->next;
        cursor += bytes;
        available -= bytes;
        if (cursor > end || available < 0) return 0;
    }
    parsed->outcome = SIEVE_OUTCOME_LONG_CHAIN;
    return 0;
}

/*
 * Parses a packet that begins with its IP header. This is a global function, so that the verifier walks IPv4
 * here only once, and packets with an Ethernet header pay only for a branch. The return value means nothing.
 */
__noinline int sieve_parse_bare(SIEVE_CONTEXT* ctx, struct sieve_parsed* parsed) {
    void* data = (void*)(long)ctx->data;
    void* end = (void*)(long)ctx->data_end;
    __u8 version;

    if (!parsed) return 0; /* cannot happen, but the verifier asks */
    parsed->outcome = SIEVE_OUTCOME_TRUNCATED;
    if (data + 1 > end) return 0;
    version = *(__u8*)data >> 4;
    if (version == 4)
        sieve_parse_ipv4(ctx, data, end, parsed);
    else if (version == 6)
        sieve_parse_ipv6(ctx, parsed, 0);
    else
        parsed->outcome = SIEVE_OUTCOME_NON_IP;
    return 0;
}

/* Parses a packet that begins with an Ethernet header. */
static __always_inline void sieve_parse_ethernet(SIEVE_CONTEXT* ctx, struct sieve_parsed* parsed) {
    void* data = (void*)(long)ctx->data;
    void* end = (void*)(long)ctx->data_end;
    struct ethhdr* ethernet = data;
    void* cursor = ethernet + 1;
    __be16 type;
    int i;

    if (cursor > end) {
        parsed->outcome = SIEVE_OUTCOME_TRUNCATED;
        return;
    }
    type = ethernet->h_proto;
    for (i = 0; i < SIEVE_FAST_VLAN_TAGS && sieve_is_vlan(type); i++) {
        struct sieve_vlan_tag* tag = cursor;
        if ((void*)(tag + 1) > end) {
            parsed->outcome = SIEVE_OUTCOME_TRUNCATED;
            return;
        }
        type = tag->protocol;
        cursor = tag + 1;
    }
    if (type == bpf_htons(ETH_P_IP))
        sieve_parse_ipv4(ctx, cursor, end, parsed);
    else if (type == bpf_htons(ETH_P_IPV6))
        sieve_parse_ipv6(ctx, parsed, cursor - data);
    else if (type == bpf_htons(ETH_P_ARP))
        parsed->outcome = SIEVE_OUTCOME_ARP;
    else
        parsed->outcome = sieve_is_vlan(type) ? SIEVE_OUTCOME_DEEP_VLAN : SIEVE_OUTCOME_NON_IP;
}

/* Fills `parsed` for a packet of `bytes` bytes. If the outcome gives no key, `have` is zero. */
static __always_inline void sieve_parse(SIEVE_CONTEXT* ctx, __u32 bytes, struct sieve_parsed* parsed) {
    __builtin_memset(parsed, 0, sizeof(*parsed));
    parsed->bytes = bytes;
    if (SIEVE_UNLIKELY(sieve_link() == SIEVE_LINK_IP))
        sieve_parse_bare(ctx, parsed);
    else
        sieve_parse_ethernet(ctx, parsed);
}

#endif
