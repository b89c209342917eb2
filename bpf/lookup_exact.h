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
    return sieve_exact_test(exact, first->word[sieve_exact_index(at.first)],
                            second->word[sieve_exact_index(at.second)], at.rest) != 0;
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

/* A static function, since a global one cannot take the map. */
static __noinline int sieve_lookup_exact(void* filter, const struct sieve_lookup* lookup, __u64 upper,
                                         __u64 lower) {
    const struct sieve_exact* exact = sieve_exact_of(lookup);

    if (SIEVE_LIKELY(sieve_family(upper, lower) == SIEVE_FAMILY_V4))
        return sieve_lookup_exact_ipv4(filter, exact, (__u32)lower);
    return sieve_lookup_exact_ipv6(filter, exact, upper, lower);
}

#endif
