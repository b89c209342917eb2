/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sampled matches, as the program hands them to whoever listens: records of one size in a ring buffer that
 * the listener makes and puts into the place of SIEVE_MAP_EVENTS.
 */
#ifndef SIEVE_EVENT_H
#define SIEVE_EVENT_H

#include <sieve/key.h>

/* So much of a packet's head at most. */
#define SIEVE_EVENT_HEAD 256

struct sieve_event {
    __u64 time;   /* nanoseconds, CLOCK_MONOTONIC */
    __u64 hits;   /* bit s: the set in slot s matched */
    __u32 length; /* of the packet */
    __u32 captured;
    __u32 verdict;  /* enum sieve_verdict */
    __u32 decision; /* the deciding set's slot, or SIEVE_NO_SET for the default */
    struct sieve_key key;
    __u32 have; /* enum sieve_field bits that the packet provided */
    __u32 reserved;
    __u8 head[SIEVE_EVENT_HEAD]; /* of it `captured` bytes mean something */
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_event) == 80 + SIEVE_EVENT_HEAD, "no padding");

#endif
