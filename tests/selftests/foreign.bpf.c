/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A foreign XDP program, for foreign.sh. It drops IPv6 and nothing else, which shows that it runs. */
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int foreign(struct xdp_md* ctx) {
    struct ethhdr* ethernet = (void*)(long)ctx->data;

    if ((void*)(ethernet + 1) > (void*)(long)ctx->data_end) return XDP_PASS;
    return ethernet->h_proto == bpf_htons(ETH_P_IPV6) ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
