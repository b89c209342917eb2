/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kind `exact`: sets of single addresses without false positives, at the size of a filter. A packet
 * touches two lines, both requested before either is tested. (Keys of several fields are at the end.)
 *
 * IPv4 addresses are *quotiented* (Knuth, TAOCP 3, exercise 6.4-13; Bonomi et al., "An Improved Construction
 * for Counting Bloom Filters", ESA 2006, keep a part of the remainder): a keyed bijection names a word, and
 * the word holds what the name leaves open. So nothing is lost, and the table can be listed. Each key has two
 * words to be in (Dietzfelbinger, Weidling, "Balanced Allocation and Dictionaries with Tightly Packed
 * Constant Size Bins", TCS 380, 2007). docs/exact.md explains both.
 *
 *   P     = permute(address)              a keyed bijection of 32 bits
 *   b1    = P * M >> 32                   the first word, of M words, 8 to a line
 *   r     = (P * M mod 2^32) * R >> 32    the remainder, R = ceil(2^32 / M): b1 and r determine P
 *   b2    = b1 + 1 + h(r) mod M           the second word, h(r) = (r * K mod 2^32) * reach >> 32
 *
 *   word  lanes of w bits, the first in the lowest bits; further bits are zero
 *   lane  t << v | value, where t = r in word b1 and t = R + r in word b2; or all ones: no key
 *
 * 2 R <= 2^(w - v) - 1, so that no key's lane is all ones. A word has 64 / w lanes, or 64 / (w + 1) if keys
 * have *marks*: then the bit above each lane says that a packet found its key there. Packets set it, so a
 * controller stores to such words by compare-and-swap. A lane without a key has no mark. Tables with values
 * have no marks.
 *
 * A table may give each key a *value* of v bits; in most tables v = 0. enum sieve_exact_meaning says what
 * values mean.
 *
 * IPv6 addresses lie whole in lines of four: words 0 to 3 hold the upper words of the addresses, words 4 to 7
 * their lower ones. Each address has two lines to be in. A place without an address holds ::ffff:0.0.0.0:
 * addresses of IPv4 are asked for in the other part, so no address is ambiguous. The values of four places
 * are one word, the first in the lowest 16 bits, and the words of eight lines are a line. The value of a
 * place without an address is zero. In a table with marks the highest bit of an address follows from the two
 * below it, and a mark turns it over (sieve_exact_unmarked()). The table cannot hold other addresses. The
 * mark of a place without an address means nothing.
 *
 *   filter's line 0                struct sieve_exact_ipv6
 *   lines 1 to M / 8               the words of the IPv4 part, M > 0
 *   L lines, possibly none         the addresses of the IPv6 part
 *   if v > 0, ceil(L / 8) lines    their values
 *
 * Keys come and go under lookups, by one aligned 64-bit store to a word; a key that moves is in both of its
 * words until all lookups that may have missed the newer copy have ended. docs/live-changes.md has the proof.
 * So a lookup reads each word with one load, in any order.
 *
 * Keys of several fields, such as flows, are nothing but records of the tagged form (sieve/records.h): line 0
 * of the image is a plain struct sieve_lookup, whose hash keys are those of `key_sum` alone, and the filter's
 * line 0 is a struct sieve_records with the fields of the set. A packet reads two rows of tags, and a record
 * for each of their tags that its key has.
 *
 * Line 0 of the image holds the geometry and the secrets of the IPv4 part in place of hash keys. **The image
 * is the list**: whoever reads it can list the addresses.
 */
#ifndef SIEVE_EXACT_TABLE_H
#define SIEVE_EXACT_TABLE_H

#include <sieve/prefix.h>

/* struct sieve_lookup as this kind reads it. */
struct __attribute__((may_alias)) sieve_exact {
    __u32 magic;
    __u8 kind;
    __u8 fields;
    __u8 choices;    /* 2: the words, or lines, that a key may be in */
    __u8 width;      /* w, in place of `hashes` */
    __u32 lines;     /* of the filter, in place of `buckets` */
    __u8 value_bits; /* v, the lower byte of `alpha` */
    __u8 last;       /* if v > 0, the number of the last lane's lowest bit; else 0 */
    __u8 probes;     /* 0 */
    __u8 marks;      /* 1 if keys have marks, else 0; in place of `shard_bits` */

    __u32 words; /* M, a multiple of 8 */
    __u32 range; /* R */
    __u32 add;   /* secret, as are the multipliers, which are odd */
    __u32 multiply[3];
    __u32 spread; /* K, a secret odd multiplier */
    __u32 reach;  /* how many words behind the first one the second may be; below M */
    __u64 feet;   /* the lowest bit of each lane */
    __u64 second; /* R << v in each lane */
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_exact) == SIEVE_LINE_BYTES, "line 0");

SIEVE_INLINE const struct sieve_exact* sieve_exact_of(const struct sieve_lookup* lookup) {
    return (const struct sieve_exact*)lookup;
}

#define SIEVE_EXACT_CHOICES 2
#define SIEVE_EXACT_IPV4_LINE 1 /* the first line of the IPv4 part */
#define SIEVE_EXACT_IPV6_WAYS 4 /* addresses in a line */

/* Values of IPv6 addresses have as many bits of room. */
#define SIEVE_EXACT_MOST_VALUE_BITS 16

/* What the values of a table mean. */
enum sieve_exact_meaning {
    SIEVE_EXACT_PLAIN = 0, /* there are none: v = 0 */
    SIEVE_EXACT_SETS = 1,  /* which of several sets hold the key (sieve/joint.h) */
    SIEVE_EXACT_ENDS = 2,  /* the unit of time in which the key's membership ends; all ones: it does not */
};

/* The filter's line 0. */
struct __attribute__((may_alias)) sieve_exact_ipv6 {
    __u64 hash_key[2]; /* secret */
    __u32 lines;       /* of addresses, L; 0: no member has the family */
    __u8 meaning;      /* enum sieve_exact_meaning, of both parts' values */
    __u8 unit;         /* of ends: 2^unit nanoseconds; else 0 */
    __u8 sets;         /* of sets: how many; each value is below. Else 0 */
    __u8 reserved0;
    __u64 base;      /* of ends: when unit 0 began, in nanoseconds of CLOCK_MONOTONIC_COARSE; else 0 */
    __u64 unsettled; /* of a running map: a change is going on, or its writer died. In a file 0 */
    __u64 reserved[3];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_exact_ipv6) == SIEVE_LINE_BYTES, "one line");

/* `unsettled`: a change is going on; from SIEVE_EXACT_WRITING on, so is a store to that place (line * ways +
 * place) of the IPv6 part. Its upper word is zero while it holds half an address.
 */
#define SIEVE_EXACT_CHANGING 1
#define SIEVE_EXACT_WRITING 2

/* A bijection: each step can be undone. */
SIEVE_INLINE __u32 sieve_exact_permute(const struct sieve_exact* exact, __u32 address) {
    __u32 x = address + exact->add;

    x ^= x >> 16;
    x *= exact->multiply[0];
    x ^= x >> 15;
    x *= exact->multiply[1];
    x ^= x >> 16;
    x *= exact->multiply[2];
    return x;
}

/* Where an IPv4 address may be, and as what. */
struct sieve_exact_place {
    __u32 first, second; /* words */
    __u32 rest;
};

/* How far behind the first word the second one is; never 0. */
SIEVE_INLINE __u32 sieve_exact_offset(const struct sieve_exact* exact, __u32 rest) {
    return sieve_reduce(rest * exact->spread, exact->reach) + 1;
}

SIEVE_INLINE struct sieve_exact_place sieve_exact_locate(const struct sieve_exact* exact, __u32 permuted) {
    const __u64 product = (__u64)permuted * exact->words;
    struct sieve_exact_place place;
    __u64 second, wraps;

    place.first = (__u32)(product >> 32);
    place.rest = sieve_reduce((__u32)product, exact->range);
    second = (__u64)place.first + sieve_exact_offset(exact, place.rest);
    wraps = (__u64)exact->words - 1 - second; /* its sign; clang would make a branch of a comparison */
    SIEVE_KEEP(wraps);
    place.second = (__u32)(second - (exact->words & (__u64)((__s64)wraps >> 63)));
    return place;
}

/* The line of a word of the IPv4 part, and its index there. */
SIEVE_INLINE __u32 sieve_exact_line(__u32 word) {
    return SIEVE_EXACT_IPV4_LINE + word / SIEVE_LINE_WORDS;
}
SIEVE_INLINE __u32 sieve_exact_index(__u32 word) {
    return word % SIEVE_LINE_WORDS;
}

/* One load, which the compiler neither splits nor repeats: the word may change meanwhile. */
SIEVE_INLINE __u64 sieve_exact_load(const struct sieve_line* line, __u32 index) {
#ifdef __bpf__
    return *(const volatile __u64*)&line->word[index];
#else
    return __atomic_load_n(&line->word[index], __ATOMIC_RELAXED);
#endif
}

/* The highest bits of the lanes that hold a key, in each of its words. */
struct sieve_exact_match {
    __u64 first, second;
};

/*
 * v = 0: `(x - feet) & ~x & heads` is not zero if and only if a lane of x is: the borrow of a lane that is
 * zero may flag lanes above it, but nothing else does. The lowest one that is flagged is zero. A mark above a
 * lane that is zero takes the borrow. These are both words' results, without `& heads`.
 */
SIEVE_INLINE struct sieve_exact_match sieve_exact_compare(const struct sieve_exact* exact, __u64 first,
                                                          __u64 second, __u32 rest) {
    const __u64 feet = exact->feet;
    const __u64 wanted = rest * feet;
    const __u64 a = first ^ wanted, b = second ^ (wanted + exact->second);
    struct sieve_exact_match match;

    match.first = (a - feet) & ~a;
    match.second = (b - feet) & ~b;
    return match;
}

/* The highest bit of each lane. */
SIEVE_INLINE __u64 sieve_exact_heads(const struct sieve_exact* exact) {
    return sieve_shift_left(exact->feet, exact->width - 1);
}

/* Not zero if a lane of either word holds the key. */
SIEVE_INLINE __u64 sieve_exact_test(const struct sieve_exact* exact, __u64 first, __u64 second, __u32 rest) {
    const struct sieve_exact_match match = sieve_exact_compare(exact, first, second, rest);

    return (match.first | match.second) & sieve_exact_heads(exact);
}

/* The mark of the lowest lane of those that are flagged. */
SIEVE_INLINE __u64 sieve_exact_mark(__u64 flagged) {
    return (flagged & (0 - flagged)) << 1;
}
/* The bits of the lane below a mark. */
SIEVE_INLINE __u64 sieve_exact_lane_below(const struct sieve_exact* exact, __u64 mark) {
    return mark - sieve_shift_right(mark, exact->width);
}

/*
 * v > 0: where the key is, whatever its value. The bits of values are zero in the difference, so that no lane
 * but one that is zero is flagged: after the borrow, a lane above it that is not zero still counts at
 * least 2.
 */
SIEVE_INLINE struct sieve_exact_match sieve_exact_find(const struct sieve_exact* exact, __u64 first,
                                                       __u64 second, __u32 rest) {
    const __u64 feet = exact->feet, heads = sieve_exact_heads(exact);
    const __u64 values = sieve_shift_left(feet, exact->value_bits) - feet;
    const __u64 wanted = sieve_shift_left(rest, exact->value_bits) * feet;
    const __u64 a = (first ^ wanted) & ~values, b = (second ^ (wanted + exact->second)) & ~values;
    struct sieve_exact_match match;

    match.first = (a - feet) & ~a & heads;
    match.second = (b - feet) & ~b & heads;
    return match;
}

/* The value of the lane of a word that `head`, one bit, is the highest bit of. The product with `feet` brings
 * whichever lane it is to the last one. */
SIEVE_INLINE __u32 sieve_exact_lane_value(const struct sieve_exact* exact, __u64 word, __u64 head) {
    const __u64 mask = sieve_shift_left(1, exact->value_bits) - 1;
    const __u64 lane = word & sieve_shift_right(head, exact->width - 1) * mask;

    return (__u32)(sieve_shift_right(lane * exact->feet, exact->last) & mask);
}

/* Of ends: the unit of a time of CLOCK_MONOTONIC_COARSE. It stops at the last unit but one that a value can
 * state, so that no entry that has ended comes to life again. Before the base, no entry has ended but those
 * of unit 0. */
SIEVE_INLINE __u32 sieve_exact_unit(const struct sieve_exact* exact, const struct sieve_exact_ipv6* part,
                                    __u64 nanoseconds) {
    const __u64 last = sieve_shift_left(1, exact->value_bits) - 2;
    const __u64 since = nanoseconds - part->base;
    const __u64 unit = (__s64)since < 0 ? 0 : sieve_shift_right(since, part->unit);

    return (__u32)(unit < last ? unit : last);
}

/* Whether an entry with this value has ended in that unit. All ones is above every unit. */
SIEVE_INLINE int sieve_exact_ended(__u32 value, __u32 unit) {
    return value <= unit;
}

/* The lines of the IPv6 part that an address may be in, counted from the part's first. */
struct sieve_exact_lines {
    __u32 first, second;
};

SIEVE_INLINE struct sieve_exact_lines sieve_exact_locate_ipv6(const struct sieve_exact_ipv6* part,
                                                              __u64 upper, __u64 lower) {
    const __u64 hash =
        sieve_mix(sieve_nh_step(upper, part->hash_key[0]) + sieve_nh_step(lower, part->hash_key[1]));
    struct sieve_exact_lines lines;

    lines.first = sieve_reduce((__u32)(hash >> 32), part->lines);
    lines.second = sieve_reduce((__u32)hash, part->lines);
    return lines;
}

/* The first line of the IPv6 part. */
SIEVE_INLINE __u32 sieve_exact_ipv6_line(const struct sieve_exact* exact) {
    return SIEVE_EXACT_IPV4_LINE + exact->words / SIEVE_LINE_WORDS;
}

/* The highest bit is clear if and only if the words are equal; of the upper ones, the highest bit does not
 * count if `marks` is 1. */
SIEVE_INLINE __u64 sieve_exact_differs(__u64 upper, __u64 lower, __u64 upper_too, __u64 lower_too,
                                       __u32 marks) {
    const __u64 difference = ((upper ^ upper_too) << marks) | (lower ^ lower_too);

    return difference | (0 - difference);
}

#define SIEVE_EXACT_IPV6_MARK (1ULL << 63)

/* The upper word of an IPv6 address, in whose highest bit there may be a mark. That bit follows from the next
 * two in all addresses that are in use: those below 6000:: and those from e000:: on. */
SIEVE_INLINE __u64 sieve_exact_unmarked(__u64 upper) {
    return (upper & ~SIEVE_EXACT_IPV6_MARK) | (upper << 1 & upper << 2 & SIEVE_EXACT_IPV6_MARK);
}

/* 1 if the line holds the IPv6 address, marked or not if `marks` is 1 (then it must be one that can be
 * marked), else 0. There is no branch, because the verifier would walk both ways.
 */
SIEVE_INLINE __u64 sieve_exact_test_ipv6(const struct sieve_line* line, __u64 upper, __u64 lower,
                                         __u32 marks) {
    __u64 none = ~0ULL;
    int i;

#pragma GCC unroll 4
    for (i = 0; i < SIEVE_EXACT_IPV6_WAYS; i++) {
        none &= sieve_exact_differs(upper, lower, sieve_exact_load(line, i),
                                    sieve_exact_load(line, i + SIEVE_EXACT_IPV6_WAYS), marks);
        SIEVE_KEEP(none);
    }
    return (none >> 63) ^ 1;
}

/* The line with the values of a line of addresses, counted from the IPv6 part's first; the index of their
 * word there. */
SIEVE_INLINE __u32 sieve_exact_value_line(const struct sieve_exact_ipv6* part, __u32 line) {
    return part->lines + line / SIEVE_LINE_WORDS;
}
SIEVE_INLINE __u32 sieve_exact_value_index(__u32 line) {
    return line % SIEVE_LINE_WORDS;
}

/* The value, out of the word of a line's values, of the address, which the line holds. */
SIEVE_INLINE __u32 sieve_exact_value_ipv6(const struct sieve_line* line, __u64 values, __u64 upper,
                                          __u64 lower) {
    __u64 value = 0;
    int i;

#pragma GCC unroll 4
    for (i = 0; i < SIEVE_EXACT_IPV6_WAYS; i++) {
        const __u64 differs = sieve_exact_differs(upper, lower, sieve_exact_load(line, i),
                                                  sieve_exact_load(line, i + SIEVE_EXACT_IPV6_WAYS), 0);

        value |= (values >> (16 * i)) & ~(__u64)((__s64)differs >> 63);
        SIEVE_KEEP(value);
    }
    return (__u32)value & 0xffff;
}

#endif
