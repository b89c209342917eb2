/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How often was each key matched? A Count-Min sketch on two hash functions: A. Kirsch, M. Mitzenmacher, "Less
 * Hashing, Same Performance: Building a Better Bloom Filter" (RSA 33, 2008), section 9. Row i counts a key in
 * column h1 + i h2 mod w, w a prime. An estimate is never below the truth, and above it by more than eps N
 * with a probability of at most 2/(eps w^2) + (2/(eps w))^d (Theorem 9.1).
 *
 * The theorem requires that h1 and h2 are pairwise independent. The upper half of a multilinear hash of
 * 32-bit words with 64-bit keys is (strongly universal: D. Lemire, O. Kaser, "Strongly Universal String
 * Hashing is Fast", The Computer Journal 57, 2014, theorem 3.1), except for a bias below w / 2^32 from the
 * last reduction.
 *
 * The sketch is an array of lines, like a filter. The controller makes it and puts it into sieve_sketches:
 *
 *   lines 0 to 3      the secret hash keys of h1 and of h2, two lines each
 *   then for each CPU SIEVE_SKETCH_CPU_LINES lines that it alone writes: struct sieve_sketch_cpu, the rows'
 *                     counters, eight a line, and a table of candidates for the heaviest keys
 *
 * A candidate has two cells to choose from, as in a two-choice hash table. It takes the cell whose present
 * owner has the lower count, if its own count is higher. The reader sums over the CPUs.
 */
#ifndef SIEVE_COUNT_MIN_H
#define SIEVE_COUNT_MIN_H

#include <sieve/image.h>

#define SIEVE_SKETCH_WIDTH 4093 /* a prime */
#define SIEVE_SKETCH_DEPTH 8
#define SIEVE_SKETCH_CANDIDATES 1024 /* a power of two */

/* The hash keys of one function: one for each half of a key's words, one for the set (the same key in two
 * sets is two items), and one that is added. */
#define SIEVE_SKETCH_HASH_LINES 2
SIEVE_STATIC_ASSERT(2 * SIEVE_KEY_WORDS + 2 <= SIEVE_SKETCH_HASH_LINES * SIEVE_LINE_WORDS, "they fit");
#define SIEVE_SKETCH_LINES (2 * SIEVE_SKETCH_HASH_LINES)

struct sieve_sketch_cpu {
    __u64 total; /* N: packets counted */
    __u64 reserved[7];
};

struct sieve_candidate {
    struct sieve_key key; /* the set's fields, all else zero */
    __u64 estimate;       /* by this CPU's counters when the key was last seen; 0: no candidate */
    __u32 slot;           /* of the set */
    __u32 reserved0;
    __u64 reserved1;
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_candidate) == SIEVE_LINE_BYTES, "one a line");

#define SIEVE_SKETCH_ROW_LINES ((SIEVE_SKETCH_WIDTH + SIEVE_LINE_WORDS - 1) / SIEVE_LINE_WORDS)
#define SIEVE_SKETCH_FIRST_ROW 1
#define SIEVE_SKETCH_FIRST_CANDIDATE (SIEVE_SKETCH_FIRST_ROW + SIEVE_SKETCH_DEPTH * SIEVE_SKETCH_ROW_LINES)
#define SIEVE_SKETCH_CPU_LINES (SIEVE_SKETCH_FIRST_CANDIDATE + SIEVE_SKETCH_CANDIDATES)

/* The first line of a CPU's part. */
SIEVE_INLINE __u32 sieve_sketch_cpu_line(__u32 cpu) {
    return SIEVE_SKETCH_LINES + cpu * SIEVE_SKETCH_CPU_LINES;
}

/* One hash function: 32 bits for a key that has zeros where the set has no field. Takes the two lines of the
 * function's hash keys. */
SIEVE_INLINE __u32 sieve_sketch_sum(const struct sieve_line* one, const struct sieve_line* two,
                                    const struct sieve_key* key, __u32 slot) {
    __u64 sum = two->word[6] + two->word[7] * slot;
    sum += one->word[0] * (__u32)key->word[0] + one->word[1] * (key->word[0] >> 32);
    sum += one->word[2] * (__u32)key->word[1] + one->word[3] * (key->word[1] >> 32);
    sum += one->word[4] * (__u32)key->word[2] + one->word[5] * (key->word[2] >> 32);
    sum += one->word[6] * (__u32)key->word[3] + one->word[7] * (key->word[3] >> 32);
    sum += two->word[0] * (__u32)key->word[4] + two->word[1] * (key->word[4] >> 32);
    return (__u32)(sum >> 32);
}

/* The column after this one, in the next row. Neither this function nor the next one has a branch, because
 * the verifier would walk both ways in each row. */
SIEVE_INLINE __u32 sieve_sketch_next(__u32 column, __u32 step) {
    const __u64 beyond = (__u64)column + step - SIEVE_SKETCH_WIDTH;
    return (__u32)(beyond + (SIEVE_SKETCH_WIDTH & sieve_ones_if(beyond >> 63)));
}

/* The lesser of two counts below 2^63. */
SIEVE_INLINE __u64 sieve_sketch_less(__u64 one, __u64 other) {
    const __u64 difference = one - other;
    return other + (difference & sieve_ones_if(difference >> 63));
}

#endif
