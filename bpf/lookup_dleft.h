/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The d-left filters, plain and counting: one line a subtable, all requested before any is tested.
 */
#ifndef SIEVE_BPF_LOOKUP_DLEFT_H
#define SIEVE_BPF_LOOKUP_DLEFT_H

#include <sieve/ddlcbf.h>
#include <sieve/dleft.h>

#include "fetch.h"

/* Lines 2 and 3 repeat the first where there are fewer subtables. False if a line is not there. */
static __always_inline int sieve_fetch_subtables(void* filter, __u32 subtables, const __u32* at,
                                                 const struct sieve_line** line) {
    line[0] = sieve_fetch(filter, at[0]);
    line[1] = sieve_fetch(filter, at[1]);
    line[2] = line[3] = line[0];
    if (subtables > 2) line[2] = sieve_fetch(filter, at[2]);
    if (subtables > 3) line[3] = sieve_fetch(filter, at[3]);
    return line[0] && line[1] && line[2] && line[3];
}

/* Global functions, so that the verifier checks them once; they take the place of the set. */
__noinline int sieve_lookup_dleft(__u32 place, __u64 locate, __u64 test) {
    const struct sieve_line* line[SIEVE_DLEFT_MAX_SUBTABLES];
    __u32 at[SIEVE_DLEFT_MAX_SUBTABLES], slot[SIEVE_DLEFT_MAX_SUBTABLES];
    struct sieve_hash hash = {locate, test};
    const struct sieve_lookup* lookup;
    void* filter;

    lookup = sieve_fetch_lookup(place, &filter);
    if (!lookup) return 0;
    sieve_dleft_locate(lookup, hash, at, slot);
    if (!sieve_fetch_subtables(filter, lookup->choices, at, line)) return 0;
    return sieve_dleft_test(lookup, hash, line, slot);
}

__noinline int sieve_lookup_ddlcbf(__u32 place, __u64 locate, __u64 test) {
    const struct sieve_line* line[SIEVE_DLEFT_MAX_SUBTABLES];
    struct sieve_ddlcbf_place found[SIEVE_DLEFT_MAX_SUBTABLES] = {};
    struct sieve_hash hash = {locate, test};
    const struct sieve_lookup* lookup;
    __u32 at[SIEVE_DLEFT_MAX_SUBTABLES];
    void* filter;
    int i;

    lookup = sieve_fetch_lookup(place, &filter);
    if (!lookup) return 0;
    sieve_ddlcbf_locate(lookup, hash, found);
    for (i = 0; i < SIEVE_DLEFT_MAX_SUBTABLES; i++) at[i] = found[i].line;
    if (!sieve_fetch_subtables(filter, lookup->choices, at, line)) return 0;
    return sieve_ddlcbf_test(lookup, line, found);
}

#endif
