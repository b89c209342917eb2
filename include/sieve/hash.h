/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The keyed hash: from a flow key to 128 bits, under secret hash keys. Each build draws new ones.
 *
 * Compression is NH (Black, Halevi, Krawczyk, Krovetz, Rogaway, "UMAC: Fast and Secure Message
 * Authentication", CRYPTO 1999, section 4) with w = 32: one 32x32->64 multiplication a word and no carry to
 * handle, so that BPF, which has no 128-bit multiply, runs it at full speed. NH is 2^-32-almost-universal for
 * inputs of equal length; two passes over key words shifted by one (the Toeplitz form, ibid.) are
 * 2^-64-almost-universal (Theorem 4.4): whoever does not know the hash keys cannot find two flow keys that
 * collide in both words with a better chance. This is why the hash is not a plain multiply-xorshift chain
 * (murmur, wyhash on 64-bit products): those have differentials that hold for every seed, and one pair of
 * them would be a false positive that no reseeding cures.
 *
 * NH spreads but does not scramble (a run of consecutive addresses stays an arithmetic progression), so each
 * word is finalised by a bijection, Stafford's mix 13 (the finaliser of SplitMix64), which adds no collision.
 *
 * Cost: two multiplications for each word that the field set selects, and four to finish.
 */
#ifndef SIEVE_HASH_H
#define SIEVE_HASH_H

#include <sieve/key.h>

/* One hash key word for each flow key word, and one more for the shifted pass. */
#define SIEVE_HASH_KEY_WORDS (SIEVE_KEY_WORDS + 1)

struct sieve_hash {
    __u64 locate; /* which lines or buckets */
    __u64 test;   /* what to look for there */
};

/* One NH step: adds each half of the word to its half of the hash key modulo 2^32, and multiplies the sums.
 */
SIEVE_INLINE __u64 sieve_nh_step(__u64 word, __u64 key) {
    return (__u64)(__u32)((__u32)word + (__u32)key) * (__u32)((__u32)(word >> 32) + (__u32)(key >> 32));
}

/* Stafford's mix 13: a bijection of 64 bits in which every input bit flips every output bit with chance 1/2.
 */
SIEVE_INLINE __u64 sieve_mix(__u64 x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebULL;
    x ^= x >> 31;
    return x;
}

/*
 * The hash of the selected fields of a flow key. `hash_key` has SIEVE_HASH_KEY_WORDS words. Words of fields
 * that are not selected cost nothing and need not be zero; word 4 is masked here.
 */
SIEVE_INLINE struct sieve_hash sieve_hash_key(const struct sieve_key* key, const __u64* hash_key,
                                              __u32 fields) {
    struct sieve_hash sum = {0, 0};
    if (fields & SIEVE_FIELD_SRC) {
        sum.locate += sieve_nh_step(key->word[0], hash_key[0]) + sieve_nh_step(key->word[1], hash_key[1]);
        sum.test += sieve_nh_step(key->word[0], hash_key[1]) + sieve_nh_step(key->word[1], hash_key[2]);
    }
    if (fields & SIEVE_FIELD_DST) {
        sum.locate += sieve_nh_step(key->word[2], hash_key[2]) + sieve_nh_step(key->word[3], hash_key[3]);
        sum.test += sieve_nh_step(key->word[2], hash_key[3]) + sieve_nh_step(key->word[3], hash_key[4]);
    }
    if (fields & SIEVE_FIELD_TRANSPORT) {
        __u64 word = key->word[4] & sieve_transport_mask(fields);
        sum.locate += sieve_nh_step(word, hash_key[4]);
        sum.test += sieve_nh_step(word, hash_key[5]);
    }
    sum.locate = sieve_mix(sum.locate);
    sum.test = sieve_mix(sum.test);
    return sum;
}

/* A 32-bit hash to a number below `range` (Lemire's multiply-shift); the bias is below range / 2^32. */
SIEVE_INLINE __u32 sieve_reduce(__u32 hash, __u32 range) {
    return (__u32)(((__u64)hash * range) >> 32);
}

#endif
