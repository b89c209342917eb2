/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits on a set's matches (sieve/limit.h). Only a match with such a set comes here.
 */
#ifndef SIEVE_BPF_LIMIT_H
#define SIEVE_BPF_LIMIT_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <sieve/limit.h>
#include <sieve/policy.h>

#include "maps.h"

/* A CPU that loses the race for the account so often in a row treats its packet as over the limit. */
#define SIEVE_LIMIT_ATTEMPTS 8

/*
 * True if a match of the set at that map index is over the set's limit; counts it then. A global function, so
 * that the verifier checks it once and sets without a limit pay nothing.
 */
__noinline int sieve_over_limit(struct sieve_stats* stats, __u32 index, __u32 bytes) {
    /* `at` is in memory, where the verifier forgets its bound. */
    __u32 at = index & (SIEVE_SLOTS - 1), bank = index / SIEVE_SLOTS & (SIEVE_BANKS - 1), i;
    __u64 slot = sieve_within(index & (SIEVE_SLOTS - 1), SIEVE_SLOTS - 1);
    volatile struct sieve_limit* limit = &sieve_control.bank[bank].limit[slot];
    struct sieve_account* account = bpf_map_lookup_elem(&sieve_accounts, &at);
    __u64 interval, depth, now, spent, packets, after;
    __u32 step;

    if (!stats || !account) return 0; /* cannot happen, but the verifier asks */
    if (stats->purse[slot]) {
        stats->purse[slot]--;
        return 0;
    }
    interval = limit->interval;
    depth = limit->depth;
    step = limit->step;
    now = sieve_limit_now(bpf_ktime_get_ns());
    for (i = 0; i < SIEVE_LIMIT_ATTEMPTS; i++) {
        spent = *(volatile __u64*)&account->spent;
        packets = sieve_limit_take(interval, depth, step, spent, now, &after);
        if (!packets) break;
        if (__sync_val_compare_and_swap(&account->spent, spent, after) != spent) continue;
        stats->purse[slot] = packets - 1;
        return 0;
    }
    stats->over[slot].packets++;
    stats->over[slot].bytes += bytes;
    return 1;
}

#endif
