/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What flows need to know about ICMP and DHCP, whichever way a packet goes.
 */
#ifndef SIEVE_BPF_ICMP_H
#define SIEVE_BPF_ICMP_H

#include "parse.h"

#define SIEVE_ICMP_ECHO 8
#define SIEVE_ICMP_ECHO_REPLY 0
#define SIEVE_ICMPV6_ECHO 128
#define SIEVE_ICMPV6_ECHO_REPLY 129

#define SIEVE_DHCP_SERVER 67
#define SIEVE_DHCP_CLIENT 68
#define SIEVE_DHCPV6_CLIENT 546
#define SIEVE_DHCPV6_SERVER 547

/* The first eight bytes of ICMP and ICMPv6, as in echoes. */
struct sieve_icmp {
    __u8 type;
    __u8 code;
    __be16 checksum;
    __be16 id;
    __be16 sequence;
};

/* Where the upper header begins. Only if `header` is known. */
static __always_inline __u32 sieve_upper_at(const struct sieve_parsed* parsed) {
    return (__u32)parsed->network + parsed->header;
}

static __always_inline int sieve_is_ipv4(const struct sieve_key* key) {
    return !key->word[0] && key->word[1] >> 32 == SIEVE_V4_MAPPED >> 32;
}

/* The protocol number of ICMP in the packet's family. */
static __always_inline __u8 sieve_icmp_protocol(const struct sieve_key* key) {
    return sieve_is_ipv4(key) ? IPPROTO_ICMP : IPPROTO_ICMPV6;
}

/*
 * The key of a DHCP exchange, if word 4 is that of a client's packet; else 0. One for each family stands for
 * all servers: the answer comes from an address that was not asked, to one that the client does not have yet.
 */
static __always_inline int sieve_dhcp_key(__u64 word, struct sieve_key* key) {
    if (word != sieve_transport_word(SIEVE_DHCP_CLIENT, SIEVE_DHCP_SERVER, SIEVE_PORTED_UDP) &&
        word != sieve_transport_word(SIEVE_DHCPV6_CLIENT, SIEVE_DHCPV6_SERVER, SIEVE_PORTED_UDP))
        return 0;
    __builtin_memset(key, 0, sizeof(*key));
    key->word[4] = word;
    return 1;
}

#endif
