/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Foreign programs. The XDP program, for foreign.sh, drops IPv6 and nothing else, which shows that it runs.
 * Those for tc, for replies.sh, only take a priority, and the name of one of ours. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int foreign(struct xdp_md* ctx) {
    struct ethhdr* ethernet = (void*)(long)ctx->data;

    if ((void*)(ethernet + 1) > (void*)(long)ctx->data_end) return XDP_PASS;
    return ethernet->h_proto == bpf_htons(ETH_P_IPV6) ? XDP_DROP : XDP_PASS;
}

SEC("tc")
int foreign_tc(struct __sk_buff* ctx) {
    (void)ctx;
    return TC_ACT_UNSPEC;
}

SEC("tc/name")
int sieve_note(struct __sk_buff* ctx) {
    (void)ctx;
    return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
