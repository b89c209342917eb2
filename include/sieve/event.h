/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sampled packets, as the program hands them to a listener: records of fixed size in a ring buffer. The
 * listener makes the ring buffer, puts it into sieve_events and says which packets are sampled (enum
 * sieve_watch_flag).
 */
#ifndef SIEVE_EVENT_H
#define SIEVE_EVENT_H

#include <sieve/key.h>

/* At most this many bytes of a packet's head are copied. */
#define SIEVE_EVENT_HEAD 256

struct sieve_event {
    __u64 time;   /* nanoseconds, CLOCK_MONOTONIC */
    __u64 hits;   /* bit s: the set in slot s matched */
    __u32 length; /* of the packet */
    __u32 captured;
    __u32 verdict;  /* enum sieve_verdict */
    __u32 decision; /* the deciding set's slot, or SIEVE_NO_SET for the default */
    struct sieve_key key;
    __u32 have;                  /* enum sieve_field bits that the packet provided */
    __u32 rejected;              /* bit s: verification rejected the match of the set in slot s */
    __u8 head[SIEVE_EVENT_HEAD]; /* the first `captured` bytes are valid */
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_event) == 80 + SIEVE_EVENT_HEAD, "no padding");

#endif
