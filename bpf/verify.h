/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is the filter's match a true one? Only sets with verification ask, and only after a match.
 */
#ifndef SIEVE_BPF_VERIFY_H
#define SIEVE_BPF_VERIFY_H

#include <sieve/exact.h>
#include <sieve/records.h>

#include "fetch.h"
#include "lookup_records.h"
#include "parse.h"

/* The plain form: a set of addresses. */
static __always_inline int sieve_exact_holds_address(void* exact, const struct sieve_records* records,
                                                     const struct sieve_key* key) {
    const __u64 upper = sieve_address_upper(key, records->fields);
    const __u64 lower = sieve_address_lower(key, records->fields);
    const struct sieve_record_place place = sieve_records_locate(records, key);
    __u32 line = SIEVE_RECORDS_FIRST_ROW + place.first;
    const struct sieve_line *first, *second;

    first = bpf_map_lookup_elem(exact, &line);
    line = SIEVE_RECORDS_FIRST_ROW + place.second;
    second = bpf_map_lookup_elem(exact, &line);
    if (!first || !second) return 1;
    return (sieve_records_in_plain_row(first, upper, lower) |
            sieve_records_in_plain_row(second, upper, lower)) != 0;
}

/* The tagged form. A static function, since a global one cannot take the map. Without its lines the filter's
 * answer counts. */
static __noinline int sieve_exact_holds(void* exact, const struct sieve_records* records,
                                        const struct sieve_key* key) {
    return sieve_records_hold(exact, 0, records, key, 1);
}

/* The exact set at a map index, and its first line; false if there is none. */
static __always_inline const struct sieve_records* sieve_fetch_exact(__u32 index, void** exact) {
    __u32 line = 0;

    *exact = bpf_map_lookup_elem(&sieve_exact, &index);
    return *exact ? bpf_map_lookup_elem(*exact, &line) : 0;
}

/*
 * True if the tagged exact set at that map index holds the key; of a prefix set, the key cut as the packed
 * probe says. A global function, so that the verifier checks it once and not in each iteration over the
 * probes.
 */
__noinline int sieve_ask_exact_probe(const struct sieve_key* key, __u32 index, __u32 probe) {
    const struct sieve_records* records;
    struct sieve_key asked;
    void* exact;

    records = sieve_fetch_exact(index, &exact);
    if (!key || !records) return 1;
    if (!records->prefixes)
        sieve_exact_of_key(key, records->fields, &asked);
    else if (sieve_is_one_address(records->fields))
        sieve_exact_of_prefix(sieve_address_upper(key, records->fields),
                              sieve_address_lower(key, records->fields), probe & 0xff, &asked);
    else
        sieve_store_key(key, probe, &asked);
    return sieve_exact_holds(exact, records, &asked);
}

/*
 * True if the exact set at that map index holds the key; of a prefix set, if it holds the prefix of any probe
 * length, whichever length the filter matched. Without an exact set the filter's answer counts: prefer a
 * false positive to a missed member. A global function, so that the verifier checks it once and it has a
 * stack of its own.
 */
__noinline int sieve_ask_exact(const struct sieve_key* key, __u32 index) {
    const struct sieve_records* records;
    const struct sieve_probes* probes;
    __u32 line = SIEVE_PROBES_LINE, family, i;
    void* lines;

    records = sieve_fetch_exact(index, &lines);
    if (!key || !records) return 1;
    if (!records->tagged) return sieve_exact_holds_address(lines, records, key);
    if (!records->prefixes) return sieve_ask_exact_probe(key, index, 0);
    family = sieve_key_family(key, records->fields) & 1;
    lines = bpf_map_lookup_elem(&sieve_sets, &index);
    if (!lines) return 1;
    probes = bpf_map_lookup_elem(lines, &line);
    if (!probes) return 1;
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
