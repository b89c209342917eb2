/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packet path at the XDP hook. Attach with `ip link set dev IFACE xdp obj xdp_sieve.bpf.o sec xdp` or
 * `xdp-sieve load`.
 */
#include "hook_xdp.h"

#include "path.h"

SEC("xdp")
int xdp_sieve(struct xdp_md* ctx) {
    return sieve_filter(ctx, ctx->data_end - ctx->data);
}

/* For jumbo frames. If the headers do not fit into the first buffer, the packet counts as cut off there. */
SEC("xdp.frags")
int xdp_sieve_frags(struct xdp_md* ctx) {
    return sieve_filter(ctx, bpf_xdp_get_buff_len(ctx));
}

char LICENSE[] SEC("license") = "GPL";
