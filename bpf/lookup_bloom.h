/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The unblocked Bloom filter: line by line, until a probe finds a zero.
 */
#ifndef SIEVE_BPF_LOOKUP_BLOOM_H
#define SIEVE_BPF_LOOKUP_BLOOM_H

#include <sieve/bloom.h>

#include "fetch.h"

/*
 * True if all bits of one group of hashes are set. A global function, so that the verifier checks it once. It
 * takes the set's map index, since a map cannot be passed. A group has up to 32 lines, too many to request
 * before the first is tested; but a probe's line does not depend on the one before it, and two lines are
 * enough to reject most non-members.
 */
__noinline int sieve_lookup_bloom(__u32 index, __u64 locate, __u64 test) {
    struct sieve_hash hash = {locate, test};
    struct sieve_bloom_probe probe = sieve_bloom_first(hash);
    const struct sieve_lookup* lookup;
    __u32 hashes, buckets, i;
    void* filter;

    lookup = sieve_fetch_lookup(index, &filter);
    if (!lookup) return 0;
    hashes = lookup->hashes;
    buckets = lookup->buckets;
    for (i = 0; i < SIEVE_BLOOM_MAX_HASHES && i < hashes; i++) {
        const struct sieve_line* line = sieve_fetch(filter, sieve_bloom_line(&probe, buckets));

        if (!line || !sieve_bloom_test(line, &probe)) return 0;
        sieve_bloom_advance(&probe);
    }
    return 1;
}

/* True if all bits of one of the key's groups of hashes are set. */
static __always_inline int sieve_lookup_bloom_groups(const struct sieve_lookup* lookup, __u32 index,
                                                     struct sieve_hash hash) {
    __u32 groups = lookup->choices, group;

    for (group = 0; group < SIEVE_BLOOM_MAX_GROUPS && group < groups; group++) {
        if (sieve_lookup_bloom(index, hash.locate, hash.test)) return 1;
        hash = sieve_bloom_next_group(hash);
    }
    return 0;
}

#endif
