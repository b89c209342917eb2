/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Notes what the host, or a network behind it, begins: which packets that leave begin a flow, renew it and
 * end it. What answers somebody begins nothing: TCP's SYN-ACK and RST, ICMP's answers and errors, what a
 * server of UDP sends.
 */
#ifndef SIEVE_BPF_NOTE_H
#define SIEVE_BPF_NOTE_H

#include "flows.h"
#include "icmp.h"

#define SIEVE_TCP_FLAGS_AT 13
#define SIEVE_TCP_FIN 1
#define SIEVE_TCP_SYN 2
#define SIEVE_TCP_RST 4
#define SIEVE_TCP_ACK 16

/* Below it are the ports of servers. */
#define SIEVE_FIRST_USER_PORT 1024

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct sieve_note_counts);
} sieve_notes SEC(".maps");

volatile struct sieve_note_control sieve_note_control SEC(".data.note") = {.magic = SIEVE_FLOW_MAGIC};

static __always_inline __u32 sieve_link(void) {
    return sieve_note_control.link;
}

static __always_inline const struct sieve_flow_where* sieve_flow_where(void) {
    return (const struct sieve_flow_where*)&sieve_note_control.flows;
}

/* True during the time in which any TCP segment that leaves may begin its flow. */
static __always_inline int sieve_flow_learns(__u64 now) {
    const struct sieve_flow_head* head;
    __u32 zero = 0;
    void* memory = bpf_map_lookup_elem(&sieve_flows, &zero);

    if (!memory) return 0;
    head = bpf_map_lookup_elem(memory, &zero);
    return head && now < head->learn_until;
}

/* What a packet means for its flow. */
struct sieve_note {
    struct sieve_key key;
    __u32 event; /* enum sieve_flow_event */
    __u32 first;
    __u32 again;
    __u32 shares; /* whether the entry that flows between these addresses share is noted, too */
};

/*
 * Notes an event of a flow. Returns how many units the flow has to live if its entry was written, else 0. A
 * flow that lasts writes once in 4.3 s. Each store is a compare-and-swap: a CPU that loses a race changes
 * nothing, and no renewal overwrites another flow's entry. A global function, so that the verifier checks it
 * once.
 */
__noinline int sieve_flow_note(const struct sieve_key* key, __u32 event, __u32 first, __u32 again) {
    struct sieve_note_counts* counts;
    __u64 victim, other, found = ~0ULL, entry, next, now, left, state = 0, *at;
    struct sieve_flow_spot spot;
    __u32 zero = 0, i;

    if (!key || !sieve_flow_fetch(key, &spot)) return 0;
    now = sieve_flow_now();
    /* The first entry with this tag. No branch, as in sieve_flow_victim(). */
#pragma unroll
    for (i = SIEVE_FLOW_PLACES; i-- > 0;) {
        const __u64 differs = (sieve_flow_read(sieve_flow_at(&spot, i)) ^ spot.tag) >> SIEVE_FLOW_TAG_SHIFT;

        found ^= (found ^ i) & sieve_ones_if((differs - 1) >> 63);
        SIEVE_KEEP(found);
    }
    if (found < SIEVE_FLOW_PLACES) {
        at = found & SIEVE_FLOW_ENTRIES ? spot.line[1]->entry : spot.line[0]->entry;
        at += found & (SIEVE_FLOW_ENTRIES - 1);
        entry = sieve_flow_read(at);
        if (!sieve_flow_is(entry, spot.tag)) return 0; /* another CPU has just given it away */
        next = sieve_flow_next(entry, event, first, again, now);
        if (next == entry || __sync_val_compare_and_swap(at, entry, next) != entry) return 0;
        return (next - now) & SIEVE_FLOW_TIME_MASK;
    }
    if (event == SIEVE_FLOW_GOES_ON) {
        if (!sieve_flow_learns(now)) return 0;
        first = again;
        state = SIEVE_FLOW_ESTABLISHED;
    } else if (event == SIEVE_FLOW_ENDS || event == SIEVE_FLOW_RESETS) {
        return 0;
    }
    counts = bpf_map_lookup_elem(&sieve_notes, &zero);
    if (!counts) return 0; /* cannot happen: the array has one entry */
    victim = sieve_flow_victim(spot.line[0], now, 0);
    other = sieve_flow_victim(spot.line[1], now, SIEVE_FLOW_ENTRIES);
    if (other >> 4 < victim >> 4) victim = other;
    /* What is learnt as established replaces none that lives as long. */
    if (victim >> 4 > SIEVE_FLOW_NOT_FREE + (__u64)first - (state != 0)) {
        counts->refused++;
        return 0;
    }
    at = victim & SIEVE_FLOW_ENTRIES ? spot.line[1]->entry : spot.line[0]->entry;
    at += victim & (SIEVE_FLOW_ENTRIES - 1);
    entry = sieve_flow_read(at);
    next = sieve_flow_entry(spot.tag, state, now, first);
    /* Another CPU may have taken it since it was chosen: what lives longer now stays. */
    left = victim >> 4 > SIEVE_FLOW_NOT_FREE ? (victim >> 4) - SIEVE_FLOW_NOT_FREE : 0;
    if (sieve_flow_left(entry, now) > left) {
        counts->lost++;
        return 0;
    }
    if (__sync_val_compare_and_swap(at, entry, next) != entry) {
        counts->lost++;
        return 0;
    }
    counts->begun++;
    counts->evicted += victim >> 4 > SIEVE_FLOW_NOT_FREE;
    return first;
}

/* False if the segment begins, renews and ends nothing. */
static __always_inline int sieve_note_tcp(SIEVE_CONTEXT* ctx, const struct sieve_parsed* parsed,
                                          struct sieve_note* note) {
    const __u32 at = sieve_upper_at(parsed) + SIEVE_TCP_FLAGS_AT;
    const __u8* direct = (const __u8*)(long)ctx->data + at;
    __u8 flags;

    if (!parsed->header) return 0;
    /* Nearly always there: no call. */
    if (SIEVE_LIKELY((const void*)(direct + 1) <= (const void*)(long)ctx->data_end))
        flags = *direct;
    else if (sieve_load(ctx, at, &flags, sizeof(flags)))
        return 0;
    note->first = SIEVE_FLOW_TCP_NEW;
    note->again = SIEVE_FLOW_TCP_ESTABLISHED;
    if (flags & SIEVE_TCP_RST) {
        note->event = SIEVE_FLOW_RESETS;
    } else if (flags & SIEVE_TCP_SYN) {
        note->event = SIEVE_FLOW_BEGINS;
        return !(flags & SIEVE_TCP_ACK); /* the peer began */
    } else if (flags & SIEVE_TCP_FIN) {
        note->event = SIEVE_FLOW_ENDS;
    } else {
        /* No peer sends fragments before it has sent a SYN-ACK. */
        note->event = SIEVE_FLOW_GOES_ON;
        note->shares = 1;
    }
    return 1;
}

/* What a UDP packet that leaves may do. */
enum sieve_udp_note {
    SIEVE_UDP_BEGINS_NOTHING,
    SIEVE_UDP_BEGINS, /* a flow that later packets do not renew */
    SIEVE_UDP_LASTS,  /* a flow that they renew */
};

/*
 * A connected socket has named its peer. One that is not connected may be a server that answers, or a client
 * such as a resolver: the ports must tell. With the same port at both ends, as of NTP, neither is the server.
 * A socket whose port the kernel chose is a client's. Of packets that are forwarded, only the ports are
 * known. Where a server's answer may look like a client's question, since a stranger chose his port, answers
 * do not keep the flow.
 */
static __always_inline int sieve_udp_note(SIEVE_CONTEXT* ctx, __u16 sport, __u16 dport) {
    struct bpf_sock* socket = ctx->sk;
    int own = 0;

    if (socket) {
        socket = bpf_sk_fullsock(socket);
        /* A tunnel's packet may belong to the socket of what is inside. */
        if (socket && socket->protocol == IPPROTO_UDP && socket->src_port == sport) {
            if (socket->dst_port) return SIEVE_UDP_LASTS;
            own = 1;
        }
    }
    if (sport == dport) return SIEVE_UDP_BEGINS;
    if (sport < SIEVE_FIRST_USER_PORT) return SIEVE_UDP_BEGINS_NOTHING;
    if (!own) return SIEVE_UDP_LASTS;
    if (sport >= sieve_note_control.first_port && sport <= sieve_note_control.last_port)
        return SIEVE_UDP_LASTS;
    return dport < SIEVE_FIRST_USER_PORT ? SIEVE_UDP_BEGINS : SIEVE_UDP_BEGINS_NOTHING;
}

static __always_inline int sieve_note_udp(SIEVE_CONTEXT* ctx, struct sieve_note* note) {
    const __u64 word = note->key.word[4];
    int may;

    note->first = SIEVE_FLOW_UDP_NEW;
    note->again = SIEVE_FLOW_UDP_STREAM;
    note->shares = 1;
    if (sieve_dhcp_key(word, &note->key)) {
        note->again = SIEVE_FLOW_UDP_NEW;
        note->shares = 0;
        return 1;
    }
    may = sieve_udp_note(ctx, word >> SIEVE_SPORT_SHIFT, word >> SIEVE_DPORT_SHIFT);
    if (may == SIEVE_UDP_BEGINS) note->again = 0;
    return may != SIEVE_UDP_BEGINS_NOTHING;
}

/* Echo requests only. */
static __always_inline int sieve_note_icmp(SIEVE_CONTEXT* ctx, const struct sieve_parsed* parsed,
                                           struct sieve_note* note) {
    const __u8 proto = note->key.word[4];
    struct sieve_icmp icmp;

    if (!parsed->header || sieve_load(ctx, sieve_upper_at(parsed), &icmp, sizeof(icmp))) return 0;
    if (icmp.type != (proto == IPPROTO_ICMP ? SIEVE_ICMP_ECHO : SIEVE_ICMPV6_ECHO)) return 0;
    note->key.word[4] = sieve_transport_word(bpf_ntohs(icmp.id), 0, proto);
    note->first = note->again = SIEVE_FLOW_ECHO;
    note->shares = 1;
    return 1;
}

/* Notes a packet that leaves. Later fragments say nothing. */
static __always_inline void sieve_note_packet(SIEVE_CONTEXT* ctx, const struct sieve_parsed* parsed) {
    struct sieve_note note = {.event = SIEVE_FLOW_SEEN, .first = SIEVE_FLOW_OTHER, .again = SIEVE_FLOW_OTHER};
    struct sieve_note_counts* counts;
    __u32 zero = 0, left;
    __u8 proto;

    counts = bpf_map_lookup_elem(&sieve_notes, &zero);
    if (!counts) return; /* cannot happen: the array has one entry */
    counts->packets++;
    if (parsed->outcome != SIEVE_OUTCOME_COMPLETE) return;
    note.key = parsed->key;
    proto = parsed->key.word[4];
    if (proto == SIEVE_PORTED_TCP) {
        if (!sieve_note_tcp(ctx, parsed, &note)) return;
    } else if (proto == SIEVE_PORTED_UDP) {
        if (!sieve_note_udp(ctx, &note)) return;
    } else if (proto == sieve_icmp_protocol(&parsed->key)) {
        if (!sieve_note_icmp(ctx, parsed, &note)) return;
    } else if (sieve_has_ports(proto) && proto != SIEVE_PORTED_SCTP) {
        note.shares = 1;
    } else {
        note.key.word[4] = sieve_flow_pair_word(proto);
    }
    left = sieve_flow_note(&note.key, note.event, note.first, note.again);
    if (!left || !note.shares) return;
    note.key.word[4] = sieve_flow_pair_word(proto);
    sieve_flow_note(&note.key, SIEVE_FLOW_SHARED, left, left);
}

#endif
