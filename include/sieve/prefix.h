/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Prefix sets: a filter that holds prefixes of a few lengths, and is probed once for each of these lengths.
 *
 * Controlled prefix expansion (Srinivasan, Varghese, "Fast Address Lookups Using Controlled Prefix
 * Expansion", ACM TOCS 17, 1999): the builder chooses a few lengths and rewrites every prefix as prefixes of
 * the next longer one. A packet's address is cut to each length and looked up. The false positive rate is
 * that of all these probes together. IPv4 and IPv6 have lengths of their own, so that a packet makes only the
 * probes of its family.
 *
 * In a set of several fields, a probe cuts both addresses to its lengths and leaves out the fields that it
 * does not compare. What remains, together with the probe itself, is the *stored key*: it is what the filter
 * and an exact set hold.
 */
#ifndef SIEVE_PREFIX_H
#define SIEVE_PREFIX_H

#include <sieve/image.h>

/* Families of addresses in v4-mapped form: index of sieve_probes' arrays. */
#define SIEVE_FAMILY_V4 0
#define SIEVE_FAMILY_V6 1

SIEVE_INLINE int sieve_family(__u64 upper, __u64 lower) {
    return upper == 0 && (lower >> 32) == (SIEVE_V4_MAPPED >> 32) ? SIEVE_FAMILY_V4 : SIEVE_FAMILY_V6;
}

/* All ones if an address of `length` (0 to 128) bits has all of its upper word. */
SIEVE_INLINE __u64 sieve_upper_is_whole(__u32 length) {
    return sieve_ones_if((length >> 6 | length >> 7) & 1);
}

/*
 * The masks that cut an address to `length` (0 to 128) bits. There is no branch, because the verifier would
 * walk both ways.
 */
SIEVE_INLINE __u64 sieve_upper_mask(__u32 length) {
    return ~(~0ULL >> (length & 63)) | sieve_upper_is_whole(length);
}

SIEVE_INLINE __u64 sieve_lower_mask(__u32 length) {
    return (~(~0ULL >> (length & 63)) & sieve_upper_is_whole(length)) | sieve_ones_if(length >> 7 & 1);
}

/*
 * The hash of a prefix: the address cut to `length` bits (of 128), and the length. The length is added to
 * NH's sums: NH is almost-delta-universal (UMAC, section 4), so that prefixes of different lengths collide no
 * more than others, and equal addresses of different lengths never do.
 */
#define SIEVE_PREFIX_TAG 0x9e3779b97f4a7c15ULL

SIEVE_INLINE struct sieve_hash sieve_hash_prefix(__u64 upper, __u64 lower, __u32 length,
                                                 const __u64* hash_key) {
    const __u64 high = upper & sieve_upper_mask(length);
    const __u64 low = lower & sieve_lower_mask(length);
    const __u64 tag = length * SIEVE_PREFIX_TAG;
    struct sieve_hash hash;
    hash.locate = sieve_mix(sieve_nh_step(high, hash_key[0]) + sieve_nh_step(low, hash_key[1]) + tag);
    hash.test = sieve_mix(sieve_nh_step(high, hash_key[1]) + sieve_nh_step(low, hash_key[2]) + tag);
    return hash;
}

/* A probe as one number. */
SIEVE_INLINE __u32 sieve_pack_probe(__u32 source, __u32 destination, __u32 transport) {
    return source | destination << 8 | transport << 16;
}

/* Word 4 of a stored key: the transport fields use its lower 40 bits, the packed probe the others. */
#define SIEVE_STORED_PROBE_SHIFT 40

/* The stored key that a packed probe asks for. */
SIEVE_INLINE void sieve_store_key(const struct sieve_key* key, __u32 probe, struct sieve_key* stored) {
    const __u32 source = probe & 0xff, destination = probe >> 8 & 0xff, transport = probe >> 16 & 0xff;
    stored->word[0] = key->word[0] & sieve_upper_mask(source);
    stored->word[1] = key->word[1] & sieve_lower_mask(source);
    stored->word[2] = key->word[2] & sieve_upper_mask(destination);
    stored->word[3] = key->word[3] & sieve_lower_mask(destination);
    stored->word[4] = (key->word[4] & sieve_transport_mask_flat(transport)) | (__u64)probe
                                                                                  << SIEVE_STORED_PROBE_SHIFT;
}

/* The hash of a stored key: that of all its words (sieve/hash.h). */
SIEVE_INLINE struct sieve_hash sieve_hash_stored(const struct sieve_key* stored, const __u64* hash_key) {
    struct sieve_hash hash;
    hash.locate =
        sieve_mix(sieve_nh_step(stored->word[0], hash_key[0]) + sieve_nh_step(stored->word[1], hash_key[1]) +
                  sieve_nh_step(stored->word[2], hash_key[2]) + sieve_nh_step(stored->word[3], hash_key[3]) +
                  sieve_nh_step(stored->word[4], hash_key[4]));
    hash.test =
        sieve_mix(sieve_nh_step(stored->word[0], hash_key[1]) + sieve_nh_step(stored->word[1], hash_key[2]) +
                  sieve_nh_step(stored->word[2], hash_key[3]) + sieve_nh_step(stored->word[3], hash_key[4]) +
                  sieve_nh_step(stored->word[4], hash_key[5]));
    return hash;
}

/* Index of the upper word of the address in a key of one address; the lower one is behind it. */
SIEVE_INLINE int sieve_address_word(__u32 fields) {
    return (fields & SIEVE_FIELD_SRC) ? 0 : 2;
}

/* The address in a key of one address, word by word, because the verifier cannot follow an index. */
SIEVE_INLINE __u64 sieve_address_upper(const struct sieve_key* key, __u32 fields) {
    return sieve_address_word(fields) == 0 ? key->word[0] : key->word[2];
}

SIEVE_INLINE __u64 sieve_address_lower(const struct sieve_key* key, __u32 fields) {
    return sieve_address_word(fields) == 0 ? key->word[1] : key->word[3];
}
/* The family of a key of these fields. Keys without an address count as IPv6. */
SIEVE_INLINE int sieve_key_family(const struct sieve_key* key, __u32 fields) {
    return sieve_family(sieve_address_upper(key, fields), sieve_address_lower(key, fields));
}

#endif
