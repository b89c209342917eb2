/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The blocked Bloom filter: every key sets k bits of one 512-bit line, chosen by the builder from up to three
 * lines.
 *
 * Source: Krimer, Erez, "The Power of 1+alpha for Memory-Efficient Bloom Filters" (Internet Mathematics 7,
 * 2010), algorithms 2 to 4; with offline rebalancing after Lumetta, Mitzenmacher, "Using the Power of Two
 * Choices to Improve Bloom Filters" (Internet Mathematics 4, 2007), section 3.2.
 *
 * A lookup touches one cache line for each choice. If Phi(key) holds, which it does for a share alpha of all
 * keys, the key may be in `choices` lines, else only in its first (`choices` = 1 ignores alpha).
 *
 * The filter is cut into 2^shard_bits shards of equal size. All lines of a key are in the shard of its first
 * line, so that a builder can place the keys of each shard on their own: on any core, in its second-level
 * cache, or from disk. The cost is a hardly higher rate (docs/performance.md), because some shards get more
 * keys than others.
 */
#ifndef SIEVE_BLOCKED_H
#define SIEVE_BLOCKED_H

#include <sieve/image.h>
#include <sieve/pattern.h>

/* Independent bits from the located hash, for Phi and for the third line. The first two lines use its halves.
 */
#define SIEVE_BLOCKED_PHI_MULTIPLIER 0x9e3779b97f4a7c15ULL
#define SIEVE_BLOCKED_THIRD_MULTIPLIER 0xd1342543de82ef95ULL

/* Phi of the paper (section 3.2): deterministic in the key, true with probability alpha (in units of 2^-16).
 */
SIEVE_INLINE int sieve_blocked_phi(struct sieve_hash hash, __u32 alpha) {
    return (hash.locate * SIEVE_BLOCKED_PHI_MULTIPLIER) >> 48 <= alpha;
}

/*
 * Locate: the lines that may hold the key, relative to the filter's first line. Always fills `choices` of
 * them; a key that has no choice gets its first line repeatedly, which costs a cache hit and no branch.
 *
 * A line is a 32-bit number of the hash, reduced to the number of lines. All lines of a key are in one shard
 * (sieve_same_shard).
 */
SIEVE_INLINE void sieve_blocked_locate(const struct sieve_lookup* lookup, struct sieve_hash hash,
                                       __u32 line[SIEVE_MAX_CHOICES]) {
    const __u32 first = (__u32)hash.locate;

    line[0] = sieve_reduce(first, lookup->buckets);
    line[1] = line[0];
    line[2] = line[0];
    if (lookup->choices > 1 && sieve_blocked_phi(hash, lookup->alpha)) {
        const __u32 inside = sieve_inside_shard(lookup);

        line[1] = sieve_reduce(sieve_same_shard(first, (__u32)(hash.locate >> 32), inside), lookup->buckets);
        if (lookup->choices > 2) {
            const __u32 third = (__u32)((hash.locate * SIEVE_BLOCKED_THIRD_MULTIPLIER) >> 32);

            line[2] = sieve_reduce(sieve_same_shard(first, third, inside), lookup->buckets);
        }
    }
}

/*
 * Test: true if one of the key's lines has every bit of its pattern. `line` holds as many as the filter has
 * choices; they may repeat.
 */
SIEVE_INLINE int sieve_blocked_test(const struct sieve_lookup* lookup, struct sieve_hash hash,
                                    const struct sieve_line* const line[SIEVE_MAX_CHOICES]) {
    if (lookup->choices == 2) return sieve_pattern_covered(line, 2, hash.test, lookup->hashes);
    if (lookup->choices == 1) return sieve_pattern_covered(line, 1, hash.test, lookup->hashes);
    /* Three at once would take more registers than BPF has. The third line arrives while two are tested. */
    return sieve_pattern_covered(line, 2, hash.test, lookup->hashes) ||
           sieve_pattern_covered(line + 2, 1, hash.test, lookup->hashes);
}

#endif
