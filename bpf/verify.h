/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is the filter's match a true one? Only sets with verification ask, and only after a match.
 */
#ifndef SIEVE_BPF_VERIFY_H
#define SIEVE_BPF_VERIFY_H

#include <sieve/exact.h>

#include "fetch.h"
#include "parse.h"

/*
 * True if the exact set at that map index holds a key of a prefix set, cut as the packed probe says. A global
 * function, so that the verifier checks it once and not in each iteration over the probes.
 */
__noinline int sieve_ask_exact_probe(const struct sieve_key* key, __u32 index, __u32 probe) {
    const struct sieve_lookup* lookup;
    struct sieve_key asked;
    void *filter, *exact;

    lookup = sieve_fetch_lookup(index, &filter);
    exact = bpf_map_lookup_elem(&sieve_exact, &index);
    if (!key || !lookup || !exact) return 1;
    if (sieve_is_one_address(lookup->fields))
        sieve_exact_of_prefix(sieve_address_upper(key, lookup->fields),
                              sieve_address_lower(key, lookup->fields), probe & 0xff, &asked);
    else
        sieve_store_key(key, probe, &asked);
    return bpf_map_lookup_elem(exact, &asked) != 0;
}

/*
 * True if the exact set at that map index holds the key; of a prefix set, if it holds the prefix of any probe
 * length, whichever length the filter matched. Without an exact set the filter's answer counts: prefer a
 * false positive to a missed member. A global function, so that the verifier checks it once and it has a
 * stack of its own.
 */
__noinline int sieve_ask_exact(const struct sieve_key* key, __u32 index) {
    const struct sieve_lookup* lookup;
    const struct sieve_probes* probes;
    __u32 line = SIEVE_PROBES_LINE, family, fields, i;
    struct sieve_key asked;
    void *filter, *exact;

    lookup = sieve_fetch_lookup(index, &filter);
    exact = bpf_map_lookup_elem(&sieve_exact, &index);
    if (!key || !lookup || !exact) return 1;
    fields = lookup->fields;
    if (!lookup->probes) {
        sieve_exact_of_key(key, fields, &asked);
        return bpf_map_lookup_elem(exact, &asked) != 0;
    }
    probes = bpf_map_lookup_elem(filter, &line);
    if (!probes) return 1;
    family = sieve_key_family(key, fields) & 1;
    for (i = 0; i < SIEVE_MAX_PROBES; i++) {
        if (i >= probes->count[family]) return 0;
        if (sieve_ask_exact_probe(key, index,
                                  sieve_pack_probe(probes->length[family][i], probes->destination[family][i],
                                                   probes->transport[family][i])))
            return 1;
    }
    return 0;
}

/* Corrects the filter's answer for a packet (`hit`) and counts. A global function, too. */
__noinline int sieve_verify(const struct sieve_parsed* parsed, struct sieve_stats* stats, __u32 index,
                            int hit) {
    struct sieve_verified* verified;

    if (!parsed || !stats) return hit; /* cannot happen, but the verifier asks */
    verified = &stats->verified[index & (SIEVE_SLOTS - 1)];
    if (hit && sieve_ask_exact(&parsed->key, index)) return 1;
    verified->non_members++;
    if (hit) verified->avoided++;
    return 0;
}

#endif
