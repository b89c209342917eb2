/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The flow key: the part of a packet, or of a feed's line, that is looked up.
 *
 * One canonical form serves every key kind: five 64-bit words, unselected fields zero. IPv4 addresses are
 * v4-mapped (::ffff:a.b.c.d), so one set holds both families. Words are numbers in host order (the
 * address's first byte is the most significant), so that a key reads the same in the kernel, in an image and
 * in a test.
 *
 *   word 0, 1   source address, upper and lower 64 bits
 *   word 2, 3   destination address, likewise
 *   word 4      source port << 24 | destination port << 8 | protocol
 */
#ifndef SIEVE_KEY_H
#define SIEVE_KEY_H

#include <sieve/base.h>

#define SIEVE_KEY_WORDS 5

/* Bits of a field set: which fields a set's keys are made of, and which fields a packet could provide. */
enum sieve_field {
    SIEVE_FIELD_SRC = 1 << 0,
    SIEVE_FIELD_DST = 1 << 1,
    SIEVE_FIELD_SPORT = 1 << 2,
    SIEVE_FIELD_DPORT = 1 << 3,
    SIEVE_FIELD_PROTO = 1 << 4,
    SIEVE_FIELD_ALL = (1 << 5) - 1,
    SIEVE_FIELD_ADDRESSES = SIEVE_FIELD_SRC | SIEVE_FIELD_DST,
    SIEVE_FIELD_PORTS = SIEVE_FIELD_SPORT | SIEVE_FIELD_DPORT,
    SIEVE_FIELD_TRANSPORT = SIEVE_FIELD_PORTS | SIEVE_FIELD_PROTO, /* those that live in word 4 */
};

struct sieve_key {
    __u64 word[SIEVE_KEY_WORDS];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_key) == 40,
                    "a key has no padding: it is compared and hashed as words");

#define SIEVE_V4_MAPPED 0x0000ffff00000000ULL
#define SIEVE_SPORT_SHIFT 24
#define SIEVE_DPORT_SHIFT 8
#define SIEVE_PROTO_SHIFT 0
#define SIEVE_SPORT_MASK (0xffffULL << SIEVE_SPORT_SHIFT)
#define SIEVE_DPORT_MASK (0xffffULL << SIEVE_DPORT_SHIFT)
#define SIEVE_PROTO_MASK (0xffULL << SIEVE_PROTO_SHIFT)

/* The lower word of the v4-mapped form of an IPv4 address in host order; the upper word is zero. */
SIEVE_INLINE __u64 sieve_v4_mapped(__u32 address) {
    return SIEVE_V4_MAPPED | address;
}

/* Word 4 from its parts, all in host order. */
SIEVE_INLINE __u64 sieve_transport_word(__u16 sport, __u16 dport, __u8 proto) {
    return ((__u64)sport << SIEVE_SPORT_SHIFT) | ((__u64)dport << SIEVE_DPORT_SHIFT) |
           ((__u64)proto << SIEVE_PROTO_SHIFT);
}

/* All ones if the field is one of these, else zero. There is no branch, because the verifier would walk both
 * ways. */
SIEVE_INLINE __u64 sieve_field_mask(__u32 fields, __u32 field) {
    return sieve_ones_if((fields & field) / field);
}

/* The bits of word 4 that the field set selects. */
SIEVE_INLINE __u64 sieve_transport_mask(__u32 fields) {
    return ((fields & SIEVE_FIELD_SPORT) ? SIEVE_SPORT_MASK : 0) |
           ((fields & SIEVE_FIELD_DPORT) ? SIEVE_DPORT_MASK : 0) |
           ((fields & SIEVE_FIELD_PROTO) ? SIEVE_PROTO_MASK : 0);
}
/* The same without branches. */
SIEVE_INLINE __u64 sieve_transport_mask_flat(__u32 fields) {
    return (sieve_field_mask(fields, SIEVE_FIELD_SPORT) & SIEVE_SPORT_MASK) |
           (sieve_field_mask(fields, SIEVE_FIELD_DPORT) & SIEVE_DPORT_MASK) |
           (sieve_field_mask(fields, SIEVE_FIELD_PROTO) & SIEVE_PROTO_MASK);
}

/* Whether a key of these fields is one address and nothing else. */
SIEVE_INLINE int sieve_is_one_address(__u32 fields) {
    return fields == SIEVE_FIELD_SRC || fields == SIEVE_FIELD_DST;
}

#endif
