/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The upper protocols that have ports. The header of each begins with the source port and the destination
 * port, two bytes each, in network order (RFC 9293, 768, 4340, 9260, 3828).
 */
#ifndef SIEVE_PORTS_H
#define SIEVE_PORTS_H

#include <sieve/base.h>

/* Their numbers (IANA "Protocol Numbers"). The C library and the kernel have them in headers that exclude
 * each other. */
enum sieve_ported {
    SIEVE_PORTED_TCP = 6,
    SIEVE_PORTED_UDP = 17,
    SIEVE_PORTED_DCCP = 33,
    SIEVE_PORTED_SCTP = 132,
    SIEVE_PORTED_UDPLITE = 136,
};

/* True if the protocol's header begins with ports. The most frequent protocols come first. */
SIEVE_INLINE int sieve_has_ports(__u8 proto) {
    return proto == SIEVE_PORTED_TCP || proto == SIEVE_PORTED_UDP || proto == SIEVE_PORTED_DCCP ||
           proto == SIEVE_PORTED_SCTP || proto == SIEVE_PORTED_UDPLITE;
}

#endif
