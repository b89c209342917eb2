/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The pattern of a key: the k bits of a 512-bit line that represent it, the same in each of its lines.
 *
 * Bits are spread evenly over the line's eight words: k / 8 full rounds put one bit in each word; of the k %
 * 8 bits left, four go to every second word (odd or even), two to a pair of words four apart, one to a single
 * word. The hash chooses which words, so that all words fill alike. Compared with k positions drawn from all
 * 512, this loses no accuracy (a key cannot hit the same bit twice within a round) and costs far less: a word
 * is loaded at a known offset and shifted, and each bit takes one shift of the hash.
 *
 * All choices share one pattern. Whether one line covers a non-member's pattern says nothing about another
 * line, so the rate is the same as with a pattern for each choice, and the hash is expanded only once. (The
 * two-choice paper's conclusion asks for dependent groups that need less hashing; this is an example.)
 */
#ifndef SIEVE_PATTERN_H
#define SIEVE_PATTERN_H

#include <sieve/image.h>

#define SIEVE_PATTERN_MIN_HASHES 1
#define SIEVE_PATTERN_MAX_HASHES 31

/* Odd multipliers that stretch the 64-bit hash: a further 48 bits for rounds 1 and 2, and the bits that the
 * remainder needs. */
#define SIEVE_PATTERN_ROUND1 0x9e3779b97f4a7c15ULL
#define SIEVE_PATTERN_ROUND2 0x589965cc75374cc3ULL
#define SIEVE_PATTERN_REST 0xa0761d6478bd642fULL

/* Which bits of the products are used. A product's upper bits depend on all bits of the hash, its lower bits
 * on few. */
#define SIEVE_PATTERN_ROUND_SHIFT 16
#define SIEVE_PATTERN_FOUR_PLACE 16 /* 1 bit: even or odd words */
#define SIEVE_PATTERN_FOUR_BITS 17  /* 4 x 6 bits */
#define SIEVE_PATTERN_TWO_PLACE 41  /* 2 bits: words w and w + 4 */
#define SIEVE_PATTERN_TWO_BITS 43   /* 2 x 6 bits */
#define SIEVE_PATTERN_ONE_PLACE 55  /* 3 bits: the word */
#define SIEVE_PATTERN_ONE_BIT 58    /* 6 bits */

SIEVE_INLINE int sieve_pattern_valid(__u32 hashes) {
    return hashes >= SIEVE_PATTERN_MIN_HASHES && hashes <= SIEVE_PATTERN_MAX_HASHES;
}

/* The pattern as a mask of the line: the bits that a builder sets. */
SIEVE_INLINE void sieve_pattern_mask(__u64 hash, __u32 hashes, struct sieve_line* mask) {
    const __u64 rest = hash * SIEVE_PATTERN_REST;
    const __u64 round1 = (hash * SIEVE_PATTERN_ROUND1) >> SIEVE_PATTERN_ROUND_SHIFT;
    const __u64 round2 = (hash * SIEVE_PATTERN_ROUND2) >> SIEVE_PATTERN_ROUND_SHIFT;

    for (int i = 0; i < SIEVE_LINE_WORDS; i++) {
        mask->word[i] = hashes >= 8 ? 1ULL << ((hash >> (6 * i)) & 63) : 0;
        mask->word[i] |= hashes >= 16 ? 1ULL << ((round1 >> (6 * i)) & 63) : 0;
        mask->word[i] |= hashes >= 24 ? 1ULL << ((round2 >> (6 * i)) & 63) : 0;
    }
    if (hashes & 4)
        for (int i = 0; i < 4; i++)
            mask->word[2 * i + ((rest >> SIEVE_PATTERN_FOUR_PLACE) & 1)] |=
                1ULL << ((rest >> (SIEVE_PATTERN_FOUR_BITS + 6 * i)) & 63);
    if (hashes & 2)
        for (int i = 0; i < 2; i++)
            mask->word[4 * i + ((rest >> SIEVE_PATTERN_TWO_PLACE) & 3)] |=
                1ULL << ((rest >> (SIEVE_PATTERN_TWO_BITS + 6 * i)) & 63);
    if (hashes & 1)
        mask->word[(rest >> SIEVE_PATTERN_ONE_PLACE) & 7] |= 1ULL << ((rest >> SIEVE_PATTERN_ONE_BIT) & 63);
}

/*
 * Tests one bit in each of `words` words of every line, `stride` words apart, from byte `offset` on: shifts
 * the word so that its bit becomes bit 0, and combines. Returns the hash, shifted past the bits used. `lines`
 * and the counts are constants.
 */
SIEVE_INLINE __u64 sieve_pattern_probe(const struct sieve_line* const* line, int lines, __u64* covered,
                                       __u64 offset, int words, int stride, __u64 bits) {
#pragma GCC unroll 8
    for (int i = 0; i < words; i++) {
#pragma GCC unroll 3
        for (int l = 0; l < lines; l++) {
            covered[l] &=
                sieve_shift_right(*(const __u64*)((const char*)line[l] + offset + i * stride * 8), bits);
            SIEVE_KEEP(covered[l]);
        }
        bits >>= 6;
    }
    return bits;
}

/* Bit 0 tells whether any of the lines has all bits asked for so far. */
SIEVE_INLINE __u64 sieve_pattern_any(const __u64* covered, int lines) {
    __u64 any = covered[0];
    if (lines > 1) any |= covered[1];
    if (lines > 2) any |= covered[2];
    return any & 1;
}

/*
 * True if one of `lines` lines (a constant, 1 to 3) has every bit of the pattern: the pattern of
 * sieve_pattern_mask, tested without making the mask. Six probes in each line reject 97 of 100 non-members;
 * the early exit after them is the only branch that depends on data.
 */
SIEVE_INLINE int sieve_pattern_covered(const struct sieve_line* const* line, int lines, __u64 hash,
                                       __u32 hashes) {
    __u64 covered[3] = {~0ULL, ~0ULL, ~0ULL};
    const int first = 6;

    if (hashes >= 8) {
        __u64 bits = sieve_pattern_probe(line, lines, covered, 0, first, 1, hash);
        if (!sieve_pattern_any(covered, lines)) return 0;
        sieve_pattern_probe(line, lines, covered, 8 * first, SIEVE_LINE_WORDS - first, 1, bits);
        if (hashes >= 16)
            sieve_pattern_probe(line, lines, covered, 0, SIEVE_LINE_WORDS, 1,
                                (hash * SIEVE_PATTERN_ROUND1) >> SIEVE_PATTERN_ROUND_SHIFT);
        if (hashes >= 24)
            sieve_pattern_probe(line, lines, covered, 0, SIEVE_LINE_WORDS, 1,
                                (hash * SIEVE_PATTERN_ROUND2) >> SIEVE_PATTERN_ROUND_SHIFT);
    }
    if (hashes & 7) {
        const __u64 rest = hash * SIEVE_PATTERN_REST;
        /* These bits of the hash are used directly as byte offsets. */
        if (hashes & 4)
            sieve_pattern_probe(line, lines, covered, (rest >> (SIEVE_PATTERN_FOUR_PLACE - 3)) & (1 << 3), 4,
                                2, rest >> SIEVE_PATTERN_FOUR_BITS);
        if (hashes & 2)
            sieve_pattern_probe(line, lines, covered, (rest >> (SIEVE_PATTERN_TWO_PLACE - 3)) & (3 << 3), 2,
                                4, rest >> SIEVE_PATTERN_TWO_BITS);
        if (hashes & 1)
            sieve_pattern_probe(line, lines, covered, (rest >> (SIEVE_PATTERN_ONE_PLACE - 3)) & (7 << 3), 1,
                                1, rest >> SIEVE_PATTERN_ONE_BIT);
    }
    return (int)sieve_pattern_any(covered, lines);
}

#endif
