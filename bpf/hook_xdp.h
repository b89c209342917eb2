/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the packet path takes from the XDP hook (path.h lists it).
 */
#ifndef SIEVE_BPF_HOOK_XDP_H
#define SIEVE_BPF_HOOK_XDP_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <sieve/policy.h>

#include "maps.h"

#define SIEVE_CONTEXT struct xdp_md

SIEVE_STATIC_ASSERT((int)SIEVE_VERDICT_DROP == XDP_DROP && (int)SIEVE_VERDICT_PASS == XDP_PASS &&
                        (int)SIEVE_VERDICT_REDIRECT == XDP_REDIRECT,
                    "a verdict is returned as it is");

/* The generic hook sees packets that await segmentation. Their only mark is a length that no IP header can
 * state. */
static __always_inline __s64 sieve_length_reserve(struct xdp_md* ctx, __u32 bytes) {
    (void)ctx;
    return 0xffff - (__s64)bytes;
}

static __always_inline long sieve_load(struct xdp_md* ctx, __u32 at, void* to, __u32 bytes) {
    return bpf_xdp_load_bytes(ctx, at, to, bytes);
}

/*
 * Redirects a packet to another interface or CPU and returns the verdict; `fallback` if the target is gone:
 * an interface's entry disappears with the interface. If sending fails later (a full queue, a driver that
 * cannot send), the kernel drops the packet, and this program does not see it.
 */
static __always_inline int sieve_redirect(__u32 bank, __u32 action, __u32 target, __u32 fallback) {
    void* targets;

    if (action == SIEVE_ACTION_REDIRECT_CPU) {
        targets = bpf_map_lookup_elem(&sieve_cpus, &bank);
        return targets ? bpf_redirect_map(targets, target, fallback) : (int)fallback;
    }
    targets = bpf_map_lookup_elem(&sieve_devices, &bank);
    return targets ? bpf_redirect_map(targets, target, fallback) : (int)fallback;
}

#endif
