/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include <linux/bpf.h>

#include "../../bpf/parse.h"
#include "packet_parser.h"

void sieve_parser_run(const void* begin, const void* end, struct sieve_parser_result* result) {
    struct xdp_md ctx = {.data = (__u32)(long)begin, .data_end = (__u32)(long)end};
    struct sieve_parsed parsed;

    sieve_parse(&ctx, &parsed);
    result->key = parsed.key;
    result->have = parsed.have;
    result->outcome = parsed.outcome;
}
