/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Compiled once for each hook, and once for the noting program. All objects are linked into one program, so
 * the later ones' global names are changed. This file defines the helpers that the programs call. There is
 * one packet at a time, and time stands still.
 */
#include <string.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "packet_parser.h"

static struct {
    const unsigned char* begin;
    __u32 bytes;
} packet;

/* Like bpf_xdp_load_bytes() and bpf_skb_load_bytes(): all or nothing, wherever the bytes are. */
static long load_bytes(__u32 offset, void* to, __u32 bytes) {
    if (offset > 0xffff || offset > packet.bytes || bytes > packet.bytes - offset) return -14;
    memcpy(to, packet.begin + offset, bytes);
    return 0;
}
#define bpf_xdp_load_bytes(ctx, offset, to, bytes) ((void)(ctx), load_bytes(offset, to, bytes))
#define bpf_skb_load_bytes(ctx, offset, to, bytes) ((void)(ctx), load_bytes(offset, to, bytes))
#define bpf_loop(turns, step, context, flags)                                                                \
    do {                                                                                                     \
        for (__u32 turn_ = 0; turn_ < (turns); turn_++)                                                      \
            if (step(turn_, context)) break;                                                                 \
    } while (0)

static void* look_up(const void* map, const void* key);
#define bpf_map_lookup_elem(map, key) look_up(map, key)
#define bpf_ktime_get_coarse_ns() (1ULL << 50)
#define bpf_sk_fullsock(socket) (socket)

#ifdef PACKET_PARSER_TC
#define sieve_flows sieve_tc_flows
#define sieve_flow_find sieve_tc_flow_find
#define sieve_quoted sieve_tc_quoted
#define sieve_read_quote sieve_tc_read_quote
#define sieve_is_icmp_reply sieve_tc_is_icmp_reply
#define sieve_is_reply sieve_tc_is_reply
#define sieve_sets sieve_tc_sets
#define sieve_exact sieve_tc_exact
#define sieve_joint sieve_tc_joint
#define sieve_stats sieve_tc_stats
#define sieve_devices sieve_tc_devices
#define sieve_cpus sieve_tc_cpus
#define sieve_events sieve_tc_events
#define sieve_sketches sieve_tc_sketches
#define sieve_accounts sieve_tc_accounts
#define sieve_inserted sieve_tc_inserted
#define sieve_control sieve_tc_control
#define sieve_parse_ipv6 sieve_tc_parse_ipv6
#define sieve_tracing sieve_tc_tracing
#define sieve_trace_last sieve_tc_trace_last
#define sieve_parse_bare sieve_tc_parse_bare
#define sieve_parse_deep sieve_tc_parse_deep
#include "../../bpf/hook_tc.h"
#include "../../bpf/parse_deep.h"
#include "../../bpf/reply.h"

void sieve_parser_run_tc(const struct sieve_parser_packet* given, struct sieve_parser_result* result) {
    struct __sk_buff ctx = {.data = (__u32)(long)given->begin,
                            .data_end = (__u32)(long)given->reach,
                            .gso_size = given->segmented ? 1400 : 0};
    __u32 bytes = (__u32)(given->end - given->begin);
#elif defined(PACKET_PARSER_NOTE)
#define sieve_flows sieve_note_flows
#define sieve_flow_find sieve_note_flow_find
#define sieve_parse_ipv6 sieve_note_parse_ipv6
#define sieve_parse_bare sieve_note_parse_bare
#define sieve_parse_deep sieve_note_parse_deep
#include "../../bpf/context_tc.h"

#include "../../bpf/note.h"
#include "../../bpf/parse_deep.h"

struct sieve_flow_page sieve_parser_memory[SIEVE_PARSER_MEMORY_PAGES];
struct sieve_flow_where sieve_parser_where;

void sieve_parser_run_note(const struct sieve_parser_packet* given, struct sieve_parser_result* result) {
    struct __sk_buff ctx = {.data = (__u32)(long)given->begin,
                            .data_end = (__u32)(long)given->reach,
                            .gso_size = given->segmented ? 1400 : 0};
    __u32 bytes = (__u32)(given->end - given->begin);
#else
#include "../../bpf/hook_xdp.h"
#include "../../bpf/parse_deep.h"
#include "../../bpf/reply.h"

/* At the XDP hook, only the length shows that a packet is one of these. */
#define LONGER_THAN_STATED 70000

void sieve_parser_run_xdp(const struct sieve_parser_packet* given, struct sieve_parser_result* result) {
    struct xdp_md ctx = {.data = (__u32)(long)given->begin, .data_end = (__u32)(long)given->reach};
    __u32 bytes = given->segmented ? LONGER_THAN_STATED : (__u32)(given->end - given->begin);
#endif
    struct sieve_parsed parsed;

    packet.begin = given->begin;
    packet.bytes = given->end - given->begin;
#ifdef PACKET_PARSER_NOTE
    sieve_note_control.link = given->link;
    sieve_note_control.flows = sieve_parser_where;
#else
    sieve_control.link = given->link;
    sieve_control.flows = sieve_parser_where;
#endif
    sieve_parse(&ctx, bytes, &parsed);
    if (parsed.outcome >= SIEVE_OUTCOME_FIRST_UNREADABLE) sieve_parse_further(&ctx, &parsed);
    result->key = parsed.key;
    result->have = parsed.have;
    result->outcome = parsed.outcome;
#ifdef PACKET_PARSER_NOTE
    result->reply = 0;
    sieve_note_packet(&ctx, &parsed);
#else
    result->reply = sieve_is_reply(&ctx, &parsed, 0) == SIEVE_REPLY_YES;
#endif
}

static void* look_up(const void* map, const void* key) {
    const __u32 index = *(const __u32*)key;

    if (map == sieve_parser_memory)
        return index < SIEVE_PARSER_MEMORY_PAGES ? &sieve_parser_memory[index] : 0;
    if (index) return 0;
    if (map == &sieve_flows) return sieve_parser_memory;
#ifdef PACKET_PARSER_NOTE
    static struct sieve_note_counts counts;
    return map == &sieve_notes ? &counts : 0;
#else
    static struct sieve_quoted quoted;
    return map == &sieve_quoted ? &quoted : 0;
#endif
}
