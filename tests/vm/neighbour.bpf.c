/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A foreign XDP program for coexistence.sh, in libxdp's form. It counts the packets with an IP header and
 * drops those of UDP to port 9 (over IPv4, without options), which shows which program was asked first.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define DISCARD_PORT 9

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} neighbour_seen SEC(".maps");

SEC("xdp")
int neighbour(struct xdp_md* ctx) {
    void* end = (void*)(long)ctx->data_end;
    struct ethhdr* ethernet = (void*)(long)ctx->data;
    struct iphdr* ip = (void*)(ethernet + 1);
    struct udphdr* udp = (void*)(ip + 1);
    __u32 zero = 0;
    __u64* seen;

    if ((void*)(ethernet + 1) > end) return XDP_PASS;
    if (ethernet->h_proto != bpf_htons(ETH_P_IP) && ethernet->h_proto != bpf_htons(ETH_P_IPV6))
        return XDP_PASS;
    seen = bpf_map_lookup_elem(&neighbour_seen, &zero);
    if (seen) __sync_fetch_and_add(seen, 1);
    if ((void*)(udp + 1) > end || ethernet->h_proto != bpf_htons(ETH_P_IP)) return XDP_PASS;
    return ip->protocol == IPPROTO_UDP && udp->dest == bpf_htons(DISCARD_PORT) ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
