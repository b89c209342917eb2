/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The d-left filters, plain and counting: one line a subtable. The forms that builders make request all lines
 * before they test any.
 */
#ifndef SIEVE_BPF_LOOKUP_DLEFT_H
#define SIEVE_BPF_LOOKUP_DLEFT_H

#include <sieve/ddlcbf.h>
#include <sieve/dleft.h>

#include "fetch.h"

/*
 * Any plain filter, subtable after subtable. A global function, so that the verifier checks it once; it takes
 * the set's map index. No subtable waits for another one, since the processor predicts the branch on an
 * answer (no match) long before the line arrives.
 */
__noinline int sieve_lookup_any_dleft(__u32 index, __u64 locate, __u64 test) {
    const struct sieve_hash hash = {locate, test};
    const struct sieve_lookup* lookup;
    const struct sieve_line* line;
    __u32 at, position, i;
    void* filter;

    lookup = sieve_fetch_lookup(index, &filter);
    if (!lookup) return 0;
    for (i = 0; i < SIEVE_DLEFT_MAX_SUBTABLES && i < lookup->choices; i++) {
        at = sieve_dleft_locate_in(lookup, hash, i, &position);
        line = sieve_fetch(filter, at);
        if (!line) return 0;
        if (sieve_dleft_in_line(lookup, line, position, test)) return 1;
    }
    return 0;
}

/*
 * The filters that builders make, without a chain of look-ups. Static functions, since a global one cannot
 * take the map.
 */
static __noinline int sieve_lookup_dleft64(void* filter, const struct sieve_lookup* lookup, __u64 locate,
                                           __u64 test) {
    const __u32 lines = lookup->buckets, buckets = lines << SIEVE_DLEFT64_LINE_SHIFT;
    const __u32 further = sieve_same_shard((__u32)locate, locate >> 32, sieve_inside_shard(lookup));
    const __u32 first = sieve_reduce((__u32)locate, buckets), second = sieve_reduce(further, buckets);
    const struct sieve_line *a, *b;

    a = sieve_fetch(filter, first >> SIEVE_DLEFT64_LINE_SHIFT);
    b = sieve_fetch(filter, lines + (second >> SIEVE_DLEFT64_LINE_SHIFT));
    if (!a || !b) return 0;
    return sieve_dleft64_test(a->word[first & 7], b->word[second & 7], test);
}

static __noinline int sieve_lookup_dleft128(void* filter, const struct sieve_lookup* lookup, __u64 locate,
                                            __u64 test) {
    const __u32 lines = lookup->buckets, buckets = lines << SIEVE_DLEFT128_LINE_SHIFT;
    const __u32 further = sieve_same_shard((__u32)locate, locate >> 32, sieve_inside_shard(lookup));
    const __u32 first = sieve_reduce((__u32)locate, buckets), second = sieve_reduce(further, buckets);
    const struct sieve_line *a, *b;

    a = sieve_fetch(filter, first >> SIEVE_DLEFT128_LINE_SHIFT);
    b = sieve_fetch(filter, lines + (second >> SIEVE_DLEFT128_LINE_SHIFT));
    if (!a || !b) return 0;
    return sieve_dleft128_test(&a->word[2 * (first & 3)], &b->word[2 * (second & 3)], test);
}

/* A plain filter. */
static __always_inline int sieve_lookup_dleft(void* filter, const struct sieve_lookup* lookup, __u32 index,
                                              struct sieve_hash hash) {
    if (SIEVE_UNLIKELY(!sieve_dleft_is_usual(lookup)))
        return sieve_lookup_any_dleft(index, hash.locate, hash.test);
    if (lookup->kind == SIEVE_KIND_DLEFT64)
        return sieve_lookup_dleft64(filter, lookup, hash.locate, hash.test);
    return sieve_lookup_dleft128(filter, lookup, hash.locate, hash.test);
}

/* One bucket of a counting filter: its remainder to look for, and its word. */
struct sieve_ddlcbf_asked {
    __u64 remainder;
    __u64 word;
};

/* Fetches the bucket of a subtable, without waiting for it. False if the line is not there. */
static __always_inline int sieve_ddlcbf_ask(void* filter, const struct sieve_lookup* lookup,
                                            struct sieve_hash hash, __u32 subtable,
                                            struct sieve_ddlcbf_asked* asked) {
    const __u32 bits = lookup->hashes >> SIEVE_DDLCBF_MINIMAL_SHIFT, lines = lookup->buckets;
    const struct sieve_ddlcbf_pair pair =
        sieve_ddlcbf_pair_of(hash, subtable, lines << SIEVE_DDLCBF_LINE_SHIFT, bits);
    const struct sieve_line* line =
        sieve_fetch(filter, subtable * lines + (pair.bucket >> SIEVE_DDLCBF_LINE_SHIFT));

    if (!line) return 0;
    asked->word = sieve_ddlcbf_load(line, pair.bucket & 7);
    asked->remainder = sieve_ddlcbf_remainder(hash.test, pair.minimal, bits);
    return 1;
}

/* The counting filters that builders make. Every word is loaded before any is looked at. */
static __noinline int sieve_lookup_usual_ddlcbf(void* filter, const struct sieve_lookup* lookup, __u64 locate,
                                                __u64 test) {
    struct sieve_ddlcbf_asked asked[SIEVE_DLEFT_MAX_SUBTABLES];
    const struct sieve_hash hash = {locate, test};

    if (!sieve_ddlcbf_ask(filter, lookup, hash, 0, &asked[0]) ||
        !sieve_ddlcbf_ask(filter, lookup, hash, 1, &asked[1]) ||
        !sieve_ddlcbf_ask(filter, lookup, hash, 2, &asked[2]) ||
        !sieve_ddlcbf_ask(filter, lookup, hash, 3, &asked[3]))
        return 0;
    return (sieve_ddlcbf_plain(asked[0].word, asked[0].remainder) |
            sieve_ddlcbf_plain(asked[1].word, asked[1].remainder) |
            sieve_ddlcbf_plain(asked[2].word, asked[2].remainder) |
            sieve_ddlcbf_plain(asked[3].word, asked[3].remainder)) != 0;
}

/* Any counting filter, subtable after subtable, like sieve_lookup_any_dleft. */
__noinline int sieve_lookup_any_ddlcbf(__u32 index, __u64 locate, __u64 test) {
    const struct sieve_hash hash = {locate, test};
    const struct sieve_lookup* lookup;
    struct sieve_ddlcbf_asked asked;
    void* filter;
    __u32 i;

    lookup = sieve_fetch_lookup(index, &filter);
    if (!lookup) return 0;
    for (i = 0; i < SIEVE_DLEFT_MAX_SUBTABLES && i < lookup->choices; i++) {
        if (!sieve_ddlcbf_ask(filter, lookup, hash, i, &asked)) return 0;
        if (sieve_ddlcbf_bucket(asked.word, asked.remainder, lookup->hashes & SIEVE_DDLCBF_COUNTER)) return 1;
    }
    return 0;
}

/* A counting filter. */
static __always_inline int sieve_lookup_ddlcbf(void* filter, const struct sieve_lookup* lookup, __u32 index,
                                               struct sieve_hash hash) {
    if (SIEVE_LIKELY(sieve_ddlcbf_is_usual(lookup)))
        return sieve_lookup_usual_ddlcbf(filter, lookup, hash.locate, hash.test);
    return sieve_lookup_any_ddlcbf(index, hash.locate, hash.test);
}

#endif
