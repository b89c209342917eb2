/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The memory of flows that this host, or a network behind it, began. A packet that the filter is about to
 * drop passes if it answers one of them.
 *
 * It is an array map of pages of 4 KiB. Page 0 begins with the head; each other page has 64 lines of eight
 * entries. A flow has a page and two lines of that page, by its hash, and may be in any entry of either line.
 * Both lines are in one page since a packet then asks for one value of the map and one page's address: on
 * some processors each call of a helper costs as much as a miss of a cache.
 *
 *    63                              24 23    22 21                   0
 *   |  tag: 40 bits of the hash, odd   | state  | when it expires      |
 *
 * The key of a flow is that of the host's own packets: its source is the host, or a host behind it. An entry
 * stores when it expires and not when it was seen. So a reader needs no table of idle limits, and the entry
 * that expires first is the right one to replace: first those that have expired, then half-open and
 * unanswered flows, established connections last. Time is in units of 2^32 ns (4.3 s) of CLOCK_MONOTONIC; it
 * comes round after 208 days.
 *
 * Only packets that leave write (bpf/note.h). Three rules keep a flood from cutting what is established:
 * a flow goes into the line with more free entries; if neither has any, it may replace the entry that expires
 * first; and a new flow never replaces an entry that would outlive it. Flows begin with a minute or more, and
 * only one that lasts gets more than a minute (but for protocols without ports), so that what has only begun
 * keeps no new flow out.
 */
#ifndef SIEVE_FLOW_H
#define SIEVE_FLOW_H

#include <sieve/hash.h>

#define SIEVE_FLOW_ENTRIES 8 /* of a line */
#define SIEVE_FLOW_LINES 2   /* of a flow */
#define SIEVE_FLOW_PLACES (SIEVE_FLOW_ENTRIES * SIEVE_FLOW_LINES)

#define SIEVE_FLOW_TIME_BITS 22
#define SIEVE_FLOW_TIME_MASK ((1ULL << SIEVE_FLOW_TIME_BITS) - 1)
#define SIEVE_FLOW_CLOCK_SHIFT 32 /* from nanoseconds to units of time */

/* The states of a flow. */
#define SIEVE_FLOW_ESTABLISHED (1ULL << 22) /* TCP: the host has answered the peer; others: a stream */
#define SIEVE_FLOW_CLOSING (1ULL << 23)     /* TCP: the host has sent a FIN */
#define SIEVE_FLOW_TAG_SHIFT 24

/* At least so many seconds, in units: the present unit may be at its end. */
#define SIEVE_FLOW_UNITS(seconds) (((seconds)*1000000000ULL >> SIEVE_FLOW_CLOCK_SHIFT) + 2)

/* How long a flow lives after the host's last packet, in units. Packets of the peer do not renew it. */
#define SIEVE_FLOW_TCP_NEW SIEVE_FLOW_UNITS(60)
#define SIEVE_FLOW_TCP_ESTABLISHED SIEVE_FLOW_UNITS(7440) /* RFC 5382: not less than 2 h 4 min */
#define SIEVE_FLOW_TCP_CLOSING SIEVE_FLOW_UNITS(120)
#define SIEVE_FLOW_TCP_RESET SIEVE_FLOW_UNITS(10)
#define SIEVE_FLOW_UDP_NEW SIEVE_FLOW_UNITS(60)
#define SIEVE_FLOW_UDP_STREAM SIEVE_FLOW_UNITS(180)
#define SIEVE_FLOW_ECHO SIEVE_FLOW_UNITS(60) /* RFC 5508: not less than 60 s */
#define SIEVE_FLOW_OTHER SIEVE_FLOW_UNITS(600)
#define SIEVE_FLOW_LONGEST SIEVE_FLOW_TCP_ESTABLISHED

/* "SVF2": the layout. Raised with every change of what is in a memory's pages, or of a noting program's maps.
 */
#define SIEVE_FLOW_MAGIC 0x32465653

/* What finds a flow's place. Each program has a copy of its memory's, so that it need not ask the memory. */
struct sieve_flow_where {
    __u64 hash_key[SIEVE_HASH_KEY_WORDS];
    __u32 pages; /* without the head's */
    __u32 reserved;
};

/* The first page begins with it. Only a controller writes there. */
struct sieve_flow_head {
    struct sieve_flow_where where;
    __u32 magic;
    __u32 learn_until; /* in units: until then any TCP segment that leaves may begin its flow */
    __u32 max_flows;   /* how many the memory was made for */
    __u32 reserved;
};

struct sieve_flow_line {
    __u64 entry[SIEVE_FLOW_ENTRIES];
};

#define SIEVE_FLOW_PAGE_LINES 64 /* a power of two */
struct sieve_flow_page {
    struct sieve_flow_line line[SIEVE_FLOW_PAGE_LINES];
};

/* Where a flow may be. */
struct sieve_flow_place {
    __u64 tag;
    __u32 page;                   /* of the map: from 1 on */
    __u32 line[SIEVE_FLOW_LINES]; /* of the page */
};

/* The lines' numbers differ in their lowest bit at least, so that each flow has two. */
SIEVE_INLINE struct sieve_flow_place sieve_flow_locate(const struct sieve_flow_where* where,
                                                       const struct sieve_key* key) {
    const struct sieve_hash hash = sieve_hash_key(key, where->hash_key, SIEVE_FIELD_ALL);
    const __u32 rest = (__u32)(hash.locate >> 32);
    /* No tag is zero, so an empty entry is no flow's. */
    struct sieve_flow_place place = {hash.test | 1ULL << SIEVE_FLOW_TAG_SHIFT, 0, {0, 0}};

    place.page = 1 + sieve_reduce((__u32)hash.locate, where->pages);
    place.line[0] = rest & (SIEVE_FLOW_PAGE_LINES - 1);
    place.line[1] = ((rest / SIEVE_FLOW_PAGE_LINES | 1) ^ rest) & (SIEVE_FLOW_PAGE_LINES - 1);
    return place;
}

/* The key in the other direction: that of an answer, of a packet's key; or that of the host's own packets, of
 * an answer's. */
SIEVE_INLINE void sieve_flow_reverse(const struct sieve_key* key, struct sieve_key* reverse) {
    const __u64 word = key->word[4];

    reverse->word[0] = key->word[2];
    reverse->word[1] = key->word[3];
    reverse->word[2] = key->word[0];
    reverse->word[3] = key->word[1];
    reverse->word[4] = (word & SIEVE_PROTO_MASK) |
                       (word & SIEVE_SPORT_MASK) >> (SIEVE_SPORT_SHIFT - SIEVE_DPORT_SHIFT) |
                       (word & SIEVE_DPORT_MASK) << (SIEVE_SPORT_SHIFT - SIEVE_DPORT_SHIFT);
}

/*
 * Word 4 of the entry that all flows of a protocol between two addresses share. It answers for what has no
 * ports: later fragments, and protocols without ports or with several addresses at each end (SCTP). The
 * protocol is in place of a port, so that no packet's word 4 is the same.
 */
SIEVE_INLINE __u64 sieve_flow_pair_word(__u8 proto) {
    return sieve_transport_word(0, proto, 0);
}

/* Whether the entry has the tag. */
SIEVE_INLINE int sieve_flow_is(__u64 entry, __u64 tag) {
    return !((entry ^ tag) >> SIEVE_FLOW_TAG_SHIFT);
}

/* How many units an entry has to live; 0: it has expired, or is empty: no tag's lowest bit is 0. */
SIEVE_INLINE __u64 sieve_flow_left(__u64 entry, __u64 now) {
    const __u64 left = (entry - now) & SIEVE_FLOW_TIME_MASK;
    return left & sieve_ones_if((left - SIEVE_FLOW_LONGEST - 1) >> 63 & entry >> SIEVE_FLOW_TAG_SHIFT);
}

SIEVE_INLINE __u64 sieve_flow_entry(__u64 tag, __u64 state, __u64 now, __u64 limit) {
    return (tag >> SIEVE_FLOW_TAG_SHIFT << SIEVE_FLOW_TAG_SHIFT) | state |
           ((now + limit) & SIEVE_FLOW_TIME_MASK);
}

/*
 * The entry of a line that a new flow may take: its rank, and its number in the lowest four bits, from
 * `number` on. The rank says which entry is better to take, a lower one. If one is free (empty or expired),
 * it is how many are in use; else SIEVE_FLOW_NOT_FREE and how many units the entry that expires first has to
 * live. There is no branch: with branches, the verifier would walk a million instructions and give up.
 */
#define SIEVE_FLOW_NOT_FREE 16
SIEVE_INLINE __u64 sieve_flow_victim(const struct sieve_flow_line* line, __u64 now, __u64 number) {
    __u64 least = 1ULL << 40, used = 0, full;
    __u32 i;

#pragma GCC unroll 8
    for (i = 0; i < SIEVE_FLOW_ENTRIES; i++) {
        __u64 left = sieve_flow_left(*(const volatile __u64*)&line->entry[i], now);
        __u64 is_used = 0 - left;

        SIEVE_KEEP(is_used); /* else clang makes a branch of it */
        used += is_used >> 63;
        left = left << 4 | (number + i);
        least ^= (least ^ left) & sieve_ones_if((left - least) >> 63);
        SIEVE_KEEP(least);
    }
    full = SIEVE_FLOW_ENTRIES - 1 - used;
    SIEVE_KEEP(full);
    full = sieve_ones_if(full >> 63);
    return least + (((SIEVE_FLOW_NOT_FREE & full) | (used & ~full)) << 4);
}

/* What a packet that leaves does to its flow. */
enum sieve_flow_event {
    SIEVE_FLOW_BEGINS,  /* TCP: a SYN */
    SIEVE_FLOW_GOES_ON, /* TCP: any other segment */
    SIEVE_FLOW_ENDS,    /* TCP: a FIN */
    SIEVE_FLOW_RESETS,  /* TCP: a RST */
    SIEVE_FLOW_SEEN,    /* any packet of another protocol; the first one begins the flow */
    SIEVE_FLOW_SHARED,  /* for the entry of a pair of addresses: a flow of theirs was written */
};

/*
 * What becomes of the flow's entry. `first` and `again` are the limits of a flow that begins and of one that
 * lasts. With 0 for `again`, SIEVE_FLOW_SEEN renews none. The result is the same entry if there is nothing to
 * write, which is so for all but the first packet in a unit of time.
 */
SIEVE_INLINE __u64 sieve_flow_next(__u64 entry, __u32 event, __u64 first, __u64 again, __u64 now) {
    const __u64 left = sieve_flow_left(entry, now);

    switch (event) {
    case SIEVE_FLOW_BEGINS:
        return sieve_flow_entry(entry, 0, now, first);
    case SIEVE_FLOW_GOES_ON:
        if (entry & SIEVE_FLOW_CLOSING)
            return sieve_flow_entry(entry, SIEVE_FLOW_CLOSING, now, SIEVE_FLOW_TCP_CLOSING);
        return sieve_flow_entry(entry, SIEVE_FLOW_ESTABLISHED, now, again);
    case SIEVE_FLOW_ENDS:
        return sieve_flow_entry(entry, SIEVE_FLOW_CLOSING, now, SIEVE_FLOW_TCP_CLOSING);
    case SIEVE_FLOW_RESETS:
        if (left <= SIEVE_FLOW_TCP_RESET) return entry;
        return sieve_flow_entry(entry, entry & SIEVE_FLOW_CLOSING, now, SIEVE_FLOW_TCP_RESET);
    case SIEVE_FLOW_SEEN:
        if (!left) return sieve_flow_entry(entry, 0, now, first);
        if (!again || (!(entry & SIEVE_FLOW_ESTABLISHED) && left == first)) return entry;
        return sieve_flow_entry(entry, SIEVE_FLOW_ESTABLISHED, now, again);
    default: /* SIEVE_FLOW_SHARED */
        return left < first ? sieve_flow_entry(entry, 0, now, first) : entry;
    }
}

/* What a noting program has counted, for each CPU. */
struct sieve_note_counts {
    __u64 packets; /* that it saw */
    __u64 begun;   /* entries made */
    __u64 evicted; /* of these, in place of an entry that had not expired */
    __u64 refused; /* entries not made: both lines were full of entries that would outlive it */
    __u64 lost;    /* entries not made: another CPU was faster; the next packet of the flow tries again */
    __u64 reserved[3];
};

/* What a controller tells a noting program, in its map SIEVE_MAP_NOTE. */
struct sieve_note_control {
    __u32 magic; /* SIEVE_FLOW_MAGIC, which also is the version: one of another layout is replaced */
    __u32 link;  /* enum sieve_link: of the interface that the program is attached to */
    /* The ports that the kernel gives to sockets that ask for none (net.ipv4.ip_local_port_range). */
    __u32 first_port;
    __u32 last_port;
    __u32 memory_id; /* the controllers' note: the flow memory's map in sieve_flows; 0: none */
    __u32 reserved;
    struct sieve_flow_where flows; /* of that memory */
};

#endif
