/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records of the tagged form, in an exact set behind a filter (verify.h), or as the filter of kind `exact`
 * whose key has several fields. Each caller has a copy: for code that reads two maps of maps, the kernel does
 * not inline the fetches.
 */
#ifndef SIEVE_BPF_LOOKUP_RECORDS_H
#define SIEVE_BPF_LOOKUP_RECORDS_H

#include <sieve/exact.h>
#include <sieve/records.h>

#include "fetch.h"

/* True if the record of that number is the key. All its lines are requested before any is compared. `base` is
 * the map's line that is line 0 of the records. */
static __always_inline int sieve_record_is(void* map, __u32 base, const struct sieve_records* records,
                                           __u32 number, const struct sieve_key* key) {
    const __u32 pair = sieve_records_pair_line(number), word = sieve_records_pair_word(number);
    __u32 at = base + sieve_records_group(records, number), index = at + pair;
    const struct sieve_line* line;
    __u64 differs = 0;

    if (records->words & SIEVE_RECORD_SRC) {
        line = bpf_map_lookup_elem(map, &index);
        if (!line) return 0;
        differs |= (line->word[word] ^ key->word[0]) | (line->word[word + 1] ^ key->word[1]);
        at += 2;
        index = at + pair;
    }
    if (records->words & SIEVE_RECORD_DST) {
        line = bpf_map_lookup_elem(map, &index);
        if (!line) return 0;
        differs |= (line->word[word] ^ key->word[2]) | (line->word[word + 1] ^ key->word[3]);
        at += 2;
    }
    if (records->words & SIEVE_RECORD_LAST) {
        line = bpf_map_lookup_elem(map, &at);
        if (!line) return 0;
        differs |= line->word[sieve_records_last_word(number)] ^ key->word[4];
    }
    return differs == 0;
}

/* True if the key is there, or if the map lacks its lines and `otherwise` says so. */
static __always_inline int sieve_records_hold(void* map, __u32 base, const struct sieve_records* records,
                                              const struct sieve_key* key, int otherwise) {
    const struct sieve_record_place place = sieve_records_locate(records, key);
    __u32 line = base + sieve_records_row_line(place.first), i;
    const struct sieve_line *first, *second;
    __u64 places;

    first = bpf_map_lookup_elem(map, &line);
    line = base + sieve_records_row_line(place.second);
    second = bpf_map_lookup_elem(map, &line);
    if (!first || !second) return otherwise;
    places = sieve_records_in_rows(&first->word[sieve_records_row_word(place.first)],
                                   &second->word[sieve_records_row_word(place.second)], place.tag);
    for (i = 0; i < SIEVE_RECORDS_CANDIDATES; i++) {
        if (!places) return 0;
        if (sieve_record_is(map, base, records, sieve_records_number(&place, places), key)) return 1;
        places &= places - 1;
    }
    return 0;
}

/*
 * Kind `exact` of several fields: true if the filter at that map index holds the key. A global function, so
 * that other kinds' paths do not carry it.
 */
__noinline int sieve_lookup_records(const struct sieve_key* key, __u32 index) {
    const struct sieve_lookup* lookup;
    const struct sieve_records* records;
    struct sieve_key asked;
    void* filter;

    lookup = sieve_fetch_lookup(index, &filter);
    if (!lookup || !key) return 0;
    records = (const struct sieve_records*)sieve_fetch(filter, 0);
    if (!records) return 0;
    sieve_exact_of_key(key, lookup->fields, &asked);
    return sieve_records_hold(filter, SIEVE_FIRST_LINE, records, &asked, 0);
}

#endif
