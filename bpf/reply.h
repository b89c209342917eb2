/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does a packet that is about to be dropped answer a flow that the host, or a network behind it, began? Only
 * such packets come here. Nothing is written but this CPU's own notes: a question about a quoted packet takes
 * nothing from a set's limit and leaves no mark on an entry, since whoever forges one never sent that packet.
 *
 *   TCP, UDP, DCCP, UDP-Lite   the flow by addresses, ports and protocol
 *   DHCP, DHCPv6               from any server
 *   echo                       by addresses and identifier
 *   ICMP errors                by the packet that they quote
 *   later fragments            by addresses and protocol: without the first fragment, nobody can use them
 *   SCTP and all others        by addresses and protocol
 */
#ifndef SIEVE_BPF_REPLY_H
#define SIEVE_BPF_REPLY_H

#include "answer.h"
#include "flows.h"
#include "icmp.h"
#include "maps.h"

enum sieve_reply {
    SIEVE_REPLY_NO,
    SIEVE_REPLY_YES,
    SIEVE_REPLY_ASKS, /* an error about a packet of a flow that the peer began: sieve_quoted says which packet
                         to ask the sets about */
};

/* The packet that the peer of a quoted packet sends, and what the sets say about it. */
struct sieve_quoted {
    __u32 is_asked; /* not zero while the sets are asked: the question leaves no mark on an entry */
    __u32 reserved;
    struct sieve_parsed parsed;
    struct sieve_answer answer;
    struct sieve_stats stats; /* what the sets count then; nobody reads it */
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_quoted) == SIEVE_QUOTED_BYTES, "the map's values");

/* A quoted packet, as the host sent it. */
struct sieve_quote {
    struct sieve_key key;
    __u8 have;  /* enum sieve_field bits */
    __u8 begun; /* it may belong to a flow that the host began */
    __u8 proto;
    __u8 reserved[5];
};

/* True if an ICMP type is that of an error: unreachable, too big, time exceeded, parameter problem. A
 * redirect is none. */
static __always_inline int sieve_is_icmp_error(__u8 type, int v4) {
    return v4 ? type == 3 || type == 11 || type == 12 : type >= 1 && type <= 4;
}

/* Reads the quoted packet's upper header. */
static __always_inline int sieve_quoted_upper(SIEVE_CONTEXT* ctx, __u32 at, __u8 proto, int later,
                                              struct sieve_quote* quote) {
    struct sieve_icmp icmp; /* its first four bytes serve as ports */
    const __u8 icmp_protocol = sieve_icmp_protocol(&quote->key);

    quote->have = SIEVE_FIELD_ADDRESSES | SIEVE_FIELD_PROTO;
    quote->begun = 1;
    quote->proto = proto;
    quote->key.word[4] = sieve_flow_pair_word(proto);
    if (later || (!sieve_has_ports(proto) && proto != icmp_protocol)) return 1;
    /* RFC 792: at least eight bytes are quoted. */
    if (sieve_load(ctx, at, &icmp, sizeof(icmp))) return 0;
    if (proto == icmp_protocol) {
        /* Errors are never about errors; what is no echo request was an answer. */
        quote->begun = icmp.type == (proto == IPPROTO_ICMP ? SIEVE_ICMP_ECHO : SIEVE_ICMPV6_ECHO);
        quote->key.word[4] = sieve_transport_word(bpf_ntohs(icmp.id), 0, proto);
        return 1;
    }
    quote->have |= SIEVE_FIELD_PORTS;
    quote->key.word[4] = sieve_transport_word(bpf_ntohs(*(__be16*)&icmp), bpf_ntohs(icmp.checksum), proto);
    return 1;
}

static __always_inline int sieve_quoted_ipv4(SIEVE_CONTEXT* ctx, __u32 at, struct sieve_quote* quote) {
    struct iphdr ip __attribute__((aligned(8)));

    if (sieve_load(ctx, at, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl < 5) return 0;
    quote->key.word[0] = quote->key.word[2] = 0;
    quote->key.word[1] = sieve_v4_mapped(bpf_ntohl(ip.saddr));
    quote->key.word[3] = sieve_v4_mapped(bpf_ntohl(ip.daddr));
    return sieve_quoted_upper(ctx, at + ip.ihl * 4, ip.protocol,
                              (ip.frag_off & bpf_htons(SIEVE_IPV4_OFFSET_MASK)) != 0, quote);
}

/* Of extension headers, only a fragment header is read. */
static __always_inline int sieve_quoted_ipv6(SIEVE_CONTEXT* ctx, __u32 at, struct sieve_quote* quote) {
    struct ipv6hdr ip __attribute__((aligned(8)));
    struct sieve_fragment fragment = {};
    __u8 proto;

    if (sieve_load(ctx, at, &ip, sizeof(ip)) || ip.version != 6) return 0;
    quote->key.word[0] = sieve_load_be64(&ip.saddr);
    quote->key.word[1] = sieve_load_be64((void*)&ip.saddr + 8);
    quote->key.word[2] = sieve_load_be64(&ip.daddr);
    quote->key.word[3] = sieve_load_be64((void*)&ip.daddr + 8);
    proto = ip.nexthdr;
    at += sizeof(ip);
    if (proto == SIEVE_NEXTHDR_FRAGMENT) {
        if (sieve_load(ctx, at, &fragment, sizeof(fragment))) return 0;
        proto = fragment.next;
        at += sizeof(fragment);
    }
    return sieve_quoted_upper(ctx, at, proto, (fragment.offset & bpf_htons(SIEVE_IPV6_OFFSET_MASK)) != 0,
                              quote);
}

/* Reads the packet that an error quotes. False if it is not one that the error's target may have sent. A
 * global function: its stack leaves before the memory is asked. */
__noinline int sieve_read_quote(SIEVE_CONTEXT* ctx, const struct sieve_parsed* parsed,
                                struct sieve_quote* quote) {
    __u32 at;

    if (!parsed || !quote) return 0; /* cannot happen, but the verifier asks */
    at = sieve_upper_at(parsed) + sizeof(struct sieve_icmp);
    if (!(sieve_is_ipv4(&parsed->key) ? sieve_quoted_ipv4(ctx, at, quote)
                                      : sieve_quoted_ipv6(ctx, at, quote)))
        return 0;
    return quote->key.word[0] == parsed->key.word[2] && quote->key.word[1] == parsed->key.word[3];
}

/* The question to the sets about the peer's packets of the quoted packet's flow. */
static __always_inline int sieve_prepare_question(const struct sieve_quote* quote, __u32 bytes) {
    struct sieve_quoted* quoted;
    __u32 zero = 0;

    quoted = bpf_map_lookup_elem(&sieve_quoted, &zero);
    if (!quoted) return SIEVE_REPLY_NO;
    __builtin_memset(&quoted->parsed, 0, sizeof(quoted->parsed));
    __builtin_memset(&quoted->answer, 0, sizeof(quoted->answer));
    /* A full purse pays for the question: the set's account is for packets of its members. */
    __builtin_memset(quoted->stats.purse, 0xff, sizeof(quoted->stats.purse));
    sieve_flow_reverse(&quote->key, &quoted->parsed.key);
    if (!(quote->have & SIEVE_FIELD_SPORT))
        quoted->parsed.key.word[4] = sieve_transport_word(0, 0, quote->proto);
    quoted->parsed.have = quote->have;
    quoted->parsed.bytes = bytes;
    return SIEVE_REPLY_ASKS;
}

__noinline int sieve_is_icmp_reply(SIEVE_CONTEXT* ctx, const struct sieve_parsed* parsed) {
    struct sieve_quote quote = {};
    struct sieve_icmp icmp;
    __u64 word;
    int v4;

    if (!parsed || !parsed->header) return SIEVE_REPLY_NO;
    v4 = sieve_is_ipv4(&parsed->key);
    if (sieve_load(ctx, sieve_upper_at(parsed), &icmp, sizeof(icmp))) return SIEVE_REPLY_NO;
    if (icmp.type == (v4 ? SIEVE_ICMP_ECHO_REPLY : SIEVE_ICMPV6_ECHO_REPLY)) {
        sieve_flow_reverse(&parsed->key, &quote.key);
        quote.key.word[4] |= sieve_transport_word(bpf_ntohs(icmp.id), 0, 0);
        return sieve_flow_find(&quote.key);
    }
    if (!sieve_is_icmp_error(icmp.type, v4) || !sieve_read_quote(ctx, parsed, &quote)) return SIEVE_REPLY_NO;
    word = quote.key.word[4];
    if (quote.proto == SIEVE_PORTED_SCTP) quote.key.word[4] = sieve_flow_pair_word(SIEVE_PORTED_SCTP);
    if (quote.begun && sieve_flow_find(&quote.key)) return SIEVE_REPLY_YES;
    quote.key.word[4] = word;
    return sieve_prepare_question(&quote, parsed->bytes);
}

/*
 * What the packet is, if the set that drops it, with these flags, does not keep replies out (enum
 * sieve_reply). A global function: only packets about to be dropped come here.
 */
__noinline int sieve_is_reply(SIEVE_CONTEXT* ctx, const struct sieve_parsed* parsed, __u32 flags) {
    struct sieve_key key, dhcp;
    __u8 proto;

    if (!parsed || flags & SIEVE_ENTRY_KEEPS_REPLIES_OUT || !(parsed->have & SIEVE_FIELD_PROTO))
        return SIEVE_REPLY_NO;
    proto = parsed->key.word[4];
    sieve_flow_reverse(&parsed->key, &key);
    if (parsed->outcome == SIEVE_OUTCOME_COMPLETE) {
        if (proto == sieve_icmp_protocol(&key)) return sieve_is_icmp_reply(ctx, parsed);
        if (!sieve_has_ports(proto) || proto == SIEVE_PORTED_SCTP)
            key.word[4] = sieve_flow_pair_word(proto);
        else if (sieve_dhcp_key(key.word[4], &dhcp))
            key = dhcp;
    } else if (parsed->outcome == SIEVE_OUTCOME_FRAGMENT) {
        key.word[4] = sieve_flow_pair_word(proto);
    } else {
        return SIEVE_REPLY_NO;
    }
    return sieve_flow_is_noted(&key); /* not by a call more */
}

#endif
