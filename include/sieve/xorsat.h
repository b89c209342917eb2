/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The blocked XORSAT filter: a key's fingerprint is the exclusive or of nine windows of one line,
 * the last of them used twice.
 *
 * Source: Weaver, Roberts, Smith, "XORSAT Set Membership Filters" (SAT 2018): a filter is a solution of
 * linear equations over GF(2), one for each bit of each member's fingerprint. Here each line of 512 bits is
 * such a system of its own, so that a lookup touches one cache line; and the windows of a key are shifted as
 * a whole, so that one shift a window serves all bits of the fingerprint. docs/xorsat.md derives the rates.
 *
 * A line:
 *
 *   byte 0        q: says how many bits of its fingerprint a key compares
 *   byte 1        exports: one bit for each eighth of the line's keys
 *   bytes 2..63   496 bits, the unknowns of the system
 *
 * A key of class c, three bits of its hash, compares (q + c) / 8 bits, so that the mean can be any multiple
 * of 1/8. The builder takes the largest q for which the line has a solution. Three further bits of the hash
 * name the key's eighth. If its bit in byte 1 is set, the eighth is kept in another line, which depends on
 * line and eighth only. Exports even out the numbers of keys in the lines.
 *
 * The nine windows of 64 bits overlap by eight bits: a bit near the lower end of a window is in fewer of the
 * equations. The header's 16 bits, at the lower end of the first window, count as zero.
 *
 * A lookup touches one line, or two for the keys that are exported (one in ten at 16 bits a key).
 */
#ifndef SIEVE_XORSAT_H
#define SIEVE_XORSAT_H

#include <sieve/image.h>

#define SIEVE_XORSAT_WINDOWS 9
#define SIEVE_XORSAT_UNKNOWNS 496
#define SIEVE_XORSAT_EIGHTHS 8
#define SIEVE_XORSAT_MAX_Q 255
/* `choices` of the header: 1 if no line exports anything. */
#define SIEVE_XORSAT_MAX_LINES 2

/* The first byte of each window. The builder needs them at compile time, the test spells them out below. */
#define SIEVE_XORSAT_STARTS                                                                                  \
    { 0, 7, 14, 21, 28, 35, 42, 49, 56 }

/* Which bits of the hash's word `test` say what. Its lowest 54 bits are the shifts, six for each window. */
#define SIEVE_XORSAT_EIGHTH_SHIFT 54
#define SIEVE_XORSAT_AGAIN_SHIFT 57
#define SIEVE_XORSAT_CLASS_SHIFT 61

/* Exported keys are less than so many lines behind their own line; behind the last line is the first. So both
 * lines are on the same page or on neighbouring ones, and a second line seldom misses the TLB. */
#define SIEVE_XORSAT_REACH 64
#define SIEVE_XORSAT_MULTIPLIER 0x9e3779b97f4a7c15ULL

SIEVE_INLINE __u32 sieve_xorsat_line(const struct sieve_lookup* lookup, struct sieve_hash hash) {
    return sieve_reduce((__u32)hash.locate, lookup->buckets);
}

SIEVE_INLINE __u32 sieve_xorsat_eighth(struct sieve_hash hash) {
    return (__u32)(hash.test >> SIEVE_XORSAT_EIGHTH_SHIFT) & (SIEVE_XORSAT_EIGHTHS - 1);
}

/* The fingerprint. Its lowest bits are compared. */
SIEVE_INLINE __u64 sieve_xorsat_fingerprint(struct sieve_hash hash) {
    return hash.locate >> 32;
}

SIEVE_INLINE int sieve_xorsat_exports(const struct sieve_line* line, __u32 eighth) {
    return (int)(sieve_shift_right(line->word[0], 8 + eighth) & 1);
}

/* The line that keeps an eighth which `line` exports. */
SIEVE_INLINE __u32 sieve_xorsat_other(const struct sieve_lookup* lookup, __u32 line, __u32 eighth) {
    const __u32 buckets = lookup->buckets;
    const __u32 reach = buckets < SIEVE_XORSAT_REACH ? buckets : SIEVE_XORSAT_REACH;
    const __u64 scattered = (((__u64)line << 3) | eighth) * SIEVE_XORSAT_MULTIPLIER;
    const __u64 other = (__u64)line + sieve_reduce((__u32)(scattered >> 32), reach);

    return (__u32)(other < buckets ? other : other - buckets);
}

/* The shift of the last window when it is used once more: so small that none of the bits that are compared
 * leaves the window. */
SIEVE_INLINE __u64 sieve_xorsat_again(__u64 test) {
    return (test >> SIEVE_XORSAT_AGAIN_SHIFT) & 15;
}

/* How many bits of the fingerprint a key compares in a line with this q. */
SIEVE_INLINE __u32 sieve_xorsat_bits(__u64 q, __u64 test) {
    return (__u32)((q + (test >> SIEVE_XORSAT_CLASS_SHIFT)) >> 3);
}

/* Eight bytes of the line from byte `start` on, which need not be aligned. */
#ifdef __cplusplus
SIEVE_INLINE __u64 sieve_xorsat_window(const struct sieve_line* line, int start) {
    __u64 window;
    __builtin_memcpy(&window, reinterpret_cast<const char*>(line) + start, sizeof(window));
    return window;
}
#else
#define sieve_xorsat_window(line, start) (*(const __u64*)((const char*)(line) + (start)))
#endif

#define SIEVE_XORSAT_STEP(start)                                                                             \
    value ^= sieve_shift_right(sieve_xorsat_window(line, start), bits);                                      \
    SIEVE_KEEP(value);                                                                                       \
    bits >>= 6;

/*
 * The bits of the line's answer that a key does not share with its fingerprint, of those that it compares, as
 * the highest bits of a word: zero if the line, which is the one that keeps the key, has its fingerprint.
 */
SIEVE_INLINE __u64 sieve_xorsat_difference(const struct sieve_line* line, struct sieve_hash hash) {
    __u64 bits = hash.test, value = sieve_xorsat_fingerprint(hash);
    const __u64 unused = 63 - sieve_xorsat_bits(line->word[0] & 255, bits);

    value ^= sieve_shift_right(line->word[0] & ~(__u64)0xffff, bits);
    bits >>= 6;
    SIEVE_XORSAT_STEP(7)
    SIEVE_XORSAT_STEP(14)
    SIEVE_XORSAT_STEP(21)
    SIEVE_XORSAT_STEP(28)
    SIEVE_XORSAT_STEP(35)
    SIEVE_XORSAT_STEP(42)
    SIEVE_XORSAT_STEP(49)
    SIEVE_XORSAT_STEP(56)
    /* The last window once more. Otherwise more keys would have an equation without a bit of the line, which
     * half of the fingerprints contradict: docs/xorsat.md. */
    value ^= sieve_shift_right(sieve_xorsat_window(line, 56), sieve_xorsat_again(hash.test));
    /* Two shifts, because BPF has no shift by 64. */
    return sieve_shift_left(value << 1, unused);
}

/* True if the line, which is the one that keeps the key, has the key's fingerprint. */
SIEVE_INLINE int sieve_xorsat_test(const struct sieve_line* line, struct sieve_hash hash) {
    return sieve_xorsat_difference(line, hash) == 0;
}
#undef SIEVE_XORSAT_STEP

#endif
