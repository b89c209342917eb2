/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the programs of `sieve-bench --replies` share with their controller. Flow i is that of the address
 * bench_address(i).
 */
#ifndef SIEVE_REPLY_CONTROL_H
#define SIEVE_REPLY_CONTROL_H

#include <sieve/flow.h>

#include "bench_control.h"

struct reply_control {
    __u64 state;                   /* of the random sequence; or the next index */
    __u64 first;                   /* window of indices */
    __u64 indices;                 /* likewise; at most 2^32 */
    __u64 in_order;                /* whether indices are taken in order */
    __u64 fence;                   /* written so that packets do not overlap */
    __u64 found;                   /* written so that a key is made; how many connections were made */
    struct sieve_flow_where flows; /* of the memory in sieve_flows */
};

#endif
