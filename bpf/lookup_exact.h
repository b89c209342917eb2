/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kind `exact`: single addresses, without false positives. Both lines are requested before either is
 * tested, so that their cache misses overlap.
 */
#ifndef SIEVE_BPF_LOOKUP_EXACT_H
#define SIEVE_BPF_LOOKUP_EXACT_H

#include <sieve/exact_table.h>

#include "fetch.h"

/* As many lanes as a word can have, each of which other packets mark once. */
#define SIEVE_EXACT_MOST_LANES 16

/* Whether a packet of the key is here. Otherwise a controller asks, or the sets are asked about a packet that
 * another one quotes (reply.h), which anybody can forge. */
static __always_inline int sieve_may_mark(void) {
    __u32 zero = 0, *is_quoted = bpf_map_lookup_elem(&sieve_quoted, &zero);

    return !sieve_control.trial && is_quoted && !*is_quoted;
}

/*
 * Marks the key of a lane, unless the lane has changed since `word` was read. `lane`: its bits. Other packets
 * may mark other lanes of the word meanwhile. Keys leave and enter the lane by stores to the whole word, so
 * no mark gets to a key that no packet asked for.
 */
static __noinline int sieve_mark_exact(const struct sieve_line* line, __u32 index, __u64 word, __u64 mark,
                                       __u64 lane) {
    __u64* at = (__u64*)&line->word[index % SIEVE_LINE_WORDS];
    int i;

    if (!sieve_may_mark()) return 0;
    for (i = 0; i < SIEVE_EXACT_MOST_LANES; i++) {
        const __u64 seen = __sync_val_compare_and_swap(at, word, word | mark);

        if (seen == word || ((seen ^ word) & lane) || (seen & mark)) break;
        word = seen;
    }
    return 0;
}

static __always_inline int sieve_lookup_exact_ipv4(void* filter, const struct sieve_exact* exact,
                                                   __u32 address) {
    const struct sieve_exact_place at = sieve_exact_locate(exact, sieve_exact_permute(exact, address));
    const struct sieve_line* first = sieve_fetch(filter, sieve_exact_line(at.first));
    const struct sieve_line* second = sieve_fetch(filter, sieve_exact_line(at.second));
    struct sieve_exact_match match;
    __u64 a, b, heads, missing_first, missing_second;

    if (!first || !second) return 0;
    a = sieve_exact_load(first, sieve_exact_index(at.first));
    b = sieve_exact_load(second, sieve_exact_index(at.second));
    match = sieve_exact_compare(exact, a, b, at.rest);
    heads = sieve_exact_heads(exact);
    if (!((match.first | match.second) & heads)) return 0;
    if (!exact->marks) return 1;
    /* No branch on which word it was: nobody could predict it. */
    missing_first = sieve_exact_mark(match.first & heads) & ~a;
    missing_second = sieve_exact_mark(match.second & heads) & ~b;
    if (SIEVE_LIKELY(!(missing_first | missing_second))) return 1;
    if (missing_first)
        sieve_mark_exact(first, sieve_exact_index(at.first), a, missing_first,
                         sieve_exact_lane_below(exact, missing_first));
    if (missing_second)
        sieve_mark_exact(second, sieve_exact_index(at.second), b, missing_second,
                         sieve_exact_lane_below(exact, missing_second));
    return 1;
}

static __always_inline int sieve_lookup_exact_ipv6(void* filter, const struct sieve_exact* exact, __u64 upper,
                                                   __u64 lower) {
    const struct sieve_exact_ipv6* part = (const struct sieve_exact_ipv6*)sieve_fetch(filter, 0);
    const struct sieve_line *first, *second;
    struct sieve_exact_lines at;

    if (!part || part->lines == 0) return 0;
    at = sieve_exact_locate_ipv6(part, upper, lower);
    first = sieve_fetch(filter, sieve_exact_ipv6_line(exact) + at.first);
    second = sieve_fetch(filter, sieve_exact_ipv6_line(exact) + at.second);
    if (!first || !second) return 0;
    return (sieve_exact_test_ipv6(first, upper, lower, 0) | sieve_exact_test_ipv6(second, upper, lower, 0)) !=
           0;
}

/* Nothing is put in the place of an address before this packet is done, so the mark gets to no other one. */
static __noinline int sieve_mark_exact_place(const struct sieve_line* line, __u32 place, __u64 upper) {
    __u64* at = (__u64*)&line->word[place % SIEVE_EXACT_IPV6_WAYS];

    if (sieve_may_mark()) (void)__sync_val_compare_and_swap(at, upper, upper ^ SIEVE_EXACT_IPV6_MARK);
    return 0;
}

/* Marks the address if the line has it unmarked. Mostly it has not, which the processor predicts. */
static __always_inline void sieve_mark_exact_ipv6(const struct sieve_line* line, __u64 upper, __u64 lower) {
    int i;

#pragma GCC unroll 4
    for (i = 0; i < SIEVE_EXACT_IPV6_WAYS; i++)
        if (SIEVE_UNLIKELY(sieve_exact_load(line, i) == upper &&
                           sieve_exact_load(line, i + SIEVE_EXACT_IPV6_WAYS) == lower))
            sieve_mark_exact_place(line, i, upper);
}

/* The same in a table with marks. */
static __always_inline int sieve_lookup_exact_marked_ipv6(void* filter, const struct sieve_exact* exact,
                                                          __u64 upper, __u64 lower) {
    const struct sieve_exact_ipv6* part = (const struct sieve_exact_ipv6*)sieve_fetch(filter, 0);
    const struct sieve_line *first, *second;
    struct sieve_exact_lines at;

    if (!part || part->lines == 0) return 0;
    at = sieve_exact_locate_ipv6(part, upper, lower);
    first = sieve_fetch(filter, sieve_exact_ipv6_line(exact) + at.first);
    second = sieve_fetch(filter, sieve_exact_ipv6_line(exact) + at.second);
    if (!first || !second) return 0;
    if (!(sieve_exact_test_ipv6(first, upper, lower, 1) | sieve_exact_test_ipv6(second, upper, lower, 1)))
        return 0;
    if (sieve_exact_unmarked(upper) != upper) return 0;
    sieve_mark_exact_ipv6(first, upper, lower);
    sieve_mark_exact_ipv6(second, upper, lower);
    return 1;
}

/* Where a key was found, if it was: the value of its entry. */
#define SIEVE_EXACT_NOT_FOUND (-1)

static __always_inline int sieve_exact_value_of_ipv4(void* filter, const struct sieve_exact* exact,
                                                     __u32 address) {
    const struct sieve_exact_place at = sieve_exact_locate(exact, sieve_exact_permute(exact, address));
    const struct sieve_line* first = sieve_fetch(filter, sieve_exact_line(at.first));
    const struct sieve_line* second = sieve_fetch(filter, sieve_exact_line(at.second));
    struct sieve_exact_match match;
    __u64 a, b;

    if (!first || !second) return SIEVE_EXACT_NOT_FOUND;
    a = sieve_exact_load(first, sieve_exact_index(at.first));
    b = sieve_exact_load(second, sieve_exact_index(at.second));
    match = sieve_exact_find(exact, a, b, at.rest);
    if (match.first) return (int)sieve_exact_lane_value(exact, a, match.first);
    if (match.second) return (int)sieve_exact_lane_value(exact, b, match.second);
    return SIEVE_EXACT_NOT_FOUND;
}

static __always_inline int sieve_exact_value_of_ipv6(void* filter, const struct sieve_exact* exact,
                                                     __u64 upper, __u64 lower) {
    const struct sieve_exact_ipv6* part = (const struct sieve_exact_ipv6*)sieve_fetch(filter, 0);
    const struct sieve_line *line, *second, *values;
    struct sieve_exact_lines at;

    if (!part || part->lines == 0) return SIEVE_EXACT_NOT_FOUND;
    at = sieve_exact_locate_ipv6(part, upper, lower);
    line = sieve_fetch(filter, sieve_exact_ipv6_line(exact) + at.first);
    second = sieve_fetch(filter, sieve_exact_ipv6_line(exact) + at.second);
    if (!line || !second) return SIEVE_EXACT_NOT_FOUND;
    if (!sieve_exact_test_ipv6(line, upper, lower, 0)) {
        if (!sieve_exact_test_ipv6(second, upper, lower, 0)) return SIEVE_EXACT_NOT_FOUND;
        line = second;
        at.first = at.second;
    }
    values = sieve_fetch(filter, sieve_exact_ipv6_line(exact) + sieve_exact_value_line(part, at.first));
    if (!values) return SIEVE_EXACT_NOT_FOUND;
    return (int)sieve_exact_value_ipv6(line, sieve_exact_load(values, sieve_exact_value_index(at.first)),
                                       upper, lower);
}

/*
 * Of a table with values. Each caller has a copy: for code that reads filters of two maps of maps, the kernel
 * does not inline the fetches.
 */
static __always_inline int sieve_exact_value_of(void* filter, const struct sieve_exact* exact, __u64 upper,
                                                __u64 lower) {
    if (SIEVE_LIKELY(sieve_family(upper, lower) == SIEVE_FAMILY_V4))
        return sieve_exact_value_of_ipv4(filter, exact, (__u32)lower);
    return sieve_exact_value_of_ipv6(filter, exact, upper, lower);
}

/* The same for a table with values. Only a match reads the clock. */
static __noinline int sieve_lookup_exact_values(void* filter, const struct sieve_exact* exact, __u64 upper,
                                                __u64 lower) {
    const int value = sieve_exact_value_of(filter, exact, upper, lower);
    const struct sieve_exact_ipv6* part;

    if (value < 0) return 0;
    part = (const struct sieve_exact_ipv6*)sieve_fetch(filter, 0);
    if (!part || part->meaning != SIEVE_EXACT_ENDS) return 1;
    return !sieve_exact_ended((__u32)value, sieve_exact_unit(exact, part, bpf_ktime_get_coarse_ns()));
}

/* What is not the usual case. A static function, since a global one cannot take the map. */
static __noinline int sieve_lookup_exact_other(void* filter, const struct sieve_exact* exact, __u64 upper,
                                               __u64 lower) {
    if (exact->value_bits) return sieve_lookup_exact_values(filter, exact, upper, lower);
    if (exact->marks) return sieve_lookup_exact_marked_ipv6(filter, exact, upper, lower);
    return sieve_lookup_exact_ipv6(filter, exact, upper, lower);
}

/* IPv4 addresses without values take no call but those of the fetches: where returns are guarded against
 * speculation, each costs as much as the comparison. */
static __always_inline int sieve_lookup_exact(void* filter, const struct sieve_lookup* lookup, __u64 upper,
                                              __u64 lower) {
    const struct sieve_exact* exact = sieve_exact_of(lookup);

    if (SIEVE_UNLIKELY(exact->value_bits || sieve_family(upper, lower) != SIEVE_FAMILY_V4))
        return sieve_lookup_exact_other(filter, exact, upper, lower);
    return sieve_lookup_exact_ipv4(filter, exact, (__u32)lower);
}

#endif
