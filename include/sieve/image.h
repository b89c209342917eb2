/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The filter image: an array of 64-byte lines that is, byte for byte, both the file on disk and the content
 * of the BPF array map (value size 64). Loading is: check, map, copy.
 *
 *   line 0            struct sieve_lookup: all that a packet's lookup reads besides the filter itself
 *   line 1            struct sieve_probes: the probes of a prefix set; read for these only. Zero in others
 *   lines 2 to 5      struct sieve_file: identity, checksum, statistics; never read by a packet
 *   lines 6 ..        the filter's own lines (as many as sieve_lookup.buckets for the blocked kind)
 *   then              witnesses: a sample of the member keys, one in each line. All must match before the set
 *                     may go live
 *   the rest          exceptions: keys that must not match, one or a prefix of them in each line. An image
 *                     holds no other key
 *
 * All numbers are little-endian, as on every supported machine. The magic reveals an image of another order.
 */
#ifndef SIEVE_IMAGE_H
#define SIEVE_IMAGE_H

#include <sieve/hash.h>

#define SIEVE_LINE_BYTES 64
#define SIEVE_LINE_WORDS 8
#define SIEVE_LINE_BITS 512

struct sieve_line {
    __u64 word[SIEVE_LINE_WORDS];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_line) == SIEVE_LINE_BYTES,
                    "a line is one cache line and one map value");

/* "SIEV" when the file is read byte by byte. */
#define SIEVE_MAGIC 0x56454953U
/* Raised with every change of the bytes' meaning. Images are not converted, but rebuilt from their feeds. */
#define SIEVE_IMAGE_VERSION 3

/*
 * The only list of the kinds of filter. Each kind has a header here for packets (sieve/NAME.h; both d-left
 * kinds are in sieve/dleft.h) and a folder in user space (libsieve/filters/kinds) for everything else. The
 * registry there does not compile unless every line of this list has one.
 */
#define SIEVE_KINDS(KIND)                                                                                    \
    KIND(BLOCKED, blocked, 1)                                                                                \
    KIND(BLOOM, bloom, 2)                                                                                    \
    KIND(DLEFT64, dleft64, 3)                                                                                \
    KIND(DLEFT128, dleft128, 4)                                                                              \
    KIND(DDLCBF, ddlcbf, 5)                                                                                  \
    KIND(XORSAT, xorsat, 6)                                                                                  \
    KIND(RANGES, ranges, 7)                                                                                  \
    KIND(EXACT, exact, 8)

#define SIEVE_KIND_ENUMERATOR(UPPER, lower, number) SIEVE_KIND_##UPPER = (number),

/* In C++, the type holds any number, as a header may claim any. */
#ifdef __cplusplus
#define SIEVE_KIND_TYPE : __u32
#else
#define SIEVE_KIND_TYPE
#endif
enum sieve_kind SIEVE_KIND_TYPE {
    SIEVE_KIND_NONE = 0,               /* an empty map: matches nothing */
    SIEVE_KINDS(SIEVE_KIND_ENUMERATOR) /* SIEVE_KIND_BLOCKED, and so on */
};

#define SIEVE_MAX_CHOICES 3

/* Line 0. Whatever differs between two sets is here, so that one pointer swap changes all of it at once. */
struct sieve_lookup {
    __u32 magic;
    __u8 kind;     /* enum sieve_kind */
    __u8 fields;   /* enum sieve_field bits: what a key is made of */
    __u8 choices;  /* blocked: lines that a key may be in; bloom: groups; d-left: subtables;
                    * xorsat: 2 if lines export keys, else 1 */
    __u8 hashes;   /* blocked, bloom: bits per key, k; d-left: how buckets are written; joint.h: sets */
    __u32 buckets; /* lines: of the filter; d-left: of one subtable */
    __u16 alpha;   /* blocked: share of keys with more than one choice, in units of 2^-16; 2^16-1 means all */
    __u8 probes;   /* 0: keys are exact; else they are prefixes, probed at up to so many lengths (line 1);
                    * ranges: 1, since each packet asks once */
    __u8 shard_bits; /* blocked, d-left: the filter, or each subtable, is 2^shard_bits shards of equal size,
                      * and all lines of a key are in shards of one number; 0 in other kinds */
    __u64 hash_key[SIEVE_HASH_KEY_WORDS]; /* secret; ranges has no hash, but geometry here (sieve/ranges.h) */
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_lookup) == SIEVE_LINE_BYTES,
                    "a packet reads one header line, no more");

/*
 * A 32-bit number of the hash, reduced to a number of lines or buckets that is a multiple of 2^shard_bits,
 * has its shard in its upper shard_bits bits. They are the same for all lines of a key; a further line's
 * number has its own bits below them.
 */
SIEVE_INLINE __u32 sieve_inside_shard(const struct sieve_lookup* lookup) {
    return (__u32)sieve_shift_right(0xffffffffU, lookup->shard_bits);
}

SIEVE_INLINE __u32 sieve_same_shard(__u32 first, __u32 further, __u32 inside) {
    return (first & ~inside) | (further & inside);
}

#define SIEVE_MAX_PROBES 8
#define SIEVE_FAMILIES 2

/*
 * Line 1: the probes of a prefix set, by family. Lengths are in bits of 128, so that an IPv4 /24 is 120.
 *
 * In a set of one address, a probe is a length of that address. In any other set it is what a probe compares:
 * a length of each address (0: the address does not matter) and some of the other fields.
 */
struct sieve_probes {
    __u8 count[SIEVE_FAMILIES];
    __u8 reserved0[6];
    __u8 length[SIEVE_FAMILIES][SIEVE_MAX_PROBES];      /* of the only address, rising; or of the source */
    __u8 destination[SIEVE_FAMILIES][SIEVE_MAX_PROBES]; /* length; 0 in a set of one address */
    __u8 transport[SIEVE_FAMILIES][SIEVE_MAX_PROBES];   /* enum sieve_field bits; likewise */
    __u8 reserved[8];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_probes) == SIEVE_LINE_BYTES, "one line");
#define SIEVE_PROBES_LINE 1

#define SIEVE_FILE_LINES 4
#define SIEVE_FILE_LINE 2

/*
 * Lines 2 to 5. Rates are doubles, stored as their IEEE 754 bits because BPF C has no floating point.
 * The checksum is XXH3-64 of the bytes behind it, with XXH3-64 of the bytes before it as the seed.
 */
struct sieve_file {
    __u32 version;
    __u32 witnesses; /* number of witness lines */
    __u64 checksum;
    __u64 lines;       /* of the whole file */
    __u64 keys;        /* distinct keys in the set */
    __u64 identity[2]; /* random: tells one build from another in `status` */
    __u64 built_at;    /* seconds since 1970 */
    __u32 rounds;      /* rebalancing rounds that were run */
    __u32 exceptions;  /* number of exception lines */

    __u64 predicted_fpr; /* by the analytic model, before the build */
    __u64 expected_fpr;  /* exactly, from the bits of this image */
    __u64 measured_fpr;  /* on random non-members, by the builder */
    __u64 measured_trials;
    __u64 duplicates; /* feed entries that were in the set already */
    __u64 skipped;    /* malformed feed lines that --skip-invalid left out */
    __u64 entries;    /* prefix sets: feed entries, of which `keys` prefixes were made */
    __u64 covered[2]; /* prefix sets: share of all addresses that are members, by family (double bits) */
    __u64 changes;    /* keys inserted and deleted since the build; zero but in a running map */
    __u64 excluded;   /* what the exceptions ask this filter: none of it matches. 0: not checked */
    __u64 key_sum[2]; /* when the filter was built: the sums, modulo 2^64, of `locate` and of `test` of the
                       * distinct keys' hashes. They tell whether a list is the filter's. ranges: 0 */
    __u64 reserved[3];

    __u8 label[SIEVE_LINE_BYTES]; /* where the keys came from, for people; NUL-terminated */
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_file) == SIEVE_FILE_LINES * SIEVE_LINE_BYTES, "whole lines");

/* The filter's first line. It is a constant, so that the packet path need not read it from the header. */
#define SIEVE_FIRST_LINE (SIEVE_FILE_LINE + SIEVE_FILE_LINES)

/* One witness: a member key in canonical form. */
struct sieve_witness {
    struct sieve_key key;
    __u64 reserved[3];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_witness) == SIEVE_LINE_BYTES, "one a line");

/* Which bits of a key matter: a length (of 128) for each address, 0 for one that does not matter. */
struct sieve_probe {
    __u8 source;
    __u8 destination;
    __u8 transport; /* enum sieve_field bits: which of the other fields */
    __u8 reserved;
};

/* One exception: all keys whose bits that matter are these; the other bits are zero. */
struct sieve_exception {
    struct sieve_key key;
    struct sieve_probe bits;
    __u32 reserved0;
    __u64 reserved[2];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_exception) == SIEVE_LINE_BYTES, "one a line");

#endif
