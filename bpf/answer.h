/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the sets said of one packet.
 */
#ifndef SIEVE_BPF_ANSWER_H
#define SIEVE_BPF_ANSWER_H

#include <sieve/policy.h>

struct sieve_answer {
    __u32 action;   /* enum sieve_action; never COUNT */
    __u32 decision; /* as in struct sieve_trace */
    __u32 hits;     /* likewise */
    __u32 bank;     /* in force since the first set was asked */
    __u32 target;   /* of a redirecting action */
    __u32 verdict;  /* enum sieve_verdict: what came of it */
};
SIEVE_STATIC_ASSERT(SIEVE_SLOTS <= 32, "a bit for each");

#endif
