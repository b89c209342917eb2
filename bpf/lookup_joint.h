/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which set holds the key? One lookup in a bank's joint filter.
 */
#ifndef SIEVE_BPF_LOOKUP_JOINT_H
#define SIEVE_BPF_LOOKUP_JOINT_H

#include <sieve/joint.h>

#include "fetch.h"
#include "lookup_exact.h"

/*
 * The number of the first set that holds the key, or SIEVE_JOINT_NO_SET or SIEVE_JOINT_NO_ANSWER. A global
 * function: its stack is free again when the sets that it leaves open are asked.
 */
__noinline __u32 sieve_lookup_joint(const struct sieve_key* key, __u32 bank, __u32 have) {
    const struct sieve_lookup* lookup;
    const struct sieve_line* line;
    __u32 header = 0, at, eighth, number;
    struct sieve_hash hash;
    void* filter;

    filter = bpf_map_lookup_elem(&sieve_joint, &bank);
    if (!filter || !key) return SIEVE_JOINT_NO_ANSWER;
    lookup = bpf_map_lookup_elem(filter, &header);
    if (!lookup) return SIEVE_JOINT_NO_ANSWER;
    if (lookup->fields & ~have) return SIEVE_JOINT_NO_SET;
    if (lookup->kind == SIEVE_KIND_EXACT) {
        const int value =
            sieve_exact_value_of(filter, sieve_exact_of(lookup), sieve_address_upper(key, lookup->fields),
                                 sieve_address_lower(key, lookup->fields));

        return value < 0 ? SIEVE_JOINT_NO_SET : (__u32)value;
    }
    hash = sieve_hash_key(key, lookup->hash_key, lookup->fields);
    at = sieve_xorsat_line(lookup, hash);
    eighth = sieve_xorsat_eighth(hash);
    line = sieve_fetch(filter, at);
    if (!line) return SIEVE_JOINT_NO_ANSWER;
    if (SIEVE_UNLIKELY(sieve_xorsat_exports(line, eighth))) {
        line = sieve_fetch(filter, sieve_xorsat_other(lookup, at, eighth));
        if (!line) return SIEVE_JOINT_NO_ANSWER;
    }
    number = sieve_joint_number(line, hash);
    return number < lookup->hashes ? number : SIEVE_JOINT_NO_SET;
}

#endif
