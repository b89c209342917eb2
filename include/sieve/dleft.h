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
static const __u16 sieve_dleft_states64[2][16] = {
    { /* no semi-sorting */
        0x0000, 0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666,
    },
    { /* one bit at loads 4 and 5 */
        0x0000, 0x1111, 0x2222, 0x3333, 0x4440, 0x4441, 0x4442, 0x4443, 0x4444, 0x5550, 0x5551, 0x5552,
        0x5553, 0x5554, 0x5555, 0x6666,
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
        0x0000, 0x1110, 0x1111, 0x2220, 0x2221, 0x2222, 0x3330, 0x3331, 0x3332, 0x3333, 0x4440, 0x4441,
        0x4442, 0x4443, 0x4444, 0x5550, 0x5551, 0x5552, 0x5553, 0x5554, 0x5555, 0x6000, 0x6100, 0x6200,
        0x6300, 0x6400, 0x6500, 0x6600, 0x6110, 0x6210, 0x6310, 0x6410, 0x6510, 0x6610, 0x6220, 0x6320,
        0x6420, 0x6520, 0x6620, 0x6330, 0x6430, 0x6530, 0x6630, 0x6440, 0x6540, 0x6640, 0x6550, 0x6650,
        0x6660, 0x6111, 0x6211, 0x6311, 0x6411, 0x6511, 0x6611, 0x6221, 0x6321, 0x6421, 0x6521, 0x6621,
        0x6331, 0x6431, 0x6531, 0x6631, 0x6441, 0x6541, 0x6641, 0x6551, 0x6651, 0x6661, 0x6222, 0x6322,
        0x6422, 0x6522, 0x6622, 0x6332, 0x6432, 0x6532, 0x6632, 0x6442, 0x6542, 0x6642, 0x6552, 0x6652,
        0x6662, 0x6333, 0x6433, 0x6533, 0x6633, 0x6443, 0x6543, 0x6643, 0x6553, 0x6653, 0x6663, 0x6444,
        0x6544, 0x6644, 0x6554, 0x6654, 0x6664, 0x6555, 0x6655, 0x6665, 0x6666, 0x7000, 0x7100, 0x7200,
        0x7300, 0x7400, 0x7500, 0x7600, 0x7700, 0x7110, 0x7210, 0x7310, 0x7410, 0x7510, 0x7610, 0x7710,
        0x7220, 0x7320, 0x7420, 0x7520, 0x7620, 0x7720, 0x7330, 0x7430, 0x7530, 0x7630, 0x7730, 0x7440,
        0x7540, 0x7640, 0x7740, 0x7550, 0x7650, 0x7750, 0x7660, 0x7760, 0x7770, 0x7111, 0x7211, 0x7311,
        0x7411, 0x7511, 0x7611, 0x7711, 0x7221, 0x7321, 0x7421, 0x7521, 0x7621, 0x7721, 0x7331, 0x7431,
        0x7531, 0x7631, 0x7731, 0x7441, 0x7541, 0x7641, 0x7741, 0x7551, 0x7651, 0x7751, 0x7661, 0x7761,
        0x7771, 0x7222, 0x7322, 0x7422, 0x7522, 0x7622, 0x7722, 0x7332, 0x7432, 0x7532, 0x7632, 0x7732,
        0x7442, 0x7542, 0x7642, 0x7742, 0x7552, 0x7652, 0x7752, 0x7662, 0x7762, 0x7772, 0x7333, 0x7433,
        0x7533, 0x7633, 0x7733, 0x7443, 0x7543, 0x7643, 0x7743, 0x7553, 0x7653, 0x7753, 0x7663, 0x7763,
        0x7773, 0x7444, 0x7544, 0x7644, 0x7744, 0x7554, 0x7654, 0x7754, 0x7664, 0x7764, 0x7774, 0x7555,
        0x7655, 0x7755, 0x7665, 0x7765, 0x7775, 0x7666, 0x7766, 0x7776, 0x7777, 0x8880, 0x8881, 0x8882,
        0x8883, 0x8884, 0x8885, 0x8886, 0x8887, 0x8888, 0x9990, 0x9991, 0x9992, 0x9993, 0x9994, 0x9995,
        0x9996, 0x9997, 0x9998, 0x9999, 0xaaa0, 0xaaa1, 0xaaa2, 0xaaa3, 0xaaa4, 0xaaa5, 0xaaa6, 0xaaa7,
        0xaaa8, 0xaaa9, 0xaaaa,
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

/*
 * Locate: the bucket address in each subtable, that is, the line relative to the filter's first and the
 * bucket's position in it. Entries beyond the filter's subtables repeat the first.
 */
SIEVE_INLINE void sieve_dleft_locate(const struct sieve_lookup* lookup, struct sieve_hash hash,
                                     __u32 line[SIEVE_DLEFT_MAX_SUBTABLES],
                                     __u32 position[SIEVE_DLEFT_MAX_SUBTABLES]) {
    const __u32 shift = sieve_dleft_line_shift(lookup);
    const __u32 last = (1U << shift) - 1;
    const __u32 lines = lookup->buckets;
    __u32 bucket;

    bucket = sieve_reduce((__u32)hash.locate, lines << shift);
    line[0] = bucket >> shift;
    position[0] = bucket & last;
    bucket = sieve_reduce((__u32)(hash.locate >> 32), lines << shift);
    line[1] = lines + (bucket >> shift);
    position[1] = bucket & last;
    line[2] = line[3] = line[0];
    position[2] = position[3] = position[0];
    if (lookup->choices > 2) {
        bucket = sieve_reduce((__u32)((hash.locate * SIEVE_DLEFT_THIRD_MULTIPLIER) >> 32), lines << shift);
        line[2] = 2 * lines + (bucket >> shift);
        position[2] = bucket & last;
    }
    if (lookup->choices > 3) {
        bucket = sieve_reduce((__u32)((hash.locate * SIEVE_DLEFT_FOURTH_MULTIPLIER) >> 32), lines << shift);
        line[3] = 3 * lines + (bucket >> shift);
        position[3] = bucket & last;
    }
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

#endif
