/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A packet at tc's hooks, as the parser reads it.
 *
 * Such a packet differs from a frame on the wire in three ways. One VLAN tag may be in the packet's metadata;
 * that does not matter, since no key contains a VLAN. Headers may lie in pages outside the linear part. And a
 * packet of up to half a megabyte may await segmentation; it is judged and counted once, as the stack sees
 * it.
 */
#ifndef SIEVE_BPF_CONTEXT_TC_H
#define SIEVE_BPF_CONTEXT_TC_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define SIEVE_CONTEXT struct __sk_buff

/* As in the kernel's iph_totlen(): a packet that awaits segmentation may state a length of zero. */
static __always_inline __s64 sieve_length_reserve(struct __sk_buff* ctx, __u32 bytes) {
    (void)bytes;
    return -(__s64)ctx->gso_size;
}

static __always_inline long sieve_load(struct __sk_buff* ctx, __u32 at, void* to, __u32 bytes) {
    return bpf_skb_load_bytes(ctx, at, to, bytes);
}

#endif
