/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The packet path's parser (bpf/parse.h) as user-space functions, one for each hook. Only packet_parser.c
 * knows how the parser is called.
 */
#ifndef SIEVE_TESTS_PACKET_PARSER_H
#define SIEVE_TESTS_PACKET_PARSER_H

#include <sieve/key.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sieve_parser_result {
    struct sieve_key key;
    __u32 have;
    __u32 outcome;
};

/* All three addresses must be below 4 GiB, because a BPF context holds addresses in 32 bits. */
struct sieve_parser_packet {
    const unsigned char* begin;
    const unsigned char* end;
    const unsigned char* reach; /* how far direct access goes; the rest is elsewhere */
    __u32 link;                 /* enum sieve_link: what the packet begins with */
    int segmented;              /* the packet awaits segmentation */
};

void sieve_parser_run_xdp(const struct sieve_parser_packet* packet, struct sieve_parser_result* result);
void sieve_parser_run_tc(const struct sieve_parser_packet* packet, struct sieve_parser_result* result);

#ifdef __cplusplus
}
#endif

#endif
