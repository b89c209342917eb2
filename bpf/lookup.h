/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is the key in the filter? Locate, fetch, test: the shared headers locate and test, this file fetches.
 */
#ifndef SIEVE_BPF_LOOKUP_H
#define SIEVE_BPF_LOOKUP_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <sieve/blocked.h>
#include <sieve/prefix.h>

#include "fetch.h"
#include "lookup_bloom.h"
#include "lookup_dleft.h"
#include "lookup_exact.h"
#include "lookup_ranges.h"
#include "lookup_records.h"
#include "lookup_xorsat.h"

/* All lines are requested before any is tested, so that their cache misses overlap. */
static __always_inline int sieve_lookup_blocked(void* filter, const struct sieve_lookup* lookup,
                                                struct sieve_hash hash) {
    const struct sieve_line* line[SIEVE_MAX_CHOICES];
    __u32 at[SIEVE_MAX_CHOICES];

    sieve_blocked_locate(lookup, hash, at);
    line[0] = sieve_fetch(filter, at[0]);
    if (!line[0]) return 0;
    line[1] = line[2] = line[0];
    if (lookup->choices > 1) line[1] = sieve_fetch(filter, at[1]);
    if (lookup->choices > 2) line[2] = sieve_fetch(filter, at[2]);
    if (!line[1] || !line[2]) return 0;
    return sieve_blocked_test(lookup, hash, line);
}

/* Asks a filter of any kind that stores hashes. */
static __always_inline int sieve_lookup_hash(void* filter, const struct sieve_lookup* lookup, __u32 index,
                                             struct sieve_hash hash) {
    if (lookup->kind == SIEVE_KIND_BLOCKED) return sieve_lookup_blocked(filter, lookup, hash);
    if (lookup->kind == SIEVE_KIND_XORSAT) return sieve_lookup_xorsat(filter, lookup, hash.locate, hash.test);
    if (lookup->kind == SIEVE_KIND_BLOOM) return sieve_lookup_bloom_groups(lookup, index, hash);
    if (lookup->kind == SIEVE_KIND_DDLCBF) return sieve_lookup_ddlcbf(filter, lookup, index, hash);
    if (lookup->kind == SIEVE_KIND_DLEFT64 || lookup->kind == SIEVE_KIND_DLEFT128)
        return sieve_lookup_dleft(filter, lookup, index, hash);
    return 0;
}

/*
 * The hash of what a probe of several fields asks for. A function of its own, so that the stored key has left
 * the stack before the filter is asked.
 */
static __noinline void sieve_hash_probe(const struct sieve_key* key, __u32 probe,
                                        const struct sieve_lookup* lookup, struct sieve_hash* hash) {
    struct sieve_key stored;

    sieve_store_key(key, probe, &stored);
    *hash = sieve_hash_stored(&stored, lookup->hash_key);
}

/*
 * One probe of a prefix set. A global function, so that the verifier checks it once and not in each iteration
 * over the probes. `probe` is packed; that of a set of one address is its length.
 */
__noinline int sieve_lookup_probe(const struct sieve_key* key, __u32 index, __u32 probe) {
    const struct sieve_lookup* lookup;
    struct sieve_hash hash;
    void* filter;

    lookup = sieve_fetch_lookup(index, &filter);
    if (!lookup || !key) return 0;
    if (SIEVE_LIKELY(sieve_is_one_address(lookup->fields))) {
        const __u64 upper = sieve_address_upper(key, lookup->fields);
        const __u64 lower = sieve_address_lower(key, lookup->fields);

        hash = sieve_hash_prefix(upper, lower, probe, lookup->hash_key);
    } else {
        sieve_hash_probe(key, probe, lookup, &hash);
    }
    return sieve_lookup_hash(filter, lookup, index, hash);
}

/*
 * A prefix set of several fields. A global function, so that sets of one address have a shorter way.
 */
__noinline int sieve_lookup_compound(const struct sieve_key* key, __u32 index) {
    const struct sieve_lookup* lookup;
    const struct sieve_probes* probes;
    __u32 line = SIEVE_PROBES_LINE, family, i;
    void* filter;

    lookup = sieve_fetch_lookup(index, &filter);
    if (!lookup || !key) return 0;
    probes = bpf_map_lookup_elem(filter, &line);
    if (!probes) return 0;
    family = sieve_key_family(key, lookup->fields) & 1;
    for (i = 0; i < SIEVE_MAX_PROBES; i++) {
        if (i >= probes->count[family]) return 0;
        if (sieve_lookup_probe(key, index,
                               sieve_pack_probe(probes->length[family][i], probes->destination[family][i],
                                                probes->transport[family][i])))
            return 1;
    }
    return 0;
}

/*
 * A prefix set: one probe for each length of the address's family. Probes do not wait for each other: the
 * processor predicts the branch on an answer (no match) long before its lines arrive, so that the lines of
 * all probes are fetched together.
 */
static __always_inline int sieve_lookup_prefixes(void* filter, const struct sieve_lookup* lookup, __u32 index,
                                                 const struct sieve_key* key) {
    const struct sieve_probes* probes;
    __u32 line = SIEVE_PROBES_LINE, fields = lookup->fields, family, i;

    if (!sieve_is_one_address(fields)) return sieve_lookup_compound(key, index);
    probes = bpf_map_lookup_elem(filter, &line);
    if (!probes) return 0;
    family = sieve_key_family(key, fields);
    for (i = 0; i < SIEVE_MAX_PROBES; i++) {
        if (i >= probes->count[family & 1]) return 0;
        if (sieve_lookup_probe(key, index, probes->length[family & 1][i])) return 1;
    }
    return 0;
}

/* True if the filter at that map index holds the key. A set whose fields the packet lacks never matches. */
static __always_inline int sieve_lookup_key(void* filter, __u32 index, const struct sieve_key* key,
                                            __u32 have) {
    const struct sieve_lookup* lookup;
    struct sieve_hash hash;
    __u32 line = 0;

    lookup = bpf_map_lookup_elem(filter, &line);
    if (!lookup || (lookup->fields & ~have)) return 0;
    if (lookup->kind == SIEVE_KIND_EXACT) {
        if (SIEVE_UNLIKELY(!sieve_is_one_address(lookup->fields))) return sieve_lookup_records(key, index);
        return sieve_lookup_exact(filter, lookup, sieve_address_upper(key, lookup->fields),
                                  sieve_address_lower(key, lookup->fields));
    }
    if (SIEVE_UNLIKELY(lookup->probes)) {
        if (lookup->kind == SIEVE_KIND_RANGES) return sieve_lookup_ranges(lookup, key, index);
        return sieve_lookup_prefixes(filter, lookup, index, key);
    }
    hash = sieve_hash_key(key, lookup->hash_key, lookup->fields);
    return sieve_lookup_hash(filter, lookup, index, hash);
}

#endif
