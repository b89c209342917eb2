/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The unblocked Bloom filter: line by line, until a probe finds a zero.
 */
#ifndef SIEVE_BPF_LOOKUP_BLOOM_H
#define SIEVE_BPF_LOOKUP_BLOOM_H

#include <sieve/bloom.h>

#include "fetch.h"

/*
 * A global function, so that the verifier checks it once. It takes the set's map index, since a map cannot be
 * passed. A group has up to 32 lines, too many to request before the first is tested; but a probe's line does
 * not depend on the one before it, and two lines are enough to reject most non-members.
 */
__noinline int sieve_lookup_bloom(__u32 index, __u64 locate, __u64 test) {
    struct sieve_hash hash = {locate, test};
    const struct sieve_lookup* lookup;
    __u32 groups, hashes, buckets, group, i;
    void* filter;

    lookup = sieve_fetch_lookup(index, &filter);
    if (!lookup) return 0;
    groups = lookup->choices;
    buckets = lookup->buckets;
    for (group = 0; group < SIEVE_BLOOM_MAX_GROUPS && group < groups; group++) {
        struct sieve_bloom_probe probe = sieve_bloom_first(hash);

        /* The number is read again for each group, and the loop has two exits. Otherwise the verifier would
         * carry what it learned about the number into the next group and walk that group once for every way
         * out of this one, at thirty times the cost. */
        hashes = *(const volatile __u8*)&lookup->hashes;
#pragma clang loop unroll(disable)
        for (i = 0; i <= SIEVE_BLOOM_MAX_HASHES; i++) {
            const struct sieve_line* line;
            if (i >= hashes) return 1;
            line = sieve_fetch(filter, sieve_bloom_line(&probe, buckets));
            if (!line || !sieve_bloom_test(line, &probe)) break;
            sieve_bloom_advance(&probe);
        }
        hash = sieve_bloom_next_group(hash);
    }
    return 0;
}

#endif
