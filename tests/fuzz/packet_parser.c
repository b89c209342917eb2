/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Compiled once for each hook. The two meet in one program, so the second one's global names are changed.
 */
#include <linux/bpf.h>

#include "packet_parser.h"

#ifdef PACKET_PARSER_TC
#define sieve_sets sieve_tc_sets
#define sieve_exact sieve_tc_exact
#define sieve_stats sieve_tc_stats
#define sieve_devices sieve_tc_devices
#define sieve_cpus sieve_tc_cpus
#define sieve_events sieve_tc_events
#define sieve_sketches sieve_tc_sketches
#define sieve_control sieve_tc_control
#define sieve_parse_ipv6 sieve_tc_parse_ipv6
#define sieve_tracing sieve_tc_tracing
#define sieve_trace_last sieve_tc_trace_last
#define sieve_parse_bare sieve_tc_parse_bare
#include "../../bpf/hook_tc.h"
#include "../../bpf/parse.h"

void sieve_parser_run_tc(const void* begin, const void* end, __u32 link, int segmented,
                         struct sieve_parser_result* result) {
    struct __sk_buff ctx = {
        .data = (__u32)(long)begin, .data_end = (__u32)(long)end, .gso_size = segmented ? 1400 : 0};
    __u32 bytes = (__u32)(end - begin);
#else
#include "../../bpf/hook_xdp.h"
#include "../../bpf/parse.h"

/* At the XDP hook nothing marks such a packet but its length. */
#define LONGER_THAN_STATED 70000

void sieve_parser_run_xdp(const void* begin, const void* end, __u32 link, int segmented,
                          struct sieve_parser_result* result) {
    struct xdp_md ctx = {.data = (__u32)(long)begin, .data_end = (__u32)(long)end};
    __u32 bytes = segmented ? LONGER_THAN_STATED : (__u32)(end - begin);
#endif
    struct sieve_parsed parsed;

    sieve_control.link = link;
    sieve_parse(&ctx, bytes, &parsed);
    result->key = parsed.key;
    result->have = parsed.have;
    result->outcome = parsed.outcome;
}
