/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The dynamic d-left counting Bloom filter (ddlCBF), and the plain one (dlCBF) as its special case: a d-left
 * filter that takes deletions as well as insertions, while packets are looked up in it.
 *
 * Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, "Bloom Filters via d-Left Hashing and Dynamic Bit
 * Reassignment" (Allerton 2006), section III; the plain one is their "An Improved Construction for Counting
 * Bloom Filters" (ESA 2006).
 *
 * Cost: one cache line and about forty instructions for each subtable, no loop, no branch on data.
 *
 * Hashing in two phases. H(x) = (b, r, z): a bucket number, a minimal remainder of rho bits, and further
 * bits. Subtable i holds the key in bucket b_i with the remainder (r_i, z), (b_i, r_i) = P_i(b, r), P_i a
 * permutation of all such pairs. So two keys that agree in bucket and minimal remainder in one subtable agree
 * in all of them. The minimal remainder is always stored and such keys are kept in one bucket. Therefore a
 * deletion always finds its own key and never another one's. P_i is two rounds of a Feistel network, which
 * works for any number of buckets: r_i = r xor g_i(b), b_i = b + h_i(r_i) modulo the number of buckets.
 *
 * The bucket is ONE aligned 64-bit word:
 *
 *   bits 0..6    state: the maximum m of keys that the bucket ever held at once (it determines the length of
 *                its remainders, which can only shrink), the number c of cells in use, the number z of those
 *                whose remainder begins with 0 (semi-sorting; that bit is not stored). 120 of 128 values are
 *                used: by rising m = 0..7, c = 0..m, z = 0..c. sieve_ddlcbf_states has them as hex digits
 *                m, c, z, 0.
 *   bits 7..63   57 bits for cells: remainder i in f = floor(57/m) - k bits at 7 + i f, in ascending order;
 *                counter i in k bits at 64 - (i + 1) k: the number of keys of that cell, less one. k is 0, 1
 *                or 2; without counters, and where one is full, equal remainders get a cell each.
 *
 * Why it may be changed while packets are looked up. A key is in one bucket from its insertion to its
 * deletion; it never moves to another. Every change to a bucket, however many of its bits it rearranges, is
 * one aligned 64-bit store, and a lookup reads a bucket with one aligned 64-bit load. Both are atomic on
 * every supported machine. So each lookup sees a bucket either before or after a change, and both states hold
 * every key that is present throughout. No order between buckets is needed, hence no barrier, no version, no
 * retry: a key that is being inserted is seen from its store on. There must be only one writer at a time. A
 * bucket of 128 bits, as in the paper's experiment, would have longer remainders (see the experiment). But
 * BPF has no atomic pair of loads, and a reader that was interrupted between two loads could miss a present
 * key.
 */
#ifndef SIEVE_DDLCBF_H
#define SIEVE_DDLCBF_H

#include <sieve/dleft.h>

/*
 * How struct sieve_lookup is used: `choices` is the number of subtables, 2 to 4; `buckets` the number of
 * LINES of one subtable; `hashes` the bits of a cell's counter (low half) and of the minimal remainder (high
 * half). `alpha` is the least m, which no packet needs: 0 for the dynamic filter, the fixed number of cells
 * for the plain one.
 */
#define SIEVE_DDLCBF_COUNTER 3U
#define SIEVE_DDLCBF_MINIMAL_SHIFT 4

#define SIEVE_DDLCBF_LINE_SHIFT 3
#define SIEVE_DDLCBF_STATE_BITS 7
#define SIEVE_DDLCBF_CELL_BITS 57
#define SIEVE_DDLCBF_MAX_CELLS 7
#define SIEVE_DDLCBF_MIN_MINIMAL 4
#define SIEVE_DDLCBF_MAX_MINIMAL 15

/* clang-format off */
#define SIEVE_DDLCBF_STATES(STATE) \
    STATE(0x0000) STATE(0x1000) STATE(0x1100) STATE(0x1110) STATE(0x2000) STATE(0x2100) STATE(0x2110) STATE(0x2200) \
    STATE(0x2210) STATE(0x2220) STATE(0x3000) STATE(0x3100) STATE(0x3110) STATE(0x3200) STATE(0x3210) STATE(0x3220) \
    STATE(0x3300) STATE(0x3310) STATE(0x3320) STATE(0x3330) STATE(0x4000) STATE(0x4100) STATE(0x4110) STATE(0x4200) \
    STATE(0x4210) STATE(0x4220) STATE(0x4300) STATE(0x4310) STATE(0x4320) STATE(0x4330) STATE(0x4400) STATE(0x4410) \
    STATE(0x4420) STATE(0x4430) STATE(0x4440) STATE(0x5000) STATE(0x5100) STATE(0x5110) STATE(0x5200) STATE(0x5210) \
    STATE(0x5220) STATE(0x5300) STATE(0x5310) STATE(0x5320) STATE(0x5330) STATE(0x5400) STATE(0x5410) STATE(0x5420) \
    STATE(0x5430) STATE(0x5440) STATE(0x5500) STATE(0x5510) STATE(0x5520) STATE(0x5530) STATE(0x5540) STATE(0x5550) \
    STATE(0x6000) STATE(0x6100) STATE(0x6110) STATE(0x6200) STATE(0x6210) STATE(0x6220) STATE(0x6300) STATE(0x6310) \
    STATE(0x6320) STATE(0x6330) STATE(0x6400) STATE(0x6410) STATE(0x6420) STATE(0x6430) STATE(0x6440) STATE(0x6500) \
    STATE(0x6510) STATE(0x6520) STATE(0x6530) STATE(0x6540) STATE(0x6550) STATE(0x6600) STATE(0x6610) STATE(0x6620) \
    STATE(0x6630) STATE(0x6640) STATE(0x6650) STATE(0x6660) STATE(0x7000) STATE(0x7100) STATE(0x7110) STATE(0x7200) \
    STATE(0x7210) STATE(0x7220) STATE(0x7300) STATE(0x7310) STATE(0x7320) STATE(0x7330) STATE(0x7400) STATE(0x7410) \
    STATE(0x7420) STATE(0x7430) STATE(0x7440) STATE(0x7500) STATE(0x7510) STATE(0x7520) STATE(0x7530) STATE(0x7540) \
    STATE(0x7550) STATE(0x7600) STATE(0x7610) STATE(0x7620) STATE(0x7630) STATE(0x7640) STATE(0x7650) STATE(0x7660) \
    STATE(0x7700) STATE(0x7710) STATE(0x7720) STATE(0x7730) STATE(0x7740) STATE(0x7750) STATE(0x7760) STATE(0x7770)
#define SIEVE_DDLCBF_NUMBER(s) (s),
static const __u16 sieve_ddlcbf_states[128] = {SIEVE_DDLCBF_STATES(SIEVE_DDLCBF_NUMBER)};

/* By the bits of a counter and m. */
static const struct sieve_dleft_cells sieve_ddlcbf_cells[4][8] = {
    {
    {0x0, 1, 0},
    {0x1, 57, 1},
    {0x10000001, 28, 2},
    {0x4000080001, 19, 3},
    {0x40010004001, 14, 4},
    {0x100200400801, 11, 5},
    {0x201008040201, 9, 6},
    {0x1010101010101, 8, 7},
    },
    {
    {0x0, 1, 0},
    {0x1, 56, 1},
    {0x8000001, 27, 2},
    {0x1000040001, 18, 3},
    {0x8004002001, 13, 4},
    {0x10040100401, 10, 5},
    {0x10101010101, 8, 6},
    {0x40810204081, 7, 7},
    },
    {
    {0x0, 1, 0},
    {0x1, 55, 1},
    {0x4000001, 26, 2},
    {0x400020001, 17, 3},
    {0x1001001001, 12, 4},
    {0x1008040201, 9, 5},
    {0x810204081, 7, 6},
    {0x1041041041, 6, 7},
    },
    {{0x0, 1, 0}, {0x0, 1, 0}, {0x0, 1, 0}, {0x0, 1, 0}, {0x0, 1, 0}, {0x0, 1, 0}, {0x0, 1, 0}, {0x0, 1, 0}}, /* not used: the index is two bits */
};

/* Odd multipliers: g_i and h_i are the upper halves of products with them. */
static const __u64 sieve_ddlcbf_rounds[SIEVE_DLEFT_MAX_SUBTABLES][2] = {
    {0x9e3779b97f4a7c15ULL, 0xbf58476d1ce4e5b9ULL},
    {0x94d049bb133111ebULL, 0xd1342543de82ef95ULL},
    {0xaf251af3b0f025b5ULL, 0xa0761d6478bd642fULL},
    {0xe7037ed1a0b428dbULL, 0x8ebc6af09c88c6e3ULL},
};
/* clang-format on */

/* A bucket and a minimal remainder. */
struct sieve_ddlcbf_pair {
    __u32 bucket;
    __u32 minimal;
};

/* 32 bits of a number, by multiplication. */
SIEVE_INLINE __u32 sieve_ddlcbf_spread(__u32 number, __u64 multiplier) {
    return (__u32)(((number + 1ULL) * multiplier) >> 32);
}

/* P_i. `buckets` is their number in a subtable, `bits` the length of a minimal remainder. */
SIEVE_INLINE struct sieve_ddlcbf_pair sieve_ddlcbf_permute(struct sieve_ddlcbf_pair pair, __u32 subtable,
                                                           __u32 buckets, __u32 bits) {
    const __u64* rounds = sieve_ddlcbf_rounds[subtable];
    __u64 sum;

    pair.minimal ^= sieve_ddlcbf_spread(pair.bucket, rounds[0]) >> ((32 - bits) & 31);
    sum = (__u64)pair.bucket + sieve_reduce(sieve_ddlcbf_spread(pair.minimal, rounds[1]), buckets);
    /* Modulo without a branch: adds `buckets` back if the subtraction went below zero. */
    sum -= buckets;
    pair.bucket = (__u32)(sum + (buckets & (__u32)(sum >> 32)));
    return pair;
}

/* A key's bucket address in subtable i (the line relative to the filter's first, and the word in it), and the
 * remainder (r_i, z) to look for, left-aligned. */
struct sieve_ddlcbf_address {
    __u32 line;
    __u32 position;
    __u64 remainder;
};

/* The key's bucket number and minimal remainder in a subtable: H(x), then P_i. */
SIEVE_INLINE struct sieve_ddlcbf_pair sieve_ddlcbf_pair_of(struct sieve_hash hash, __u32 subtable,
                                                           __u32 buckets, __u32 bits) {
    struct sieve_ddlcbf_pair pair;
    pair.bucket = sieve_reduce((__u32)hash.locate, buckets);
    pair.minimal = (__u32)(hash.test >> ((64 - bits) & 63));
    return sieve_ddlcbf_permute(pair, subtable, buckets, bits);
}

SIEVE_INLINE __u64 sieve_ddlcbf_remainder(__u64 test, __u32 minimal, __u32 bits) {
    return ((__u64)minimal << ((64 - bits) & 63)) | ((test << (bits & 63)) >> (bits & 63));
}

/* Locate: one bucket address for each subtable. Entries beyond the filter's subtables repeat the first. */
SIEVE_INLINE void sieve_ddlcbf_locate(const struct sieve_lookup* lookup, struct sieve_hash hash,
                                      struct sieve_ddlcbf_address address[SIEVE_DLEFT_MAX_SUBTABLES]) {
    const __u32 bits = lookup->hashes >> SIEVE_DDLCBF_MINIMAL_SHIFT;
    const __u32 lines = lookup->buckets;

#pragma GCC unroll 4
    for (__u32 i = 0; i < SIEVE_DLEFT_MAX_SUBTABLES; i++) {
        if (i > 1) address[i] = address[0];
        if (i < 2 || i < lookup->choices) {
            const struct sieve_ddlcbf_pair pair =
                sieve_ddlcbf_pair_of(hash, i, lines << SIEVE_DDLCBF_LINE_SHIFT, bits);
            address[i].line = i * lines + (pair.bucket >> SIEVE_DDLCBF_LINE_SHIFT);
            address[i].position = pair.bucket & 7;
            address[i].remainder = sieve_ddlcbf_remainder(hash.test, pair.minimal, bits);
        }
    }
}

/* Whether a bucket holds the remainder. */
SIEVE_INLINE __u64 sieve_ddlcbf_bucket(__u64 word, __u64 remainder, __u32 counter_bits) {
    const __u32 state = sieve_ddlcbf_states[word & 127];
    const struct sieve_dleft_cells* cells = &sieve_ddlcbf_cells[counter_bits & 3][(state >> 12) & 7];
    const __u32 group = 4 * (__u32)(remainder >> 63);
    return sieve_dleft_equal(word >> SIEVE_DDLCBF_STATE_BITS, sieve_dleft_stored(remainder, 1, cells->width),
                             cells->feet, cells->width) &
           sieve_dleft_lanes((state >> group) & 15, (state >> (group + 4)) & 15, cells->width);
}

/* One atomic load of a bucket. */
SIEVE_INLINE __u64 sieve_ddlcbf_load(const struct sieve_line* line, __u32 position) {
#ifdef __bpf__
    return *(const volatile __u64*)&line->word[position & 7];
#else
    return __atomic_load_n(&line->word[position & 7], __ATOMIC_RELAXED);
#endif
}

/*
 * Test: true if one of the key's buckets holds its remainder. `line` has the located line of each subtable.
 */
SIEVE_INLINE int sieve_ddlcbf_test(const struct sieve_lookup* lookup,
                                   const struct sieve_line* const line[SIEVE_DLEFT_MAX_SUBTABLES],
                                   const struct sieve_ddlcbf_address address[SIEVE_DLEFT_MAX_SUBTABLES]) {
    const __u32 counter = lookup->hashes & SIEVE_DDLCBF_COUNTER;
    __u64 hit =
        sieve_ddlcbf_bucket(sieve_ddlcbf_load(line[0], address[0].position), address[0].remainder, counter) |
        sieve_ddlcbf_bucket(sieve_ddlcbf_load(line[1], address[1].position), address[1].remainder, counter);
    if (lookup->choices > 2)
        hit |= sieve_ddlcbf_bucket(sieve_ddlcbf_load(line[2], address[2].position), address[2].remainder,
                                   counter);
    if (lookup->choices > 3)
        hit |= sieve_ddlcbf_bucket(sieve_ddlcbf_load(line[3], address[3].position), address[3].remainder,
                                   counter);
    return hit != 0;
}

/*
 * The same tests for filters that builders make: four subtables and counters of one bit. All that a bucket's
 * state says is in one entry of a table, so that nothing waits for a chain of look-ups.
 */
struct sieve_ddlcbf_entry {
    __u64 feet;
    __u64 bodies;   /* all bits of the cells but the heads */
    __u64 heads[2]; /* of the cells in use whose remainder begins with 0, and with 1 */
    __u64 narrow;   /* 64 - width */
    __u64 unused[3];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_ddlcbf_entry) == 64, "one cache line");

/* clang-format off */
/* By m: the width of a remainder beside a counter of one bit, and a one at the foot of each. */
#define SIEVE_DDLCBF_WIDTH(m) ((m) ? SIEVE_DDLCBF_CELL_BITS / ((m) + !(m)) - 1 : 1)
#define SIEVE_DDLCBF_FEET(m) \
    ((m) == 0 ? 0ULL : (m) == 1 ? 0x1ULL : (m) == 2 ? 0x8000001ULL : (m) == 3 ? 0x1000040001ULL : \
     (m) == 4 ? 0x8004002001ULL : (m) == 5 ? 0x10040100401ULL : (m) == 6 ? 0x10101010101ULL : 0x40810204081ULL)
#define SIEVE_DDLCBF_HEADS(s, lo, hi) \
    (SIEVE_DDLCBF_FEET((s) >> 12) << (SIEVE_DDLCBF_WIDTH((s) >> 12) - 1) & \
     SIEVE_DLEFT_RANGE(SIEVE_DDLCBF_WIDTH((s) >> 12), lo, hi))
#define SIEVE_DDLCBF_ENTRY(s) \
    {SIEVE_DDLCBF_FEET((s) >> 12), \
     (SIEVE_DDLCBF_FEET((s) >> 12) << (SIEVE_DDLCBF_WIDTH((s) >> 12) - 1)) - SIEVE_DDLCBF_FEET((s) >> 12), \
     {SIEVE_DDLCBF_HEADS(s, 0, (s) >> 4 & 15), SIEVE_DDLCBF_HEADS(s, (s) >> 4 & 15, (s) >> 8 & 15)}, \
     64 - SIEVE_DDLCBF_WIDTH((s) >> 12), \
     {0, 0, 0}},
static const struct sieve_ddlcbf_entry sieve_ddlcbf_entries[128] = {SIEVE_DDLCBF_STATES(SIEVE_DDLCBF_ENTRY)};
/* clang-format on */

SIEVE_INLINE int sieve_ddlcbf_is_usual(const struct sieve_lookup* lookup) {
    return lookup->choices == SIEVE_DLEFT_MAX_SUBTABLES && (lookup->hashes & SIEVE_DDLCBF_COUNTER) == 1;
}

/* Nonzero if the bucket of a usual filter holds the remainder. */
SIEVE_INLINE __u64 sieve_ddlcbf_plain(__u64 word, __u64 remainder) {
    const struct sieve_ddlcbf_entry* entry = &sieve_ddlcbf_entries[word & 127];
    const __u64 want = sieve_shift_right(remainder << 1, entry->narrow);
    const __u64 differ = (word >> SIEVE_DDLCBF_STATE_BITS) ^ (want * entry->feet);
    const __u64 bodies = entry->bodies;

    return entry->heads[remainder >> 63] & ~(((differ & bodies) + bodies) | differ);
}

#endif
