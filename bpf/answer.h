/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The answer of the sets for one packet.
 */
#ifndef SIEVE_BPF_ANSWER_H
#define SIEVE_BPF_ANSWER_H

#include <sieve/policy.h>

struct sieve_answer {
    __u8 action;    /* enum sieve_action; never COUNT */
    __u8 flags;     /* enum sieve_entry_flag bits of the set that decided */
    __u16 verdict;  /* enum sieve_verdict: what came of it */
    __u32 decision; /* as in struct sieve_trace */
    __u32 hits;     /* likewise */
    __u32 rejected; /* bit s: verification rejected the match of the set in slot s */
    __u32 bank;     /* that was active when the first set was asked */
    __u32 target;   /* of a redirecting action */
};
SIEVE_STATIC_ASSERT(SIEVE_SLOTS <= 32, "a bit for each");

#endif
