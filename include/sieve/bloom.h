/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The unblocked Bloom filter: m bits, c groups of k probes; a key is present if any group finds only ones.
 *
 * Source: Lumetta, Mitzenmacher, "Using the Power of Two Choices to Improve Bloom Filters" (Internet
 * Mathematics 4, 2007), section 3; probes after Kirsch, Mitzenmacher, "Less Hashing, Same Performance" (RSA
 * 33, 2008), section 5.2.
 *
 * It is the most accurate Bloom filter for its size and costs the most: about two cache lines in each group
 * for a non-member, k for a member.
 *
 * Probes. The papers propose double hashing, x + i y modulo m, with one flaw that they name (two-choice
 * paper, footnote 1): a non-member that falls on a member's progression shares all of its bits, and there are
 * only m^2 progressions. Measured, c = 1, against p^k: 6.2 times the rate at 10^4 keys of 32 bits, 1.8 times
 * at 100 keys of 16 bits. Here probe i is A^i x + (A^(i-1) + ... + 1) y modulo 2^64, the upper bits of which
 * are the position. This is as cheap as double hashing, since each probe is the last one times A plus y. But
 * two keys' probes drift apart however near they start, so from 32 keys on the rate is p^k to within 1% (the
 * measurement's error), as with independent hashes. It needs no division and no wrapping, and any y will do.
 */
#ifndef SIEVE_BLOOM_H
#define SIEVE_BLOOM_H

#include <sieve/image.h>

#define SIEVE_BLOOM_MAX_GROUPS 3
#define SIEVE_BLOOM_MAX_HASHES 32
/* 2^38 bits. A line is drawn with 32 bits of hash, so that at most eight hash values share a line. */
#define SIEVE_BLOOM_MAX_LINES (1U << 29)

/* Odd multipliers: A, from a probe to the next one, and from one group's words to those of the next. */
#define SIEVE_BLOOM_NEXT_PROBE 0x9e3779b97f4a7c15ULL
#define SIEVE_BLOOM_GROUP_LOCATE 0xd1342543de82ef95ULL
#define SIEVE_BLOOM_GROUP_TEST 0xaf251af3b0f025b5ULL

/* The upper nine bits of a position choose the bit of a line (three the word, six the bit in it), the 32 bits
 * below choose the line. */
#define SIEVE_BLOOM_WORD_SHIFT 61
#define SIEVE_BLOOM_BIT_SHIFT 55
#define SIEVE_BLOOM_LINE_SHIFT 23

/* One group's probes, one after the other. */
struct sieve_bloom_probe {
    __u64 position;
    __u64 step;
};

SIEVE_INLINE int sieve_bloom_valid(__u32 groups, __u32 hashes, __u32 buckets) {
    return groups >= 1 && groups <= SIEVE_BLOOM_MAX_GROUPS && hashes >= 1 &&
           hashes <= SIEVE_BLOOM_MAX_HASHES && buckets >= 1 && buckets <= SIEVE_BLOOM_MAX_LINES;
}

/* The first probe of the group with this hash. Group 0 uses the key's own hash. */
SIEVE_INLINE struct sieve_bloom_probe sieve_bloom_first(struct sieve_hash hash) {
    struct sieve_bloom_probe probe = {hash.locate, hash.test};
    return probe;
}

/* From the hash of one group to that of the next. */
SIEVE_INLINE struct sieve_hash sieve_bloom_next_group(struct sieve_hash hash) {
    hash.locate *= SIEVE_BLOOM_GROUP_LOCATE;
    hash.test *= SIEVE_BLOOM_GROUP_TEST;
    return hash;
}

SIEVE_INLINE void sieve_bloom_advance(struct sieve_bloom_probe* probe) {
    probe->position = probe->position * SIEVE_BLOOM_NEXT_PROBE + probe->step;
}

/* Locate: the line of this probe, relative to the filter's first line. */
SIEVE_INLINE __u32 sieve_bloom_line(const struct sieve_bloom_probe* probe, __u32 buckets) {
    return sieve_reduce((__u32)(probe->position >> SIEVE_BLOOM_LINE_SHIFT), buckets);
}

/* The bit of the line, 0 to 511. */
SIEVE_INLINE __u32 sieve_bloom_bit(const struct sieve_bloom_probe* probe) {
    return (__u32)(probe->position >> SIEVE_BLOOM_BIT_SHIFT);
}

/* Test: whether this probe finds a one in its line. */
SIEVE_INLINE int sieve_bloom_test(const struct sieve_line* line, const struct sieve_bloom_probe* probe) {
    return (int)((line->word[probe->position >> SIEVE_BLOOM_WORD_SHIFT] >>
                  ((probe->position >> SIEVE_BLOOM_BIT_SHIFT) & 63)) &
                 1);
}

/*
 * Locate, fetch and test in one, for filters in memory (the BPF program does the same with a map lookup
 * instead of the pointer): true if any group is all ones. `filter` has lookup->buckets lines.
 */
SIEVE_INLINE int sieve_bloom_covered(const struct sieve_lookup* lookup, struct sieve_hash hash,
                                     const struct sieve_line* filter) {
    for (__u32 group = 0; group < lookup->choices; group++) {
        struct sieve_bloom_probe probe = sieve_bloom_first(hash);
        __u32 found = 0;

        while (found < lookup->hashes &&
               sieve_bloom_test(&filter[sieve_bloom_line(&probe, lookup->buckets)], &probe)) {
            sieve_bloom_advance(&probe);
            found++;
        }
        if (found == lookup->hashes) return 1;
        hash = sieve_bloom_next_group(hash);
    }
    return 0;
}

#endif
