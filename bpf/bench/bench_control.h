/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the benchmark's BPF programs share with its controller: the keys and the control block.
 *
 * The members of a set of n keys are the IPv4 addresses bench_address(0) .. bench_address(n - 1), where
 * bench_address is a bijection. Every other address is a non-member, so no list is needed. The programs draw
 * a random index from a window of indices: [0, n) are members, [n, 2^32) non-members, [0, 2n) half of each.
 */
#ifndef SIEVE_BENCH_CONTROL_H
#define SIEVE_BENCH_CONTROL_H

#include <sieve/hash.h>

struct bench_control {
    __u64 state;                          /* of the random sequence; kept from run to run */
    __u64 found;                          /* how often the answer was yes */
    __u64 first;                          /* window of indices */
    __u64 indices;                        /* likewise; at most 2^32 */
    __u64 fence;                          /* written by lookups that must not overlap */
    __u64 members;                        /* bench_wrong: the indices below this one */
    __u32 apart;                          /* whether lookups must not overlap */
    __u32 lookups;                        /* in one run */
    __u32 buckets;                        /* lines of the floor's map */
    __u32 index;                          /* of the filter in the map-in-map */
    __u32 interface;                      /* where frames are sent */
    __u32 header_sum;                     /* of the frames that are sent, for bench_checksum() */
    __u64 hash_key[SIEVE_HASH_KEY_WORDS]; /* for the programs without a filter */
};

/* A key of the LPM trie. */
struct bench_prefix {
    __u32 length;
    __be32 address;
};

/* The same for IPv6. */
struct bench_prefix6 {
    __u32 length;
    __be32 address[4];
};

/* Prefix workloads: an address to ask for, as in a key. The programs take these one after the other; then
 * `indices` is how many there are, a power of two. */
struct bench_question {
    __u64 upper;
    __u64 lower;
};

/* lowbias32 (Wellons, "Prospecting for Hash Functions"): a bijection that looks random. */
SIEVE_INLINE __u32 bench_address(__u32 index) {
    index += 0x9e3779b9U; /* so that no member of a set is 0.0.0.0, which ipset refuses */
    index ^= index >> 16;
    index *= 0x7feb352dU;
    index ^= index >> 15;
    index *= 0x846ca68bU;
    index ^= index >> 16;
    return index;
}

/* The next random index of the window; advances `state`. */
SIEVE_INLINE __u32 bench_draw(__u64* state, __u64 first, __u64 indices) {
    __u64 random = *state;

    *state += 0x9e3779b97f4a7c15ULL;
    random ^= random >> 32;
    random *= 0xbf58476d1ce4e5b9ULL;
    random ^= random >> 29;
    random *= 0x94d049bb133111ebULL;
    return (__u32)(first + (((random >> 32) * indices) >> 32));
}

/*
 * The checksum of an IPv4 header with this source address, in host order. `header_sum` is the sum of the
 * other 16-bit words of the header.
 */
SIEVE_INLINE __u16 bench_checksum(__u32 header_sum, __u32 source) {
    __u32 sum = header_sum + (source >> 16) + (source & 0xffff);

    sum = (sum & 0xffff) + (sum >> 16);
    sum += sum >> 16;
    return (__u16)~sum;
}

#endif
