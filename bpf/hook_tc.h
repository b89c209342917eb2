/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the packet path takes from tc's hooks, ingress and egress (path.h lists it). Programs run in
 * direct-action mode.
 */
#ifndef SIEVE_BPF_HOOK_TC_H
#define SIEVE_BPF_HOOK_TC_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

#include <sieve/policy.h>

#include "context_tc.h"
#include "maps.h"

/*
 * Sends a packet out of another interface and returns the verdict; `fallback` if the target is gone: an
 * interface's entry disappears with the interface. tc cannot redirect to a CPU, and the controller refuses to
 * ask for that.
 */
static __always_inline int sieve_redirect(__u32 bank, __u32 action, __u32 target, __u32 fallback) {
    void* targets;

    if (action != SIEVE_ACTION_REDIRECT_DEVICE) return fallback;
    targets = bpf_map_lookup_elem(&sieve_devices, &bank);
    if (!targets || !bpf_map_lookup_elem(targets, &target)) return fallback;
    return bpf_redirect(target, 0) == TC_ACT_REDIRECT ? SIEVE_VERDICT_REDIRECT : (int)fallback;
}

/*
 * tc's code for a verdict. A packet that passes is "unspecified" and not "ok": "ok" would end the
 * classification, and tc programs behind this one would not see the packet.
 */
static __always_inline int sieve_tc_action(int verdict) {
    if (verdict == SIEVE_VERDICT_DROP) return TC_ACT_SHOT;
    return verdict == SIEVE_VERDICT_REDIRECT ? TC_ACT_REDIRECT : TC_ACT_UNSPEC;
}

#endif
