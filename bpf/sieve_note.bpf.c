/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program that notes flows, at tc's egress hook, behind all filters. `xdp-sieve` attaches it wherever
 * replies pass; it needs a flow memory, which only a controller makes. It changes no packet's fate.
 */
#include "context_tc.h"

#include <linux/pkt_cls.h>

#include "note.h"
#include "parse_deep.h"

SEC("tc/egress")
int sieve_note(struct __sk_buff* ctx) {
    struct sieve_parsed parsed;

    sieve_parse(ctx, ctx->len, &parsed);
    if (SIEVE_UNLIKELY(parsed.outcome >= SIEVE_OUTCOME_FIRST_UNREADABLE)) sieve_parse_further(ctx, &parsed);
    sieve_note_packet(ctx, &parsed);
    return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "GPL";
