/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The d-left Bloom filter with dynamic bit reassignment: d subtables of buckets, each key's fingerprint in
 * one of its d buckets (the least loaded), and a bucket's bits shared evenly among the fingerprints in it, so
 * that a lightly loaded bucket has long ones.
 *
 * Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, "Bloom Filters via d-Left Hashing and Dynamic Bit
 * Reassignment" (Allerton 2006), section II.
 *
 * Cost: one cache line for each subtable, whatever the bucket's size, and about thirty (64-bit bucket) or
 * fifty (128-bit bucket) instructions to test it, without a loop: all fingerprints of a bucket are compared
 * at once, as lanes of a word. Accuracy, three subtables, online: 4.5e-4 at 16 bits a key, 2.2e-5 at 20
 * (sections II-A, II-B); two subtables and offline balancing do better.
 *
 * Each subtable is cut into 2^shard_bits shards of equal size. All buckets of a key are in shards of the same
 * number, so that a builder can place the keys of each shard on their own.
 *
 * How the 128 bits of the hash are used: `locate` gives the bucket of each subtable; the leading bits of
 * `test` are the fingerprint, the same in every subtable. A shorter fingerprint is a prefix of a longer one.
 * A stored fingerprint has at most 60 bits (and up to two more that are sorted). A single one in a 128-bit
 * bucket leaves 60 bits unused. That costs a false positive rate of 2^-60 and avoids all handling of more
 * than a word.
 *
 * The bucket. A counter tells a, the number of fingerprints, and how they split over the values of their
 * leading bits (semi-sorting, section II-B). Fingerprints are kept in ascending order, so that the leading
 * bit, or two, need not be stored. Of every fingerprint f(a) = floor(60/a) resp. floor(120/a) further bits
 * are stored. Unused bits are zero; two filters of the same content have the same bytes.
 *
 *   64-bit bucket     bits 0..3 counter, then cell c at bit 4 + c f(a)
 *   128-bit bucket    two words, bits 0..3 of each the lower and the upper half of the counter. Cells go to
 * the two words in turn: cell c is in word c % 2 at bit 4 + (c / 2) f(a). If their number is odd, the last
 * cell is split: its lower bits fill the rest of word 0, the others are in word 1, both above the whole
 * cells. group of four     (section II-C) four neighbouring buckets of one subtable share their bits: first
 * the four counters (bits 0..15 resp. 0..31), then a string of 240 resp. 480 bits with the cells of all four,
 * in order, f(s) = floor(240/s) resp. floor(480/s) bits each, where s is the sum of the loads. A bucket's own
 * load decides how many bits are sorted. Every cell is tested by itself, which is why grouping costs time.
 *
 * The counter. sieve_dleft_states64 and ..128 say what each value means: four hex digits a, c3, c2, c1, where
 * c1 is the number of fingerprints whose sorted bits are 0, c2 those below 2, c3 those below 3 (one sorted
 * bit: c1 is the 0-count and c2 = c3 = a; none: all are a). Values are assigned by rising a, then c1, c2, c3.
 *
 *   bucket, sorted bits               loads with states of their own             values used
 *   64, none                          0..6                                       7
 *   64, one bit at loads 4 and 5      0..6                                       1+1+1+1+5+6+1 = 16 of 16
 *   128, none                         0..10                                      11
 *   128, one bit at every load        0..10                                      66
 *   128, two bits at 6 and 7, else 1  0..10                                      255 of 256
 *
 * (The paper says that eight bits suffice for loads up to 11 in the last case; that would take 267 values.)
 *
 * Overflow. A higher load loses no key; it only shortens the fingerprints further. The counter 0 with a
 * payload that is not zero (64) resp. the counter 255 (128) marks such a bucket. Its next four bits n give
 * the load, 6 + n (7..20) resp. 11 + n (11..25), and 56 resp. 112 bits are left for the cells, which are not
 * semi-sorted. n = 15 is a bucket that matches everything: two cells of one bit that hold 0 and 1. Grouped
 * buckets have no room for that. With 128 bits the counter 255 is a bucket that matches everything; with 64
 * bits every counter value is in use, and the builder refuses.
 */
#ifndef SIEVE_DLEFT_H
#define SIEVE_DLEFT_H

#include <sieve/image.h>

#define SIEVE_DLEFT_MIN_SUBTABLES 2
#define SIEVE_DLEFT_MAX_SUBTABLES 4

/*
 * How struct sieve_lookup is used: `choices` is the number of subtables, `buckets` the number of LINES of one
 * subtable (subtable i is lines i * buckets and on), `hashes` these flags, `alpha` is zero.
 */
#define SIEVE_DLEFT_SORTING 3U /* none, one bit, two bits (128 only) */
#define SIEVE_DLEFT_GROUPED 4U

/* Buckets in a line are a power of two. */
#define SIEVE_DLEFT64_LINE_SHIFT 3
#define SIEVE_DLEFT128_LINE_SHIFT 2
#define SIEVE_DLEFT_GROUP 4
/* The numbers of buckets must be below 2^32. */
#define SIEVE_DLEFT_MAX_LINES (1U << 28)

/* Highest load with a counter value of its own. */
#define SIEVE_DLEFT64_TOP_LOAD 6
#define SIEVE_DLEFT128_TOP_LOAD 10
#define SIEVE_DLEFT128_OVERFLOW 255
/* n of a bucket that overflowed and matches everything. */
#define SIEVE_DLEFT_ALWAYS 15
#define SIEVE_DLEFT_MAX_WIDTH 60

/* Odd multipliers that derive the third and fourth bucket from the located hash. */
#define SIEVE_DLEFT_THIRD_MULTIPLIER 0xd1342543de82ef95ULL
#define SIEVE_DLEFT_FOURTH_MULTIPLIER 0xaf251af3b0f025b5ULL

/* Sorted bits of each load: two bits for each load, from load 0 upwards. */
#define SIEVE_DLEFT64_SORTED_ONE 0x500U
#define SIEVE_DLEFT128_SORTED_ONE 0x155555U
#define SIEVE_DLEFT128_SORTED_TWO 0x15a555U

/* clang-format off */
/* The states of the layouts that builders use, by counter. */
#define SIEVE_DLEFT_LISTED(state) (state),
#define SIEVE_DLEFT64_STATES(X) \
    X(0x0000) X(0x1111) X(0x2222) X(0x3333) X(0x4440) X(0x4441) X(0x4442) X(0x4443) X(0x4444) X(0x5550) \
    X(0x5551) X(0x5552) X(0x5553) X(0x5554) X(0x5555) X(0x6666)
#define SIEVE_DLEFT128_STATES(X) \
    X(0x0000) X(0x1110) X(0x1111) X(0x2220) X(0x2221) X(0x2222) X(0x3330) X(0x3331) X(0x3332) X(0x3333) \
    X(0x4440) X(0x4441) X(0x4442) X(0x4443) X(0x4444) X(0x5550) X(0x5551) X(0x5552) X(0x5553) X(0x5554) \
    X(0x5555) X(0x6000) X(0x6100) X(0x6200) X(0x6300) X(0x6400) X(0x6500) X(0x6600) X(0x6110) X(0x6210) \
    X(0x6310) X(0x6410) X(0x6510) X(0x6610) X(0x6220) X(0x6320) X(0x6420) X(0x6520) X(0x6620) X(0x6330) \
    X(0x6430) X(0x6530) X(0x6630) X(0x6440) X(0x6540) X(0x6640) X(0x6550) X(0x6650) X(0x6660) X(0x6111) \
    X(0x6211) X(0x6311) X(0x6411) X(0x6511) X(0x6611) X(0x6221) X(0x6321) X(0x6421) X(0x6521) X(0x6621) \
    X(0x6331) X(0x6431) X(0x6531) X(0x6631) X(0x6441) X(0x6541) X(0x6641) X(0x6551) X(0x6651) X(0x6661) \
    X(0x6222) X(0x6322) X(0x6422) X(0x6522) X(0x6622) X(0x6332) X(0x6432) X(0x6532) X(0x6632) X(0x6442) \
    X(0x6542) X(0x6642) X(0x6552) X(0x6652) X(0x6662) X(0x6333) X(0x6433) X(0x6533) X(0x6633) X(0x6443) \
    X(0x6543) X(0x6643) X(0x6553) X(0x6653) X(0x6663) X(0x6444) X(0x6544) X(0x6644) X(0x6554) X(0x6654) \
    X(0x6664) X(0x6555) X(0x6655) X(0x6665) X(0x6666) X(0x7000) X(0x7100) X(0x7200) X(0x7300) X(0x7400) \
    X(0x7500) X(0x7600) X(0x7700) X(0x7110) X(0x7210) X(0x7310) X(0x7410) X(0x7510) X(0x7610) X(0x7710) \
    X(0x7220) X(0x7320) X(0x7420) X(0x7520) X(0x7620) X(0x7720) X(0x7330) X(0x7430) X(0x7530) X(0x7630) \
    X(0x7730) X(0x7440) X(0x7540) X(0x7640) X(0x7740) X(0x7550) X(0x7650) X(0x7750) X(0x7660) X(0x7760) \
    X(0x7770) X(0x7111) X(0x7211) X(0x7311) X(0x7411) X(0x7511) X(0x7611) X(0x7711) X(0x7221) X(0x7321) \
    X(0x7421) X(0x7521) X(0x7621) X(0x7721) X(0x7331) X(0x7431) X(0x7531) X(0x7631) X(0x7731) X(0x7441) \
    X(0x7541) X(0x7641) X(0x7741) X(0x7551) X(0x7651) X(0x7751) X(0x7661) X(0x7761) X(0x7771) X(0x7222) \
    X(0x7322) X(0x7422) X(0x7522) X(0x7622) X(0x7722) X(0x7332) X(0x7432) X(0x7532) X(0x7632) X(0x7732) \
    X(0x7442) X(0x7542) X(0x7642) X(0x7742) X(0x7552) X(0x7652) X(0x7752) X(0x7662) X(0x7762) X(0x7772) \
    X(0x7333) X(0x7433) X(0x7533) X(0x7633) X(0x7733) X(0x7443) X(0x7543) X(0x7643) X(0x7743) X(0x7553) \
    X(0x7653) X(0x7753) X(0x7663) X(0x7763) X(0x7773) X(0x7444) X(0x7544) X(0x7644) X(0x7744) X(0x7554) \
    X(0x7654) X(0x7754) X(0x7664) X(0x7764) X(0x7774) X(0x7555) X(0x7655) X(0x7755) X(0x7665) X(0x7765) \
    X(0x7775) X(0x7666) X(0x7766) X(0x7776) X(0x7777) X(0x8880) X(0x8881) X(0x8882) X(0x8883) X(0x8884) \
    X(0x8885) X(0x8886) X(0x8887) X(0x8888) X(0x9990) X(0x9991) X(0x9992) X(0x9993) X(0x9994) X(0x9995) \
    X(0x9996) X(0x9997) X(0x9998) X(0x9999) X(0xaaa0) X(0xaaa1) X(0xaaa2) X(0xaaa3) X(0xaaa4) X(0xaaa5) \
    X(0xaaa6) X(0xaaa7) X(0xaaa8) X(0xaaa9) X(0xaaaa)

static const __u16 sieve_dleft_states64[2][16] = {
    { /* no semi-sorting */
        0x0000, 0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666,
    },
    { /* one bit at loads 4 and 5 */
        SIEVE_DLEFT64_STATES(SIEVE_DLEFT_LISTED)
    },
};

static const __u16 sieve_dleft_states128[4][256] = { /* the last row is not used: its index is two bits */
    { /* no semi-sorting */
        0x0000, 0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666, 0x7777, 0x8888, 0x9999, 0xaaaa,
    },
    { /* one bit at every load */
        0x0000, 0x1110, 0x1111, 0x2220, 0x2221, 0x2222, 0x3330, 0x3331, 0x3332, 0x3333, 0x4440, 0x4441,
        0x4442, 0x4443, 0x4444, 0x5550, 0x5551, 0x5552, 0x5553, 0x5554, 0x5555, 0x6660, 0x6661, 0x6662,
        0x6663, 0x6664, 0x6665, 0x6666, 0x7770, 0x7771, 0x7772, 0x7773, 0x7774, 0x7775, 0x7776, 0x7777,
        0x8880, 0x8881, 0x8882, 0x8883, 0x8884, 0x8885, 0x8886, 0x8887, 0x8888, 0x9990, 0x9991, 0x9992,
        0x9993, 0x9994, 0x9995, 0x9996, 0x9997, 0x9998, 0x9999, 0xaaa0, 0xaaa1, 0xaaa2, 0xaaa3, 0xaaa4,
        0xaaa5, 0xaaa6, 0xaaa7, 0xaaa8, 0xaaa9, 0xaaaa,
    },
    { /* two bits at loads 6 and 7, one at the others */
        SIEVE_DLEFT128_STATES(SIEVE_DLEFT_LISTED)
    },
};

/* What the cells of a bucket look like: a one at the foot of each lane of a word, f(a), a. Index: a, or 16 + n
 * after an overflow. */
struct sieve_dleft_cells {
    __u64 feet;
    __u32 width;
    __u32 load;
};

static const struct sieve_dleft_cells sieve_dleft_cells64[32] = {
    {0x0, 1, 0},
    {0x1, 60, 1},
    {0x40000001, 30, 2},
    {0x10000100001, 20, 3},
    {0x200040008001, 15, 4},
    {0x1001001001001, 12, 5},
    {0x4010040100401, 10, 6},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
    {0x0, 1, 0},
    {0x1010101010101, 8, 7},
    {0x2040810204081, 7, 8},
    {0x1041041041041, 6, 9},
    {0x210842108421, 5, 10},
    {0x4210842108421, 5, 11},
    {0x111111111111, 4, 12},
    {0x1111111111111, 4, 13},
    {0x11111111111111, 4, 14},
    {0x49249249249, 3, 15},
    {0x249249249249, 3, 16},
    {0x1249249249249, 3, 17},
    {0x9249249249249, 3, 18},
    {0x1555555555, 2, 19},
    {0x5555555555, 2, 20},
    {0x3, 1, 2}, /* 0 and 1: always a match */
};

static const struct sieve_dleft_cells sieve_dleft_cells128[32] = {
    {0x0, 1, 0},
    {0x0, 60, 1},
    {0x1, 60, 2},
    {0x1, 40, 3},
    {0x40000001, 30, 4},
    {0x1000001, 24, 5},
    {0x10000100001, 20, 6},
    {0x400020001, 17, 7},
    {0x200040008001, 15, 8},
    {0x8004002001, 13, 9},
    {0x1001001001001, 12, 10},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
    {0, 1, 0},
    {0x10040100401, 10, 11},
    {0x201008040201, 9, 12},
    {0x10101010101, 8, 13},
    {0x1010101010101, 8, 14},
    {0x40810204081, 7, 15},
    {0x2040810204081, 7, 16},
    {0x41041041041, 6, 17},
    {0x1041041041041, 6, 18},
    {0x10842108421, 5, 19},
    {0x210842108421, 5, 20},
    {0x210842108421, 5, 21},
    {0x4210842108421, 5, 22},
    {0x11111111111, 4, 23},
    {0x111111111111, 4, 24},
    {0x111111111111, 4, 25},
    {0x1, 1, 2}, /* 0 and 1: always a match */
};
/* clang-format on */

/*
 * In BPF the test of a bucket is a global function. So the verifier checks it once, for unknown arguments,
 * and not once for each outcome of the subtables before it.
 */
#ifdef __cplusplus
#define SIEVE_DLEFT_BUCKET SIEVE_INLINE
#else
#define SIEVE_DLEFT_BUCKET __attribute__((noinline))
#endif

SIEVE_INLINE __u32 sieve_dleft_line_shift(const struct sieve_lookup* lookup) {
    return lookup->kind == SIEVE_KIND_DLEFT64 ? SIEVE_DLEFT64_LINE_SHIFT : SIEVE_DLEFT128_LINE_SHIFT;
}

/* Locate in one subtable: the bucket's line relative to the filter's first, and its position in the line. */
SIEVE_INLINE __u32 sieve_dleft_locate_in(const struct sieve_lookup* lookup, struct sieve_hash hash,
                                         __u32 subtable, __u32* position) {
    const __u32 shift = sieve_dleft_line_shift(lookup);
    const __u32 lines = lookup->buckets;
    const __u32 first = (__u32)hash.locate;
    __u32 number = first, bucket;

    if (subtable == 1) number = (__u32)(hash.locate >> 32);
    if (subtable == 2) number = (__u32)((hash.locate * SIEVE_DLEFT_THIRD_MULTIPLIER) >> 32);
    if (subtable == 3) number = (__u32)((hash.locate * SIEVE_DLEFT_FOURTH_MULTIPLIER) >> 32);
    bucket = sieve_reduce(sieve_same_shard(first, number, sieve_inside_shard(lookup)), lines << shift);
    *position = bucket & ((1U << shift) - 1);
    return subtable * lines + (bucket >> shift);
}

/*
 * Locate: the bucket address in each subtable, that is, the line relative to the filter's first and the
 * bucket's position in it. Entries beyond the filter's subtables repeat the first.
 */
SIEVE_INLINE void sieve_dleft_locate(const struct sieve_lookup* lookup, struct sieve_hash hash,
                                     __u32 line[SIEVE_DLEFT_MAX_SUBTABLES],
                                     __u32 position[SIEVE_DLEFT_MAX_SUBTABLES]) {
    line[0] = sieve_dleft_locate_in(lookup, hash, 0, &position[0]);
    line[1] = sieve_dleft_locate_in(lookup, hash, 1, &position[1]);
    line[2] = line[3] = line[0];
    position[2] = position[3] = position[0];
    if (lookup->choices > 2) line[2] = sieve_dleft_locate_in(lookup, hash, 2, &position[2]);
    if (lookup->choices > 3) line[3] = sieve_dleft_locate_in(lookup, hash, 3, &position[3]);
}

/* The bits of a fingerprint that a cell of that width stores, without the sorted ones. */
SIEVE_INLINE __u64 sieve_dleft_stored(__u64 test, __u32 sorted, __u32 width) {
    return (test << sorted) >> ((64 - width) & 63);
}

/* The value of a fingerprint's sorted bits; 0 if there are none. */
SIEVE_INLINE __u32 sieve_dleft_group(__u64 test, __u32 sorted) {
    return (__u32)((test >> 1) >> ((63 - sorted) & 63));
}

/*
 * A one at the head of every lane that equals `want`. No carry leaves a lane, so that lanes do not affect
 * each other.
 */
SIEVE_INLINE __u64 sieve_dleft_equal(__u64 payload, __u64 want, __u64 feet, __u32 width) {
    const __u64 heads = feet << ((width - 1) & 63);
    const __u64 bodies = heads - feet;
    const __u64 differ = payload ^ (want * feet);
    return heads & ~(((differ & bodies) + bodies) | differ);
}

/* The bits of lanes lo .. hi - 1. */
SIEVE_INLINE __u64 sieve_dleft_lanes(__u32 lo, __u32 hi, __u32 width) {
    return (1ULL << ((hi * width) & 63)) - (1ULL << ((lo * width) & 63));
}

/* Which cells may hold a fingerprint, and what must be in them. */
struct sieve_dleft_query {
    __u32 load;
    __u32 lo, hi; /* cells lo .. hi - 1 have the fingerprint's sorted bits */
    __u32 sorted;
};

SIEVE_INLINE struct sieve_dleft_query sieve_dleft_ask(__u32 state, __u32 sorted_of_loads, __u64 test) {
    struct sieve_dleft_query query;
    __u32 group;

    query.load = state >> 12;
    query.sorted = (sorted_of_loads >> (2 * query.load)) & 3;
    group = 4 * sieve_dleft_group(test, query.sorted);
    query.lo = ((state << 4) >> group) & 15;
    query.hi = (state >> group) & 15;
    return query;
}

/* One 64-bit bucket that is not grouped. */
SIEVE_DLEFT_BUCKET __u64 sieve_dleft64_bucket(__u64 word, __u64 test, __u32 sorting) {
    const __u32 state = sieve_dleft_states64[sorting & 1][word & 15];
    struct sieve_dleft_query query = sieve_dleft_ask(state, sorting ? SIEVE_DLEFT64_SORTED_ONE : 0, test);
    const struct sieve_dleft_cells* cells = &sieve_dleft_cells64[query.load];
    __u64 payload = word >> 4;

    if (SIEVE_UNLIKELY(!state && payload)) {
        cells = &sieve_dleft_cells64[16 + (payload & 15)];
        payload >>= 4;
        query.sorted = 0;
        query.hi = cells->load;
    }
    return sieve_dleft_equal(payload, sieve_dleft_stored(test, query.sorted, cells->width), cells->feet,
                             cells->width) &
           sieve_dleft_lanes(query.lo, query.hi, cells->width);
}

SIEVE_INLINE __u32 sieve_dleft128_sorted(__u32 sorting) {
    return sorting == 0 ? 0 : sorting == 1 ? SIEVE_DLEFT128_SORTED_ONE : SIEVE_DLEFT128_SORTED_TWO;
}

/* One 128-bit bucket that is not grouped. */
SIEVE_DLEFT_BUCKET __u64 sieve_dleft128_bucket(__u64 word0, __u64 word1, __u64 test, __u32 sorting) {
    const __u64 counter = sieve_within((word0 & 15) | ((word1 & 15) << 4), 255);
    struct sieve_dleft_query query =
        sieve_dleft_ask(sieve_dleft_states128[sorting & 3][counter], sieve_dleft128_sorted(sorting), test);
    const struct sieve_dleft_cells* cells = &sieve_dleft_cells128[query.load];
    __u64 payload0 = word0 >> 4;
    __u64 payload1 = word1 >> 4;
    __u32 room = 60;
    __u32 lo, hi, whole;
    __u64 want, equal, split;

    if (SIEVE_UNLIKELY(counter == SIEVE_DLEFT128_OVERFLOW)) {
        cells = &sieve_dleft_cells128[16 + (payload0 & 15)];
        payload0 >>= 4;
        payload1 >>= 4;
        room = 56;
        query.sorted = 0;
        query.lo = 0;
        query.load = query.hi = cells->load;
    }
    want = sieve_dleft_stored(test, query.sorted, cells->width);

    /* The odd cell at the end is not among the lanes. Exclude it from the range. */
    lo = query.lo - 1 + ((query.lo - (query.load | 1)) >> 31);
    hi = query.hi - 1 + ((query.hi - (query.load | 1)) >> 31);
    equal = sieve_dleft_equal(payload0, want, cells->feet, cells->width) &
            sieve_dleft_lanes((lo + 1) / 2, (hi + 1) / 2, cells->width);
    equal |= sieve_dleft_equal(payload1, want, cells->feet, cells->width) &
             sieve_dleft_lanes(lo / 2, hi / 2, cells->width);

    whole = query.load / 2 * cells->width;
    split = (payload0 >> (whole & 63)) | ((payload1 >> (whole & 63)) << ((room - whole) & 63));
    if ((query.hi - hi) - (query.lo - lo)) equal |= split == want;
    return equal;
}

/*
 * The same tests for the layouts that builders use, one sorted bit with 64-bit buckets and two with 128-bit
 * ones. All that the counter says is in one entry of a table, so that nothing waits for a chain of look-ups:
 * head bits of the cells by the value of the sorted bits, and shifts. These tests do not know buckets that
 * overflowed; sieve_dleft64_special and ..128_special tell them.
 */
struct sieve_dleft64_entry {
    __u64 feet;
    __u64 bodies; /* all bits of the cells but the heads */
    __u64 heads[2];
    __u64 sorted;
    __u64 narrow; /* 64 - width */
    __u64 unused[2];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_dleft64_entry) == 64, "one cache line");

struct sieve_dleft128_entry {
    __u64 feet;
    __u64 bodies;
    __u64 heads[2][4]; /* by word and sorted bits */
    __u64 sorted;
    __u64 narrow;
    __u64 split;    /* where the split cell begins in each word */
    __u64 split_of; /* bit g: the split cell may hold a fingerprint whose sorted bits are g */
    __u64 unused[2];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_dleft128_entry) == 128, "two cache lines");

/* The numbers of a state as constant expressions: load, and the cells below each value of the sorted bits. */
#define SIEVE_DLEFT_LOAD(s) ((s) >> 12)
#define SIEVE_DLEFT_BELOW(s, g) (((s) << 4) >> (4 * (g)) & 15)
#define SIEVE_DLEFT_SORTED_BITS(s, of_loads) ((of_loads) >> (2 * SIEVE_DLEFT_LOAD(s)) & 3)

/* clang-format off */
#define SIEVE_DLEFT64_WIDTH(a) ((a) ? 60 / ((a) + !(a)) : 1)
#define SIEVE_DLEFT64_FEET(a) \
    ((a) == 0 ? 0ULL : (a) == 1 ? 0x1ULL : (a) == 2 ? 0x40000001ULL : (a) == 3 ? 0x10000100001ULL : \
     (a) == 4 ? 0x200040008001ULL : (a) == 5 ? 0x1001001001001ULL : 0x4010040100401ULL)
#define SIEVE_DLEFT_RANGE(w, lo, hi) ((1ULL << ((hi) * (w))) - (1ULL << ((lo) * (w))))
#define SIEVE_DLEFT64_HEADS(s, g) \
    (SIEVE_DLEFT64_FEET(SIEVE_DLEFT_LOAD(s)) << (SIEVE_DLEFT64_WIDTH(SIEVE_DLEFT_LOAD(s)) - 1) & \
     (SIEVE_DLEFT_SORTED_BITS(s, SIEVE_DLEFT64_SORTED_ONE) \
          ? SIEVE_DLEFT_RANGE(SIEVE_DLEFT64_WIDTH(SIEVE_DLEFT_LOAD(s)), SIEVE_DLEFT_BELOW(s, g), \
                              SIEVE_DLEFT_BELOW(s, (g) + 1)) \
          : ~0ULL))
#define SIEVE_DLEFT64_ENTRY(s) \
    {SIEVE_DLEFT64_FEET(SIEVE_DLEFT_LOAD(s)), \
     (SIEVE_DLEFT64_FEET(SIEVE_DLEFT_LOAD(s)) << (SIEVE_DLEFT64_WIDTH(SIEVE_DLEFT_LOAD(s)) - 1)) - \
         SIEVE_DLEFT64_FEET(SIEVE_DLEFT_LOAD(s)), \
     {SIEVE_DLEFT64_HEADS(s, 0), SIEVE_DLEFT64_HEADS(s, 1)}, \
     SIEVE_DLEFT_SORTED_BITS(s, SIEVE_DLEFT64_SORTED_ONE), \
     64 - SIEVE_DLEFT64_WIDTH(SIEVE_DLEFT_LOAD(s)), \
     {0, 0}},

/* Cells of 128-bit buckets: at most 60 bits wide, a / 2 of them whole in each word. */
#define SIEVE_DLEFT128_WIDTH(a) ((a) == 0 ? 1 : (a) == 1 ? 60 : 120 / ((a) + !(a)))
#define SIEVE_DLEFT128_FEET(a) \
    ((a) < 2 ? 0ULL : (a) < 4 ? 0x1ULL : (a) == 4 ? 0x40000001ULL : (a) == 5 ? 0x1000001ULL : \
     (a) == 6 ? 0x10000100001ULL : (a) == 7 ? 0x400020001ULL : (a) == 8 ? 0x200040008001ULL : \
     (a) == 9 ? 0x8004002001ULL : 0x1001001001001ULL)
/* The number of cells below g without the odd cell, which is the last. */
#define SIEVE_DLEFT128_WHOLE(s, g) \
    (SIEVE_DLEFT_BELOW(s, g) - (SIEVE_DLEFT_BELOW(s, g) == (SIEVE_DLEFT_LOAD(s) | 1)))
#define SIEVE_DLEFT128_HEADS(s, word, g) \
    (SIEVE_DLEFT128_FEET(SIEVE_DLEFT_LOAD(s)) << (SIEVE_DLEFT128_WIDTH(SIEVE_DLEFT_LOAD(s)) - 1) & \
     SIEVE_DLEFT_RANGE(SIEVE_DLEFT128_WIDTH(SIEVE_DLEFT_LOAD(s)), \
                       (SIEVE_DLEFT128_WHOLE(s, g) + 1 - (word)) / 2, \
                       (SIEVE_DLEFT128_WHOLE(s, (g) + 1) + 1 - (word)) / 2))
#define SIEVE_DLEFT128_SPLIT(s, g) \
    ((SIEVE_DLEFT_BELOW(s, g) != (SIEVE_DLEFT_LOAD(s) | 1) && \
      SIEVE_DLEFT_BELOW(s, (g) + 1) == (SIEVE_DLEFT_LOAD(s) | 1)) << (g))
#define SIEVE_DLEFT128_ENTRY(s) \
    {SIEVE_DLEFT128_FEET(SIEVE_DLEFT_LOAD(s)), \
     (SIEVE_DLEFT128_FEET(SIEVE_DLEFT_LOAD(s)) << (SIEVE_DLEFT128_WIDTH(SIEVE_DLEFT_LOAD(s)) - 1)) - \
         SIEVE_DLEFT128_FEET(SIEVE_DLEFT_LOAD(s)), \
     {{SIEVE_DLEFT128_HEADS(s, 0, 0), SIEVE_DLEFT128_HEADS(s, 0, 1), SIEVE_DLEFT128_HEADS(s, 0, 2), \
       SIEVE_DLEFT128_HEADS(s, 0, 3)}, \
      {SIEVE_DLEFT128_HEADS(s, 1, 0), SIEVE_DLEFT128_HEADS(s, 1, 1), SIEVE_DLEFT128_HEADS(s, 1, 2), \
       SIEVE_DLEFT128_HEADS(s, 1, 3)}}, \
     SIEVE_DLEFT_SORTED_BITS(s, SIEVE_DLEFT128_SORTED_TWO), \
     64 - SIEVE_DLEFT128_WIDTH(SIEVE_DLEFT_LOAD(s)), \
     SIEVE_DLEFT_LOAD(s) / 2 * SIEVE_DLEFT128_WIDTH(SIEVE_DLEFT_LOAD(s)), \
     SIEVE_DLEFT128_SPLIT(s, 0) | SIEVE_DLEFT128_SPLIT(s, 1) | SIEVE_DLEFT128_SPLIT(s, 2) | \
         SIEVE_DLEFT128_SPLIT(s, 3), \
     {0, 0}},

static const struct sieve_dleft64_entry sieve_dleft64_entries[16] = {
    SIEVE_DLEFT64_STATES(SIEVE_DLEFT64_ENTRY)
};
static const struct sieve_dleft128_entry sieve_dleft128_entries[256] = {
    SIEVE_DLEFT128_STATES(SIEVE_DLEFT128_ENTRY)
    {0, 0, {{0, 0, 0, 0}, {0, 0, 0, 0}}, 0, 63, 0, 0, {0, 0}}, /* overflow */
};
/* clang-format on */

/* Nonzero if a 64-bit bucket of one sorted bit, which has not overflowed, holds the fingerprint. */
SIEVE_INLINE __u64 sieve_dleft64_plain(__u64 word, __u64 test) {
    const struct sieve_dleft64_entry* entry = &sieve_dleft64_entries[word & 15];
    const __u64 want = sieve_shift_right(sieve_shift_left(test, entry->sorted), entry->narrow);
    const __u64 differ = (word >> 4) ^ (want * entry->feet);
    const __u64 bodies = entry->bodies;

    return entry->heads[test >> 63] & ~(((differ & bodies) + bodies) | differ);
}

/* Whether the bucket has overflowed. */
SIEVE_INLINE int sieve_dleft64_special(__u64 word) {
    return word && !(word & 15);
}

/* Nonzero if a 128-bit bucket of two sorted bits, which has not overflowed, holds the fingerprint. */
SIEVE_INLINE __u64 sieve_dleft128_plain(__u64 word0, __u64 word1, __u64 test) {
    const __u64 counter = sieve_within((word0 & 15) | ((word1 & 15) << 4), 255);
    const struct sieve_dleft128_entry* entry = &sieve_dleft128_entries[counter];
    const __u64 sorted = entry->sorted;
    const __u64 want = sieve_shift_right(sieve_shift_left(test, sorted), entry->narrow);
    const __u64 pattern = want * entry->feet;
    const __u64 bodies = entry->bodies;
    const __u32 group = (__u32)sieve_shift_right(test >> 1, 63 - sorted) & 3;
    const __u64 payload0 = word0 >> 4;
    const __u64 payload1 = word1 >> 4;
    __u64 differ = payload0 ^ pattern;
    __u64 equal = entry->heads[0][group] & ~(((differ & bodies) + bodies) | differ);

    differ = payload1 ^ pattern;
    equal |= entry->heads[1][group] & ~(((differ & bodies) + bodies) | differ);
    if (sieve_shift_right(entry->split_of, group) & 1) {
        const __u64 at = entry->split;
        equal |= (sieve_shift_right(payload0, at) |
                  sieve_shift_left(sieve_shift_right(payload1, at), 60 - at)) == want;
    }
    return equal;
}

SIEVE_INLINE int sieve_dleft128_special(__u64 word0, __u64 word1) {
    return (word0 & word1 & 15) == 15;
}

/*
 * One bucket of a group of four. The group begins at `word` of its line. The four counters take `base` bits,
 * and `bits` bits are left for the cells.
 */
SIEVE_INLINE __u64 sieve_dleft_grouped_bucket(const struct sieve_line* line, __u32 word, __u32 base,
                                              __u32 bits, const __u32 state[SIEVE_DLEFT_GROUP], __u32 member,
                                              __u32 sorted_of_loads, __u64 test, __u32 top_load) {
    const __u32 loads[SIEVE_DLEFT_GROUP] = {state[0] >> 12, state[1] >> 12, state[2] >> 12, state[3] >> 12};
    const __u32 sum = loads[0] + loads[1] + loads[2] + loads[3];
    struct sieve_dleft_query query;
    __u32 own = state[0], before = 0, width, at;
    __u64 want;

    if (!sum) return 0;
    if (member > 0) own = state[1], before += loads[0];
    if (member > 1) own = state[2], before += loads[1];
    if (member > 2) own = state[3], before += loads[2];
    query = sieve_dleft_ask(own, sorted_of_loads, test);
    width = bits / sum;
    if (width > SIEVE_DLEFT_MAX_WIDTH) width = SIEVE_DLEFT_MAX_WIDTH;
    want = sieve_dleft_stored(test, query.sorted, width);
    at = base + (before + query.lo) * width;
#pragma GCC unroll 10
    for (__u32 i = 0; i < top_load; i++) {
        if (query.lo + i >= query.hi) break;
        const __u64 lower = line->word[(word + (at >> 6)) & 7] >> (at & 63);
        const __u64 upper = (line->word[(word + (at >> 6) + 1) & 7] << 1) << (63 - (at & 63));
        if (!(((lower | upper) ^ want) << ((64 - width) & 63))) return 1;
        at += width;
    }
    return 0;
}

SIEVE_DLEFT_BUCKET __u64 sieve_dleft64_grouped(const struct sieve_line* line, __u32 position, __u64 test,
                                               __u32 sorting) {
    if (!line) return 0; /* the verifier asks */
    const __u32 word = position & 4;
    const __u32 counters = (__u32)line->word[word];
    const __u32 state[SIEVE_DLEFT_GROUP] = {
        sieve_dleft_states64[sorting & 1][counters & 15],
        sieve_dleft_states64[sorting & 1][(counters >> 4) & 15],
        sieve_dleft_states64[sorting & 1][(counters >> 8) & 15],
        sieve_dleft_states64[sorting & 1][(counters >> 12) & 15],
    };
    return sieve_dleft_grouped_bucket(line, word, 16, 240, state, position & 3,
                                      sorting ? SIEVE_DLEFT64_SORTED_ONE : 0, test, SIEVE_DLEFT64_TOP_LOAD);
}

SIEVE_DLEFT_BUCKET __u64 sieve_dleft128_grouped(const struct sieve_line* line, __u32 position, __u64 test,
                                                __u32 sorting) {
    if (!line) return 0; /* the verifier asks */
    const __u16* states = sieve_dleft_states128[sorting & 3];
    const __u32 counters = (__u32)line->word[0];
    const __u32 state[SIEVE_DLEFT_GROUP] = {states[counters & 255], states[(counters >> 8) & 255],
                                            states[(counters >> 16) & 255], states[counters >> 24]};

    if (((counters >> (8 * (position & 3))) & 255) == SIEVE_DLEFT128_OVERFLOW) return 1;
    return sieve_dleft_grouped_bucket(line, 0, 32, 480, state, position & 3, sieve_dleft128_sorted(sorting),
                                      test, SIEVE_DLEFT128_TOP_LOAD);
}

/* Whether the bucket at that position of the line holds the fingerprint. */
SIEVE_INLINE __u64 sieve_dleft_in_line(const struct sieve_lookup* lookup, const struct sieve_line* line,
                                       __u32 position, __u64 test) {
    const __u32 sorting = lookup->hashes & SIEVE_DLEFT_SORTING;
    const __u32 grouped = lookup->hashes & SIEVE_DLEFT_GROUPED;
    if (lookup->kind == SIEVE_KIND_DLEFT64)
        return grouped ? sieve_dleft64_grouped(line, position, test, sorting)
                       : sieve_dleft64_bucket(line->word[position & 7], test, sorting);
    return grouped ? sieve_dleft128_grouped(line, position, test, sorting)
                   : sieve_dleft128_bucket(line->word[2 * (position & 3)], line->word[2 * (position & 3) + 1],
                                           test, sorting);
}

/*
 * Test: true if one of the key's buckets holds its fingerprint. `line` and `position` have the located bucket
 * address of each subtable.
 */
SIEVE_INLINE int sieve_dleft_test(const struct sieve_lookup* lookup, struct sieve_hash hash,
                                  const struct sieve_line* const line[SIEVE_DLEFT_MAX_SUBTABLES],
                                  const __u32 position[SIEVE_DLEFT_MAX_SUBTABLES]) {
    if (sieve_dleft_in_line(lookup, line[0], position[0], hash.test)) return 1;
    if (sieve_dleft_in_line(lookup, line[1], position[1], hash.test)) return 1;
    if (lookup->choices > 2 && sieve_dleft_in_line(lookup, line[2], position[2], hash.test)) return 1;
    return lookup->choices > 3 && sieve_dleft_in_line(lookup, line[3], position[3], hash.test);
}

/* True for what builders make: two subtables, not grouped, one sorted bit (64) or two (128). */
SIEVE_INLINE int sieve_dleft_is_usual(const struct sieve_lookup* lookup) {
    return lookup->choices == 2 && lookup->hashes == (lookup->kind == SIEVE_KIND_DLEFT64 ? 1 : 2);
}

/* Test of the usual filter: true if one of the key's two buckets holds its fingerprint. Both are tested
 * before either answer is looked at, so that the two cache misses overlap. */
SIEVE_INLINE int sieve_dleft64_test(__u64 first, __u64 second, __u64 test) {
    __u64 any = sieve_dleft64_plain(first, test) | sieve_dleft64_plain(second, test);

    if (SIEVE_UNLIKELY(sieve_dleft64_special(first))) any |= sieve_dleft64_bucket(first, test, 1);
    if (SIEVE_UNLIKELY(sieve_dleft64_special(second))) any |= sieve_dleft64_bucket(second, test, 1);
    return any != 0;
}

/* The same with 128-bit buckets, each of two words. */
SIEVE_INLINE int sieve_dleft128_test(const __u64* first, const __u64* second, __u64 test) {
    const __u64 a0 = first[0], a1 = first[1], b0 = second[0], b1 = second[1];
    __u64 any = sieve_dleft128_plain(a0, a1, test) | sieve_dleft128_plain(b0, b1, test);

    if (SIEVE_UNLIKELY(sieve_dleft128_special(a0, a1))) any |= sieve_dleft128_bucket(a0, a1, test, 2);
    if (SIEVE_UNLIKELY(sieve_dleft128_special(b0, b1))) any |= sieve_dleft128_bucket(b0, b1, test, 2);
    return any != 0;
}

#endif
