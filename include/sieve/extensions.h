/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The extension headers of IPv6 that the parser follows. A packet with such a next header has its protocol in
 * a later header, so none of these numbers is ever the protocol of an IPv6 packet.
 *
 * Linux processes each of them and goes on behind it. IANA ("IPv6 Extension Header Types") lists four more
 * numbers. ESP hides what follows. Mobility (135), HIP (139) and Shim6 (140) are upper protocols to Linux: it
 * hands them to raw sockets and never looks behind them.
 */
#ifndef SIEVE_EXTENSIONS_H
#define SIEVE_EXTENSIONS_H

#include <sieve/base.h>

/* Their numbers. The C library and the kernel have them in headers that exclude each other. */
enum sieve_nexthdr {
    SIEVE_NEXTHDR_HOP = 0,
    SIEVE_NEXTHDR_ROUTING = 43,
    SIEVE_NEXTHDR_FRAGMENT = 44,
    SIEVE_NEXTHDR_AUTH = 51,
    SIEVE_NEXTHDR_DEST = 60,
};

/* The same numbers as a bitmap, so that a test needs no branch. */
#define SIEVE_EXTENSIONS                                                                                     \
    (1ULL << SIEVE_NEXTHDR_HOP | 1ULL << SIEVE_NEXTHDR_ROUTING | 1ULL << SIEVE_NEXTHDR_FRAGMENT |            \
     1ULL << SIEVE_NEXTHDR_AUTH | 1ULL << SIEVE_NEXTHDR_DEST)

/* True if a next header of this number is followed. For a number of 64 or more, the first shift is by at
 * least 61, and clears the bitmap. */
SIEVE_INLINE int sieve_is_extension(__u8 number) {
    __u64 page = number >> 6;
    return (int)(sieve_shift_right(sieve_shift_right(SIEVE_EXTENSIONS, page * 63), number) & 1);
}
SIEVE_STATIC_ASSERT(SIEVE_EXTENSIONS >> 61 == 0, "a shift by 61 must clear all of it");

#endif
