/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kind `ranges`: exact sets of addresses, prefixes and ranges. A table's line, then mostly one more.
 */
#ifndef SIEVE_BPF_LOOKUP_RANGES_H
#define SIEVE_BPF_LOOKUP_RANGES_H

#include <sieve/ranges.h>

#include "fetch.h"

/* Global functions, so that the verifier checks them once. A map cannot be passed, so they take the set's map
 * index; its header can. */
__noinline int sieve_lookup_ranges_fine(const struct sieve_lookup* lookup, const struct sieve_key* key,
                                        __u32 index) {
    void* filter = bpf_map_lookup_elem(&sieve_sets, &index);

    if (!lookup || !key || !filter) return 0;
    return sieve_ranges_holds_fine(lookup, sieve_address_upper(key, lookup->fields),
                                   sieve_address_lower(key, lookup->fields), sieve_fetch, filter);
}

__noinline int sieve_lookup_ranges(const struct sieve_lookup* lookup, const struct sieve_key* key,
                                   __u32 index) {
    void* filter = bpf_map_lookup_elem(&sieve_sets, &index);
    int holds;

    if (!lookup || !key || !filter) return 0;
    holds = sieve_ranges_holds(lookup, sieve_address_upper(key, lookup->fields),
                               sieve_address_lower(key, lookup->fields), sieve_fetch, filter);
    if (SIEVE_UNLIKELY(holds == SIEVE_RANGES_ASK_FINE)) return sieve_lookup_ranges_fine(lookup, key, index);
    return holds;
}

#endif
