/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the controller and the running program share: which sets are asked, in which order, what a match does,
 * and what was counted. All of it is in the program's maps; the controller keeps no file of its own.
 *
 * Two banks make every change atomic. The program reads `active` once for each packet and then uses only that
 * bank. The controller fills the idle bank (policy and map indices), then flips `active`. It waits for a
 * grace period before it writes to the bank that was active, so that no packet ever sees half of a change.
 * Then it makes that bank equal to the active one: at rest both are the same, and `changing` is zero.
 *
 * A change can be on probation: `active` then holds a deadline beside the bank's number. From that moment on
 * packets read the other bank, which still holds the table from before the change, unless a controller has
 * removed the deadline. No process takes part in that.
 */
#ifndef SIEVE_POLICY_H
#define SIEVE_POLICY_H

#include <sieve/condition.h>
#include <sieve/flow.h>
#include <sieve/image.h>
#include <sieve/joint.h>
#include <sieve/limit.h>

/*
 * Raised with every change of this file, and of what a packet reads of an image. The controller refuses a
 * program with another number.
 */
#define SIEVE_ABI 11

#define SIEVE_MAX_SETS 16
#define SIEVE_BANKS 2
#define SIEVE_NAME_BYTES 32

/*
 * Slots. A set in force has one: it names the set's counters and, in each bank, its map index. There are
 * twice as many slots as sets, so that even a wholly new table finds slots that no packet has used since the
 * last grace period. Their counters do not change, so a new set's counts start at exactly zero.
 */
#define SIEVE_SLOTS (2 * SIEVE_MAX_SETS)

/*
 * The maps of a loaded program, by their names without "sieve_": those that every controller opens, and those
 * that only few changes need. The control block has one more map. `bpftool map` shows these names.
 */
#define SIEVE_OPEN_MAPS(X) X(sets) X(stats)
#define SIEVE_RARE_MAPS(X)                                                                                   \
    X(exact) X(inserted) X(joint) X(devices) X(cpus) X(events) X(sketches) X(accounts) X(flows) X(quoted)
#define SIEVE_MAP_NAME(map) "sieve_" #map
#define SIEVE_MAP_CONTROL ".data.sieve"

enum sieve_action {
    SIEVE_ACTION_DROP = 0,
    SIEVE_ACTION_PASS = 1,
    SIEVE_ACTION_COUNT = 2, /* count the hit and ask the next set */
    /* The default action up to the slot's limit (sieve/limit.h), drop over it. The target is the rate. */
    SIEVE_ACTION_LIMIT = 3,
    /* From here on: redirect to the entry's target; the default action if the target does not exist. */
    SIEVE_ACTION_REDIRECT_DEVICE = 4, /* the target is an interface's index */
    SIEVE_ACTION_REDIRECT_CPU = 5,    /* the target is a CPU's number; at the XDP hook only */
};
#define SIEVE_ACTION_FIRST_REDIRECT SIEVE_ACTION_REDIRECT_DEVICE

/*
 * What becomes of a packet, at any hook. The numbers are those of XDP (enum xdp_action), so that the XDP hook
 * need not translate them.
 */
enum sieve_verdict {
    SIEVE_VERDICT_DROP = 1,
    SIEVE_VERDICT_PASS = 2,
    SIEVE_VERDICT_REDIRECT = 4,
};

/* What an interface's packets begin with. */
enum sieve_link {
    SIEVE_LINK_ETHERNET = 0,
    SIEVE_LINK_IP = 1, /* the IP header itself: tun, WireGuard, PPP, tunnels of IP in IP */
};

/* At most this many packets wait for a CPU, for each table. */
#define SIEVE_CPU_QUEUE 2048

struct sieve_counter {
    __u64 packets;
    __u64 bytes;
};

/* Packets that a set with verification counted. */
struct sieve_verified {
    __u64 non_members; /* packets whose key was asked for and is no member */
    __u64 avoided;     /* of these, packets that matched the filter: false positives */
};

/*
 * What became of a packet's parsing. Every packet has exactly one.
 *
 * From SIEVE_OUTCOME_FIRST_UNREADABLE on, the outcomes are the reasons why a packet is *unreadable*:
 * something that a set could be asked for, or that another reader might understand otherwise, was not read.
 * The policy decides what becomes of such a packet. SIEVE_ACTION_DROP drops it, and no set is asked.
 * SIEVE_ACTION_PASS asks the sets with those fields that were read, if any were, and passes it otherwise.
 */
enum sieve_outcome {
    SIEVE_OUTCOME_COMPLETE = 0,  /* addresses, protocol, and ports where the protocol has them */
    SIEVE_OUTCOME_FRAGMENT = 1,  /* a fragment other than the first: no ports */
    SIEVE_OUTCOME_ARP = 2,       /* from here on: no key by nature; passed whatever the default */
    SIEVE_OUTCOME_NEIGHBOUR = 3, /* IPv6 neighbour discovery */
    SIEVE_OUTCOME_NON_IP = 4,
    SIEVE_OUTCOME_SHORT = 5,      /* from here on unreadable: addresses, but the upper header is cut off */
    SIEVE_OUTCOME_CUT_CHAIN = 6,  /* addresses, but the packet ends inside its IPv6 extension headers */
    SIEVE_OUTCOME_LONG_CHAIN = 7, /* addresses, but more than SIEVE_MAX_EXTENSIONS extension headers */
    SIEVE_OUTCOME_TRUNCATED = 8,  /* no key: ends inside the Ethernet, VLAN or IP header */
    SIEVE_OUTCOME_MALFORMED = 9,  /* no key: an IP header that contradicts itself */
    SIEVE_OUTCOME_DEEP_VLAN = 10, /* no key: more than SIEVE_MAX_VLAN_TAGS tags */
    /* Addresses, but the header's destination may be only a stop: IPv4 options that hold a source route, or
     * that cannot be read; an IPv6 routing header with segments left. */
    SIEVE_OUTCOME_SOURCE_ROUTE = 11,
    SIEVE_OUTCOMES = 12,
    SIEVE_OUTCOME_SLOTS = 16, /* a power of two, so that the verifier sees the index bounded by a mask */
};
SIEVE_STATIC_ASSERT(SIEVE_OUTCOMES <= SIEVE_OUTCOME_SLOTS, "every outcome has its counter");
#define SIEVE_OUTCOME_FIRST_UNREADABLE SIEVE_OUTCOME_SHORT

/* The counters that belong to no set. */
struct sieve_totals {
    struct sieve_counter dropped;
    struct sieve_counter passed;
    struct sieve_counter redirected;
    __u64 outcome[SIEVE_OUTCOME_SLOTS];
    __u64 redirect_failed;
    __u64 decided;
    __u64 asked_unreadable;
    struct sieve_counter replied;
    __u64 reserved;
};

/* Bits of an entry's `flags`. */
enum sieve_entry_flag {
    SIEVE_ENTRY_VERIFY = 1 << 0, /* the exact set at the filter's map index is asked after the filter */
    SIEVE_ENTRY_KEEPS_REPLIES_OUT = 1 << 1, /* drops answers to the host's own flows, too */
    SIEVE_ENTRY_CONDITION =
        1 << 2, /* only packets that meet the entry's condition match (sieve/condition.h) */
};

struct sieve_policy_entry {
    __u8 slot;    /* 0 .. SIEVE_SLOTS - 1 */
    __u8 action;  /* enum sieve_action */
    __u8 flags;   /* enum sieve_entry_flag bits */
    __u8 joined;  /* the set's number in the bank's joint filter, plus 1; 0: it has none there */
    __u32 target; /* of a redirecting action; of a limit: packets per second */
};

/* What the controller notes about a slot; no packet reads it. */
struct sieve_slot {
    char name[SIEVE_NAME_BYTES];   /* NUL-terminated; empty if the slot is not used */
    struct sieve_counter baseline; /* the slot's counters when the set came into force */
    struct sieve_verified verified_baseline;
    __u32 map_id;                       /* the filter's map at the slot's map index; 0 if there is none */
    __u32 exact_id;                     /* likewise the exact set's */
    struct sieve_counter over_baseline; /* of the packets over the set's limit, likewise */
    __u32 inserted_id; /* as map_id: that of the keys inserted since the build; packets never read that map */
    __u32 reserved;
};

/*
 * Which sets are asked after the bank's joint filter has answered (sieve/joint.h). Bit i stands for entry i.
 * Numbers rise with the entries that have them.
 */
struct sieve_joint_order {
    __u16 alone; /* the sets that the joint filter does not know; they are asked in any case */
    __u16 after[SIEVE_MAX_SETS]; /* if the answer is this number: the sets with this or a higher number. Only
                                  * the set with this number is known to match */
    __u16 reserved;
};
SIEVE_STATIC_ASSERT(SIEVE_MAX_SETS <= SIEVE_JOINT_MOST_SETS && SIEVE_MAX_SETS <= 16, "a bit for each entry");

/* One bank: `sets` entries, asked in order. The first match that is not COUNT decides, else the default. */
struct sieve_policy {
    __u32 sets;
    __u32 default_action; /* SIEVE_ACTION_DROP or SIEVE_ACTION_PASS */
    __u32 unreadable;     /* likewise: for packets that cannot be read to their end (enum sieve_outcome) */
    __u32 joined;         /* how many of the sets the bank's joint filter answers for; 0: it has none */
    struct sieve_policy_entry entry[SIEVE_MAX_SETS];
    struct sieve_slot slot[SIEVE_SLOTS];
    __u32 devices_id;                      /* the bank's map in sieve_devices; or 0 */
    __u32 cpus_id;                         /* likewise, in sieve_cpus */
    struct sieve_limit limit[SIEVE_SLOTS]; /* of the sets whose action is SIEVE_ACTION_LIMIT */
    struct sieve_joint_order joint;
    __u32 joint_id; /* the joint filter's map, in sieve_joint; or 0 */
    /* SIEVE_ACTION_PASS: a packet that would be dropped passes if it answers a flow that the host began
     * (sieve/flow.h), unless the set that drops it keeps replies out. SIEVE_ACTION_DROP: it does not. */
    __u32 replies;
    __u32 reserved;
    struct sieve_condition condition[SIEVE_MAX_SETS]; /* of the entries that have one */
    struct sieve_totals baseline; /* what the table's counters stood at when they were last reset */
};

/* How matches are watched. */
enum sieve_watch_flag {
    SIEVE_WATCH_EVENTS = 1 << 0, /* matches are sampled into a ring buffer (sieve/event.h) */
    SIEVE_WATCH_TALLY = 1 << 1,  /* matches are counted by key (sieve/count_min.h) */
    /* Packets without a match are sampled, too: */
    SIEVE_WATCH_DEFAULT = 1 << 2,  /* those that the default decided */
    SIEVE_WATCH_REJECTED = 1 << 3, /* those whose match with a filter verification rejected */
    SIEVE_WATCH_REPLIES = 1 << 4,  /* those that pass because they answer the host's own flows */
};
#define SIEVE_WATCH_SAMPLED                                                                                  \
    (SIEVE_WATCH_EVENTS | SIEVE_WATCH_DEFAULT | SIEVE_WATCH_REJECTED | SIEVE_WATCH_REPLIES)

/* The program's one global variable, in the map SIEVE_MAP_CONTROL. */
struct sieve_control {
    __u32 magic;    /* SIEVE_MAGIC: the controller recognises our program by it */
    __u32 abi;      /* SIEVE_ABI */
    __u64 active;   /* the bank in force, and on probation also its deadline: sieve_bank_in_force() */
    __u64 changing; /* not zero during a change, on probation, and after a controller died: the banks may
                       differ */
    __u32 loader;   /* enum sieve_loader */
    __u32 watch;    /* enum sieve_watch_flag bits: how matches are watched */
    __u32 sample;   /* one packet in `sample` goes into the ring buffer */
    __u32 link;     /* enum sieve_link: of the interface that the program is attached to */
    struct sieve_policy bank[SIEVE_BANKS];
    /* The controllers' notes: the maps in sieve_events and sieve_sketches; 0: none. */
    __u32 ring_id;
    __u32 sketch_id;
    __u64 sketch_since; /* seconds since 1970 */
    __u64 network;      /* inode of the network namespace that `load` attached the program in; or 0 */
    __u32 flows_id;     /* the flow memory in sieve_flows; or 0 */
    __u32 trial;        /* not zero: a controller asks, so hits leave no marks (sieve/exact_table.h) */
    struct sieve_flow_where flows; /* of that memory */
};

/*
 * `active` of a bank that is in force until the deadline (nanoseconds of CLOCK_MONOTONIC_COARSE), and one for
 * good. One 64-bit store sets both.
 */
SIEVE_INLINE __u64 sieve_active_until(__u32 bank, __u64 deadline) {
    return deadline << 1 | bank;
}

/* The deadline in `active`; 0: there is none. */
SIEVE_INLINE __u64 sieve_deadline(__u64 active) {
    return active >> 1;
}

/* The bank that packets read at this moment. */
SIEVE_INLINE __u32 sieve_bank_in_force(__u64 active, __u64 now) {
    const __u64 deadline = sieve_deadline(active);
    return (active ^ (deadline && now >= deadline)) & (SIEVE_BANKS - 1);
}
SIEVE_STATIC_ASSERT(SIEVE_BANKS == 2, "one bit names the bank");

/* Who attached the program; no packet reads it. */
enum sieve_loader {
    SIEVE_LOADER_OTHER = 0, /* `ip link`, `tc`, or any other tool that knows nothing of this block */
    SIEVE_LOADER_SIEVE = 1, /* `xdp-sieve load` */
};

/* Their names in tables and JSON, by number. */
#define SIEVE_OUTCOME_NAMES                                                                                  \
    {                                                                                                        \
        "complete", "fragment", "arp", "neighbour", "non_ip", "short", "cut_chain", "long_chain",            \
            "truncated", "malformed", "deep_vlan", "source_route"                                            \
    }

/* How many VLAN tags and IPv6 extension headers the parser follows. Linux: up to the end of the frame. */
#define SIEVE_MAX_VLAN_TAGS 64
#define SIEVE_MAX_EXTENSIONS 64

/*
 * One per CPU. Verdict counters count what the program returned; hit counters also count matches of `count`
 * sets. At tc's hooks a packet that awaits segmentation counts as one, with the bytes of its headers once.
 * The controller never writes here, so no increment is ever lost.
 */
struct sieve_stats {
    struct sieve_counter hit[SIEVE_SLOTS];
    struct sieve_counter dropped;
    struct sieve_counter passed;
    __u64 outcome[SIEVE_OUTCOME_SLOTS];
    struct sieve_counter redirected;
    __u64 redirect_failed; /* packets whose target was gone; they also count as dropped or passed */
    __u64 events_lost;     /* samples for which the ring buffer had no room */
    struct sieve_verified verified[SIEVE_SLOTS]; /* only of sets with verification */
    struct sieve_counter over[SIEVE_SLOTS];      /* matches over the set's limit; they also count as hits */
    __u32 purse[SIEVE_SLOTS]; /* packets that this CPU took from the slot's account and has not used */
    /*
     * From these two follows how many packets the default decided: all readable packets with a key, and
     * `asked_unreadable`, less `decided`. So a packet that no set decides, the most frequent one, is not
     * counted once more.
     */
    __u64 decided;          /* packets that a set decided, or that passed as replies instead */
    __u64 asked_unreadable; /* unreadable packets for which the sets were asked */
    struct sieve_counter
        replied; /* would have been dropped, but answer own flows; they count as passed, too */
    __u64 reserved[4];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_stats) % 64 == 0, "whole cache lines");

/* The programs' names: at the XDP hook, and at tc's two. */
#define SIEVE_PROGRAM "xdp_sieve"
#define SIEVE_PROGRAM_FRAGS "xdp_sieve_frags"
#define SIEVE_PROGRAM_INGRESS "sieve_ingress"
#define SIEVE_PROGRAM_EGRESS "sieve_egress"

/* The program that notes flows at tc's egress hook (sieve/flow.h), and its maps besides sieve_flows. */
#define SIEVE_PROGRAM_NOTE "sieve_note"
#define SIEVE_MAP_NOTE ".data.note"
#define SIEVE_MAP_NOTE_COUNTS "sieve_notes"

/* What the program saw of one packet. Written only if `sieve_tracing` was set; never in service. */
struct sieve_trace {
    struct sieve_key key;
    __u32 have; /* enum sieve_field bits that the packet provided */
    __u32 outcome;
    __u32 verdict;  /* enum sieve_verdict */
    __u32 decision; /* the deciding set's slot, or SIEVE_NO_SET for the default, or one of those below it */
    __u64 hits;     /* bit s: the set in slot s matched (also those that only count) */
};
#define SIEVE_NO_SET 0xffffffffU
#define SIEVE_NOT_ASKED 0xfffffffeU
#define SIEVE_REPLY 0xfffffffdU /* it answers a flow that the host began */

#endif
