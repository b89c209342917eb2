/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The packet path's parser and its question whether a packet is a reply (bpf/parse.h, bpf/reply.h), and the
 * noting program (bpf/note.h), as user-space functions. Only packet_parser.c knows how they are called.
 */
#ifndef SIEVE_TESTS_PACKET_PARSER_H
#define SIEVE_TESTS_PACKET_PARSER_H

#include <sieve/flow.h>
#include <sieve/key.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sieve_parser_result {
    struct sieve_key key;
    __u32 have;
    __u32 outcome;
    __u32 reply; /* it answers a flow that is noted */
};

/* The flow memory of all functions, and what each of them has a copy of. */
#define SIEVE_PARSER_MEMORY_PAGES 5
extern struct sieve_flow_page sieve_parser_memory[SIEVE_PARSER_MEMORY_PAGES];
extern struct sieve_flow_where sieve_parser_where;

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
void sieve_parser_run_note(const struct sieve_parser_packet* packet, struct sieve_parser_result* result);

#ifdef __cplusplus
}
#endif

#endif
