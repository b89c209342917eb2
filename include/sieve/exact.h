/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Verification: the keys themselves, in a hash map behind the filter, asked only where the filter says yes.
 *
 * A key is written as the filter hashes it: the set's fields, all else zero; of a prefix set each stored
 * prefix, its address cut to its length, with the length in the word that such keys have no use for.
 */
#ifndef SIEVE_EXACT_H
#define SIEVE_EXACT_H

#include <sieve/prefix.h>

/* The kernel wants a value; nobody reads it. */
typedef __u8 sieve_exact_value;

#define SIEVE_EXACT_LENGTH_WORD 4

/* A key of the set's fields. */
SIEVE_INLINE void sieve_exact_of_key(const struct sieve_key* key, __u32 fields, struct sieve_key* exact) {
    exact->word[0] = (fields & SIEVE_FIELD_SRC) ? key->word[0] : 0;
    exact->word[1] = (fields & SIEVE_FIELD_SRC) ? key->word[1] : 0;
    exact->word[2] = (fields & SIEVE_FIELD_DST) ? key->word[2] : 0;
    exact->word[3] = (fields & SIEVE_FIELD_DST) ? key->word[3] : 0;
    exact->word[4] = key->word[4] & sieve_transport_mask(fields);
}

/* A prefix: the address, whatever set it is from, cut to `length` bits of 128. */
SIEVE_INLINE void sieve_exact_of_prefix(__u64 upper, __u64 lower, __u32 length, struct sieve_key* exact) {
    exact->word[0] = sieve_prefix_cut(upper, length < 64 ? length : 64);
    exact->word[1] = sieve_prefix_cut(lower, length < 64 ? 0 : length - 64);
    exact->word[2] = 0;
    exact->word[3] = 0;
    exact->word[SIEVE_EXACT_LENGTH_WORD] = length;
}

#endif
