/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packet path at tc's two hooks, in direct-action mode. Attach with `tc filter add dev IFACE egress bpf
 * da obj xdp_sieve_tc.bpf.o sec tc/egress` (or ingress and tc/ingress) or `xdp-sieve load --hook egress`.
 *
 * Both programs are the same. Each gets its own maps when it is loaded. Two names tell a reader of `tc
 * filter` and `bpftool` which one is where.
 */
#include "hook_tc.h"

#include "path.h"

SEC("tc/ingress")
int sieve_ingress(struct __sk_buff* ctx) {
    return sieve_tc_action(sieve_filter(ctx, ctx->len));
}

SEC("tc/egress")
int sieve_egress(struct __sk_buff* ctx) {
    return sieve_tc_action(sieve_filter(ctx, ctx->len));
}

char LICENSE[] SEC("license") = "GPL";
