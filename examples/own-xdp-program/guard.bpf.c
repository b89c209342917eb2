/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Another project's XDP program that asks a filter image. It drops IPv4 packets whose source is in the image.
 * The program needs only sieve's headers and an array map that holds the image's lines.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include <sieve/blocked.h>

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* the loader sets the number of lines */
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct sieve_line);
} image SEC(".maps");

static __always_inline const void* line_of(__u32 number) {
    return bpf_map_lookup_elem(&image, &number);
}

/* Locates the key's lines, fetches them, and tests them. */
static __always_inline int image_holds(const struct sieve_key* key) {
    const struct sieve_lookup* lookup = line_of(0);
    const struct sieve_line* line[SIEVE_MAX_CHOICES];
    __u32 at[SIEVE_MAX_CHOICES];
    struct sieve_hash hash;

    if (!lookup || lookup->kind != SIEVE_KIND_BLOCKED || lookup->probes) return 0;
    hash = sieve_hash_key(key, lookup->hash_key, lookup->fields);
    sieve_blocked_locate(lookup, hash, at);
    line[0] = line_of(SIEVE_FIRST_LINE + at[0]);
    line[1] = line_of(SIEVE_FIRST_LINE + at[1]);
    line[2] = line_of(SIEVE_FIRST_LINE + at[2]);
    return line[0] && line[1] && line[2] && sieve_blocked_test(lookup, hash, line);
}

SEC("xdp")
int guard(struct xdp_md* ctx) {
    void* end = (void*)(long)ctx->data_end;
    struct ethhdr* ethernet = (void*)(long)ctx->data;
    struct iphdr* ip = (void*)(ethernet + 1);
    struct sieve_key key = {};

    if ((void*)(ip + 1) > end || ethernet->h_proto != bpf_htons(ETH_P_IP)) return XDP_PASS;
    key.word[1] = sieve_v4_mapped(bpf_ntohl(ip->saddr));
    return image_holds(&key) ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
