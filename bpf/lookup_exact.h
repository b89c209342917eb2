/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kind `exact`: single addresses, without false positives. Both lines are requested before either is
 * tested, so that their cache misses overlap.
 */
#ifndef SIEVE_BPF_LOOKUP_EXACT_H
#define SIEVE_BPF_LOOKUP_EXACT_H

#include <sieve/exact_table.h>

#include "fetch.h"

static __always_inline int sieve_lookup_exact_ipv4(void* filter, const struct sieve_exact* exact,
                                                   __u32 address) {
    const struct sieve_exact_place at = sieve_exact_locate(exact, sieve_exact_permute(exact, address));
    const struct sieve_line* first = sieve_fetch(filter, sieve_exact_line(at.first));
    const struct sieve_line* second = sieve_fetch(filter, sieve_exact_line(at.second));

    if (!first || !second) return 0;
    return sieve_exact_test(exact, sieve_exact_load(first, sieve_exact_index(at.first)),
                            sieve_exact_load(second, sieve_exact_index(at.second)), at.rest) != 0;
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
    return (sieve_exact_test_ipv6(first, upper, lower) | sieve_exact_test_ipv6(second, upper, lower)) != 0;
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
    if (!sieve_exact_test_ipv6(line, upper, lower)) {
        if (!sieve_exact_test_ipv6(second, upper, lower)) return SIEVE_EXACT_NOT_FOUND;
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
