/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The pattern of a key: the k bits of a 512-bit line that stand for it, the same in every line it may be in.
 */
#ifndef SIEVE_PATTERN_H
#define SIEVE_PATTERN_H

#include <sieve/image.h>

#define SIEVE_PATTERN_MIN_HASHES 1
#define SIEVE_PATTERN_MAX_HASHES 32

/* Sets mask to the pattern of the hash word with k bits. */
SIEVE_INLINE void sieve_pattern(__u64 test, __u32 hashes, struct sieve_line* mask) {
    __u64 more = test * 0x9e3779b97f4a7c15ULL;
    for (int i = 0; i < SIEVE_LINE_WORDS; i++) mask->word[i] = 1ULL << ((test >> (6 * i)) & 63);
    if (hashes > 8)
        for (int i = 0; i < SIEVE_LINE_WORDS; i++) mask->word[i] |= 1ULL << ((more >> (6 * i + 16)) & 63);
}

#endif
