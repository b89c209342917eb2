/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The d-left filters, plain and counting: one line a subtable, all requested before any is tested.
 */
#ifndef SIEVE_BPF_LOOKUP_DLEFT_H
#define SIEVE_BPF_LOOKUP_DLEFT_H

#include <sieve/ddlcbf.h>
#include <sieve/dleft.h>

#include "fetch.h"

/* Global functions, so that the verifier checks them once. They take the set's map index. */
__noinline int sieve_lookup_dleft(__u32 index, __u64 locate, __u64 test) {
    const struct sieve_line* line[SIEVE_DLEFT_MAX_SUBTABLES];
    __u32 at[SIEVE_DLEFT_MAX_SUBTABLES], position[SIEVE_DLEFT_MAX_SUBTABLES];
    struct sieve_hash hash = {locate, test};
    const struct sieve_lookup* lookup;
    void* filter;

    lookup = sieve_fetch_lookup(index, &filter);
    if (!lookup) return 0;
    sieve_dleft_locate(lookup, hash, at, position);
    line[0] = sieve_fetch(filter, at[0]);
    line[1] = sieve_fetch(filter, at[1]);
    line[2] = line[3] = line[0]; /* if there are fewer subtables */
    if (lookup->choices > 2) line[2] = sieve_fetch(filter, at[2]);
    if (lookup->choices > 3) line[3] = sieve_fetch(filter, at[3]);
    if (!line[0] || !line[1] || !line[2] || !line[3]) return 0;
    return sieve_dleft_test(lookup, hash, line, position);
}

/*
 * The filters that builders make, without a chain of look-ups. Static functions, since a global one cannot
 * take the map.
 */
static __noinline int sieve_lookup_dleft64(void* filter, const struct sieve_lookup* lookup, __u64 locate,
                                           __u64 test) {
    const __u32 lines = lookup->buckets, buckets = lines << SIEVE_DLEFT64_LINE_SHIFT;
    const __u32 first = sieve_reduce((__u32)locate, buckets), second = sieve_reduce(locate >> 32, buckets);
    const struct sieve_line *a, *b;

    a = sieve_fetch(filter, first >> SIEVE_DLEFT64_LINE_SHIFT);
    b = sieve_fetch(filter, lines + (second >> SIEVE_DLEFT64_LINE_SHIFT));
    if (!a || !b) return 0;
    return sieve_dleft64_test(a->word[first & 7], b->word[second & 7], test);
}

static __noinline int sieve_lookup_dleft128(void* filter, const struct sieve_lookup* lookup, __u64 locate,
                                            __u64 test) {
    const __u32 lines = lookup->buckets, buckets = lines << SIEVE_DLEFT128_LINE_SHIFT;
    const __u32 first = sieve_reduce((__u32)locate, buckets), second = sieve_reduce(locate >> 32, buckets);
    const struct sieve_line *a, *b;

    a = sieve_fetch(filter, first >> SIEVE_DLEFT128_LINE_SHIFT);
    b = sieve_fetch(filter, lines + (second >> SIEVE_DLEFT128_LINE_SHIFT));
    if (!a || !b) return 0;
    return sieve_dleft128_test(&a->word[2 * (first & 3)], &b->word[2 * (second & 3)], test);
}

__noinline int sieve_lookup_ddlcbf(__u32 index, __u64 locate, __u64 test) {
    const struct sieve_line* line[SIEVE_DLEFT_MAX_SUBTABLES];
    struct sieve_ddlcbf_address found[SIEVE_DLEFT_MAX_SUBTABLES] = {};
    struct sieve_hash hash = {locate, test};
    const struct sieve_lookup* lookup;
    void* filter;

    lookup = sieve_fetch_lookup(index, &filter);
    if (!lookup) return 0;
    sieve_ddlcbf_locate(lookup, hash, found);
    line[0] = sieve_fetch(filter, found[0].line);
    line[1] = sieve_fetch(filter, found[1].line);
    line[2] = line[3] = line[0];
    if (lookup->choices > 2) line[2] = sieve_fetch(filter, found[2].line);
    if (lookup->choices > 3) line[3] = sieve_fetch(filter, found[3].line);
    if (!line[0] || !line[1] || !line[2] || !line[3]) return 0;
    return sieve_ddlcbf_test(lookup, line, found);
}

/* One bucket of a usual counting filter: its remainder to look for, and its word. */
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

/*
 * Any counting filter, subtable after subtable: for prefix sets, whose path leaves little of the stack. No
 * subtable waits for another one, since the processor predicts the branch on an answer (no match) long before
 * the line arrives.
 */
static __noinline int sieve_lookup_slim_ddlcbf(void* filter, const struct sieve_lookup* lookup, __u64 locate,
                                               __u64 test) {
    const struct sieve_hash hash = {locate, test};
    const int usual = sieve_ddlcbf_is_usual(lookup);
    struct sieve_ddlcbf_asked asked;
    __u64 hit;
    __u32 i;

#pragma unroll
    for (i = 0; i < SIEVE_DLEFT_MAX_SUBTABLES; i++) {
        if (i >= lookup->choices || !sieve_ddlcbf_ask(filter, lookup, hash, i, &asked)) return 0;
        if (SIEVE_LIKELY(usual))
            hit = sieve_ddlcbf_plain(asked.word, asked.remainder);
        else
            hit = sieve_ddlcbf_bucket(asked.word, asked.remainder, lookup->hashes & SIEVE_DDLCBF_COUNTER);
        if (hit) return 1;
    }
    return 0;
}

#endif
