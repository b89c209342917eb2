/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Verification: the keys themselves, in records (sieve/records.h) behind the filter, asked only if the filter
 * matched.
 *
 * A key is what the filter hashes: the set's fields, all else zero. In a prefix set of one address it is
 * a stored prefix: the address cut to its length, with the length in the word that such keys do not use. In
 * any other prefix set it is a stored key (sieve/prefix.h).
 *
 * In a prefix set that changes while it is in force, the exact set also holds the entries themselves: the
 * prefixes as they were listed or inserted, with their own lengths and marked as entries. No packet asks for
 * these. When an entry is deleted, the others tell which stored keys must stay.
 */
#ifndef SIEVE_EXACT_H
#define SIEVE_EXACT_H

#include <sieve/prefix.h>

/*
 * What the mark of a key's record says. No packet reads it: a key that is there verifies a match. The
 * controller marks single keys while it changes them, because the filter cannot tell what became of a change
 * if the controller died in it.
 */
enum sieve_exact_state {
    SIEVE_EXACT_IN = 0,     /* the key is in the filter */
    SIEVE_EXACT_UNSURE = 1, /* the key is being inserted or deleted: it may be in the filter */
};

#define SIEVE_EXACT_LENGTH_WORD 4
#define SIEVE_EXACT_ENTRY (1ULL << 63) /* in that word: marks an entry */

/* A key of the set's fields. */
SIEVE_INLINE void sieve_exact_of_key(const struct sieve_key* key, __u32 fields, struct sieve_key* exact) {
    const __u64 source = sieve_field_mask(fields, SIEVE_FIELD_SRC);
    const __u64 destination = sieve_field_mask(fields, SIEVE_FIELD_DST);

    exact->word[0] = key->word[0] & source;
    exact->word[1] = key->word[1] & source;
    exact->word[2] = key->word[2] & destination;
    exact->word[3] = key->word[3] & destination;
    exact->word[4] = key->word[4] & sieve_transport_mask_flat(fields);
}

/* A prefix: the address, of whichever field, cut to `length` bits of 128. */
SIEVE_INLINE void sieve_exact_of_prefix(__u64 upper, __u64 lower, __u32 length, struct sieve_key* exact) {
    exact->word[0] = upper & sieve_upper_mask(length);
    exact->word[1] = lower & sieve_lower_mask(length);
    exact->word[2] = 0;
    exact->word[3] = 0;
    exact->word[SIEVE_EXACT_LENGTH_WORD] = length;
}

#endif
