/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * To another interface or another CPU.
 */
#ifndef SIEVE_BPF_REDIRECT_H
#define SIEVE_BPF_REDIRECT_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "maps.h"

/*
 * The verdict on a packet for a target; `fallback` (XDP_PASS or XDP_DROP) if the target is not there: an
 * interface's entry goes away with the interface. What fails later (a full queue, a driver that cannot send)
 * is the kernel's to drop, and is not seen here.
 */
static __always_inline int sieve_redirect(__u32 bank, __u32 action, __u32 target, __u32 fallback) {
    void* targets;

    if (action == SIEVE_ACTION_REDIRECT_CPU) {
        targets = bpf_map_lookup_elem(&sieve_cpus, &bank);
        return targets ? bpf_redirect_map(targets, target, fallback) : fallback;
    }
    targets = bpf_map_lookup_elem(&sieve_devices, &bank);
    return targets ? bpf_redirect_map(targets, target, fallback) : fallback;
}

#endif
