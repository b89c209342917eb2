/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The blocked XORSAT filter: one line, or the line that keeps the key for it.
 */
#ifndef SIEVE_BPF_LOOKUP_XORSAT_H
#define SIEVE_BPF_LOOKUP_XORSAT_H

#include <sieve/xorsat.h>

#include "fetch.h"

/* A static function, since a global one cannot take the map. */
static __noinline int sieve_lookup_xorsat(void* filter, const struct sieve_lookup* lookup, __u64 locate,
                                          __u64 test) {
    struct sieve_hash hash = {locate, test};
    const struct sieve_line* line;
    __u32 at = sieve_xorsat_line(lookup, hash), eighth = sieve_xorsat_eighth(hash);

    line = sieve_fetch(filter, at);
    if (!line) return 0;
    if (SIEVE_UNLIKELY(sieve_xorsat_exports(line, eighth))) {
        line = sieve_fetch(filter, sieve_xorsat_other(lookup, at, eighth));
        if (!line) return 0;
    }
    return sieve_xorsat_test(line, hash);
}

#endif
