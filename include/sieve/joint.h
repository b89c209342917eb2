/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The joint filter: one lookup that answers for several sets of the same fields.
 * There are two forms.
 *
 * Of sets of one address it is a table of kind exact (sieve/exact_table.h). The value of an address is the
 * number of the first set in the table's order that holds it, and no other address has a value.
 *
 * Of sets of other keys it is a XORSAT filter (sieve/xorsat.h) of all keys. The equations of a member do not
 * ask for the key's fingerprint, but for the fingerprint with that number added by exclusive or. So what
 * remains of the line's answer after the fingerprint is
 *
 *   0 .. sets - 1   the number of the first set that holds the key
 *   above           no set holds the key
 *
 * A key that no set holds has a random remainder of r bits. It names a given set with probability 2^-r: that
 * is the false positive rate of a filter of this one set with as many bits a key. So a joint filter takes as
 * many bits a key as the sets' own filters, at the same rates, set by set. The remainder must be able to
 * state every number: no line compares fewer bits than the highest number has. The builder sees to that.
 *
 * A set may leave the table, or get another filter, while the joint filter stays. Then its number says only
 * that no set with a lower number holds the key; those with a higher number must be asked by their own
 * filters (struct sieve_joint_order in sieve/policy.h). The same holds behind a set that only counts.
 *
 * A joint filter is never a file. Its map has an image's header lines. A XORSAT filter has the number of sets
 * in `hashes`, which is zero in every image; a table has it in the filter's line 0.
 */
#ifndef SIEVE_JOINT_H
#define SIEVE_JOINT_H

#include <sieve/xorsat.h>

/* How many sets a joint filter answers for. One set is faster by itself. */
#define SIEVE_JOINT_LEAST_SETS 2
#define SIEVE_JOINT_MOST_SETS 16

/* Of a lookup: no set holds the key. Or there was no answer, which cannot happen; then every set is asked.
 * Neither is 2^32 - 1, to which the packet path could not add 1. */
#define SIEVE_JOINT_NO_SET 0xfffffffeU
#define SIEVE_JOINT_NO_ANSWER 0xfffffffdU

/* What the line that keeps the key answers: the number of a set, or a number that no set has. */
SIEVE_INLINE __u32 sieve_joint_number(const struct sieve_line* line, struct sieve_hash hash) {
    const __u64 unused = 64 - sieve_xorsat_bits(line->word[0] & 255, hash.test);
    return (__u32)sieve_shift_right(sieve_xorsat_difference(line, hash), unused);
}

/* The position of the lowest bit of a mask of 16 bits, which is not zero. BPF has no instruction for it. The
 * product with a de Bruijn sequence begins with other four bits for each position (Leiserson, Prokop,
 * Randall, "Using de Bruijn Sequences to Index a 1 in a Computer Word", 1998). */
SIEVE_INLINE __u32 sieve_lowest_bit(__u32 mask) {
    const __u32 lowest = mask & (0U - mask);
    const __u32 begins = ((lowest * 0x09afU) >> 12) & 15;
    return (__u32)(0xcd7ea84fb6935210ULL >> (4 * begins)) & 15;
}

#endif
