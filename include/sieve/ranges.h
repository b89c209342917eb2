/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kind `ranges`: sets of addresses, prefixes and ranges of any lengths, held exactly. It has no false
 * positive and hashes nothing.
 *
 * A set of addresses is kept as its boundaries: the sorted addresses at which membership flips (Lampson,
 * Srinivasan, Varghese, "IP Lookups Using Multiway and Multicolumn Search", 1998). An address is a member if
 * the number of boundaries at or below it is odd. A direct table finds the few boundaries that matter (DXR:
 * Zec, Rizzo, Mikuc, CCR 42(5), 2012), so most packets touch one or two lines. docs/prefixes.md explains it.
 *
 * There are three parts, each with a table of its own:
 *
 *   IPv4   numbers of 32 bits: the address
 *   IPv6   numbers of 64 bits: the address's upper word, for what covers whole /64s
 *   fine   numbers of 128 bits: IPv6 addresses, for what covers a piece of a /64 only
 *
 * Part. A part divides its space into cells of 2^shift numbers each (the fine part: 2^shift upper words),
 * from the first cell with a boundary to the last. Outside these cells membership is constant. Where a packet
 * finds the geometry: a kind that hashes nothing has no hash key, so hash_key[] of line 0 holds two words a
 * part.
 *
 *   word 0   the first number of the first cell | shift (6 bits) | below << 6 | above << 7
 *            (cells have at least 256 numbers, so that the lower eight bits are free)
 *   word 1   number of cells | first line of the table << 32
 *
 * Table. One 32-bit entry a cell, 16 to a line:
 *
 *   bit 0        membership before the first boundary that the cell's lines hold
 *   bits 1..4    depth: 0, the cell is constant; 1 to 14, levels of lines to its leaves; 15, a bitmap
 *   bits 5..31   the line to read next
 *
 * Leaf. A line of 16, 8 or 4 sorted separators, by part. A separator is a boundary less one, so that it
 * counts for an address above it. What is not used holds an address that no address of the line's cells is
 * above. Cells with few boundaries share leaves: separators of other cells all count or all do not, and the
 * entries' bit 0 takes that into account. So a leaf's answer is one exclusive-or: the signs of separator -
 * address.
 *
 * Inner line. 15, 7 or 3 separators and, in the last place, the line of the first child; the number of
 * separators below the address says which child is next. Used where one cell has more boundaries than a leaf.
 *
 * Bitmap. One line for a cell of many boundaries, of which each is a multiple of 2^(shift - 9): 512 bits, one
 * for each piece of that size.
 *
 * Nothing here trusts a line's content. Wherever an entry leads, loops end after sieve_ranges_depth() lines,
 * and a line that is not there ends the search without a match.
 */
#ifndef SIEVE_RANGES_H
#define SIEVE_RANGES_H

#include <sieve/prefix.h>

/* The parts, which are also the forms of their numbers. */
enum sieve_ranges_part {
    SIEVE_RANGES_IPV4,
    SIEVE_RANGES_IPV6,
    SIEVE_RANGES_FINE,
    SIEVE_RANGES_PARTS,
};

#define SIEVE_RANGES_LEAST_SHIFT 8
#define SIEVE_RANGES_SHIFT_MASK 63
#define SIEVE_RANGES_BELOW_BIT 6
#define SIEVE_RANGES_ABOVE_BIT 7
#define SIEVE_RANGES_ORIGIN_MASK 255
/* In the 64-bit parts, differences of numbers of one line stay below 2^63: their sign is their order. */
#define SIEVE_RANGES_MOST_SHIFT 61

#define SIEVE_RANGES_ENTRIES 16 /* in a line of the table */
#define SIEVE_RANGES_DEPTH 14   /* the most levels below an entry */
#define SIEVE_RANGES_BITMAP 15  /* an entry's depth that means a bitmap */
#define SIEVE_RANGES_DEPTH_SHIFT 1
#define SIEVE_RANGES_DEPTH_MASK 15
#define SIEVE_RANGES_LINE_SHIFT 5
#define SIEVE_RANGES_MOST_LINES (1U << 27) /* an entry can name no line beyond */

/* Separators of a leaf, and children of an inner line. */
#define SIEVE_RANGES_WAYS_IPV4 16
#define SIEVE_RANGES_WAYS_IPV6 8
#define SIEVE_RANGES_WAYS_FINE 4

/* An address, as the part that is asked sees it. The `lower` word is used by the fine part only. */
struct sieve_ranges_number {
    __u64 upper;
    __u64 lower;
};

/* Reads a line of the filter; null if there is none. */
typedef const struct sieve_line* (*sieve_ranges_fetch)(void* filter, __u32 line);

typedef __u32 __attribute__((may_alias)) sieve_ranges_u32;

SIEVE_INLINE __u32 sieve_ranges_cells(const struct sieve_lookup* lookup, int part) {
    return (__u32)lookup->hash_key[2 * part + 1];
}

SIEVE_INLINE __u32 sieve_ranges_table(const struct sieve_lookup* lookup, int part) {
    return (__u32)(lookup->hash_key[2 * part + 1] >> 32);
}

SIEVE_INLINE __u64 sieve_ranges_origin(const struct sieve_lookup* lookup, int part) {
    return lookup->hash_key[2 * part] & ~(__u64)SIEVE_RANGES_ORIGIN_MASK;
}

SIEVE_INLINE __u32 sieve_ranges_shift(const struct sieve_lookup* lookup, int part) {
    return lookup->hash_key[2 * part] & SIEVE_RANGES_SHIFT_MASK;
}

/* The piece of a cell that one bit of its bitmap stands for, as a power of two. */
SIEVE_INLINE __u32 sieve_ranges_grain(__u32 shift) {
    return shift > 9 ? shift - 9 : 0;
}

/*
 * The sign of a difference. Without SIEVE_KEEP, clang compares and branches, and Linux 6.1 walks every
 * combination of branches of a line.
 */
SIEVE_INLINE __u64 sieve_ranges_sign(__u64 difference) {
    SIEVE_KEEP(difference);
    return difference >> 63;
}

/* 1 if the i-th separator of the line is below the number, else 0. */
SIEVE_INLINE __u64 sieve_ranges_below(const struct sieve_line* line, int part, int i,
                                      struct sieve_ranges_number number) {
    if (part == SIEVE_RANGES_IPV4) {
        const __u64 separator = ((const sieve_ranges_u32*)line->word)[i];
        return sieve_ranges_sign(separator - number.upper);
    }
    if (part == SIEVE_RANGES_IPV6) return sieve_ranges_sign(line->word[i] - number.upper);
    /* The fine part: words 0 to 3 are the separators' upper words, words 4 to 7 their lower ones. The borrow
     * of a difference of unsigned words, without a branch (Warren, "Hacker's Delight", 2-13). */
    {
        const __u64 separator = line->word[i + SIEVE_RANGES_WAYS_FINE];
        const __u64 borrow = sieve_ranges_sign((~separator & number.lower) |
                                               ((~separator | number.lower) & (separator - number.lower)));
        return sieve_ranges_sign(line->word[i] - number.upper - borrow);
    }
}

SIEVE_INLINE int sieve_ranges_ways(int part) {
    return part == SIEVE_RANGES_IPV4   ? SIEVE_RANGES_WAYS_IPV4
           : part == SIEVE_RANGES_IPV6 ? SIEVE_RANGES_WAYS_IPV6
                                       : SIEVE_RANGES_WAYS_FINE;
}

/* The most levels that a part's cells have. A filter of fewer than 2^27 lines needs no more; the builder
 * checks the fine part. */
SIEVE_INLINE __u32 sieve_ranges_depth(int part) {
    return part == SIEVE_RANGES_IPV4 ? 8 : part == SIEVE_RANGES_IPV6 ? 10 : SIEVE_RANGES_DEPTH;
}

/* An inner line's child for the number. */
SIEVE_INLINE __u32 sieve_ranges_child(const struct sieve_line* line, int part,
                                      struct sieve_ranges_number number) {
    const int last = sieve_ranges_ways(part) - 1;
    __u64 child = part == SIEVE_RANGES_IPV4 ? ((const sieve_ranges_u32*)line->word)[last] : line->word[last];
    int i;
#pragma GCC unroll 16
    for (i = 0; i < last; i++) child += sieve_ranges_below(line, part, i, number);
    return (__u32)child;
}

/* Whether an odd number of a leaf's separators is below the number. */
SIEVE_INLINE __u32 sieve_ranges_parity(const struct sieve_line* line, int part,
                                       struct sieve_ranges_number number) {
    __u64 signs = 0;
    int i;
    if (part == SIEVE_RANGES_IPV4) { /* the difference itself, since only its sign counts in the end */
#pragma GCC unroll 16
        for (i = 0; i < SIEVE_RANGES_WAYS_IPV4; i++)
            signs ^= (__u64)((const sieve_ranges_u32*)line->word)[i] - number.upper;
        return (__u32)(signs >> 63);
    }
    if (part == SIEVE_RANGES_IPV6) {
#pragma GCC unroll 8
        for (i = 0; i < SIEVE_RANGES_WAYS_IPV6; i++) signs ^= line->word[i] - number.upper;
        return (__u32)(signs >> 63);
    }
#pragma GCC unroll 4
    for (i = 0; i < SIEVE_RANGES_WAYS_FINE; i++) signs ^= sieve_ranges_below(line, part, i, number);
    return (__u32)signs;
}

/* Whether one part holds the number. `part` must be a constant. */
SIEVE_INLINE int sieve_ranges_ask(const struct sieve_lookup* lookup, const int part,
                                  struct sieve_ranges_number number, sieve_ranges_fetch fetch, void* filter) {
    const __u64 origin = sieve_ranges_origin(lookup, part);
    const __u32 shift = sieve_ranges_shift(lookup, part);
    const __u64 cell = sieve_shift_right(number.upper - origin, shift);
    const struct sieve_line* line;
    __u32 entry, depth, at, i;

    if (number.upper < origin) return (lookup->hash_key[2 * part] >> SIEVE_RANGES_BELOW_BIT) & 1;
    if (cell >= sieve_ranges_cells(lookup, part))
        return (lookup->hash_key[2 * part] >> SIEVE_RANGES_ABOVE_BIT) & 1;
    line = fetch(filter, sieve_ranges_table(lookup, part) + (__u32)(cell / SIEVE_RANGES_ENTRIES));
    if (!line) return 0;
    entry = ((const sieve_ranges_u32*)line->word)[cell % SIEVE_RANGES_ENTRIES];
    depth = (entry >> SIEVE_RANGES_DEPTH_SHIFT) & SIEVE_RANGES_DEPTH_MASK;
    if (depth == 0) return entry & 1;
    at = entry >> SIEVE_RANGES_LINE_SHIFT;
    if (depth == SIEVE_RANGES_BITMAP) {
        const __u64 bit = sieve_shift_right(number.upper, sieve_ranges_grain(shift));
        line = fetch(filter, at);
        return line ? sieve_shift_right(line->word[(bit / 64) % SIEVE_LINE_WORDS], bit % 64) & 1 : 0;
    }
#ifdef __bpf__
#pragma clang loop unroll(disable)
#endif
    for (i = 1; i < sieve_ranges_depth(part) && depth > 1; i++, depth--) {
        line = fetch(filter, at);
        if (!line) return 0;
        at = sieve_ranges_child(line, part, number);
    }
    line = fetch(filter, at);
    return line ? (entry & 1) ^ sieve_ranges_parity(line, part, number) : 0;
}

/*
 * Whether the set holds the address, but for the fine part: if that is to be asked, too, the answer is
 * SIEVE_RANGES_ASK_FINE. Few sets have one, and in the kernel it is a function of its own.
 */
#define SIEVE_RANGES_ASK_FINE 2

SIEVE_INLINE int sieve_ranges_holds(const struct sieve_lookup* lookup, __u64 upper, __u64 lower,
                                    sieve_ranges_fetch fetch, void* filter) {
    struct sieve_ranges_number number = {upper, lower};

    if (sieve_family(upper, lower) == SIEVE_FAMILY_V4) {
        number.upper = (__u32)lower;
        return sieve_ranges_ask(lookup, SIEVE_RANGES_IPV4, number, fetch, filter);
    }
    if (sieve_ranges_ask(lookup, SIEVE_RANGES_IPV6, number, fetch, filter)) return 1;
    return sieve_ranges_cells(lookup, SIEVE_RANGES_FINE) != 0 ? SIEVE_RANGES_ASK_FINE : 0;
}

/* Whether the fine part holds the IPv6 address. */
SIEVE_INLINE int sieve_ranges_holds_fine(const struct sieve_lookup* lookup, __u64 upper, __u64 lower,
                                         sieve_ranges_fetch fetch, void* filter) {
    struct sieve_ranges_number number = {upper, lower};

    return sieve_ranges_ask(lookup, SIEVE_RANGES_FINE, number, fetch, filter);
}

#endif
