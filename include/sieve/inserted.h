/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The keys that were inserted into a filter since it was built, in a hash map beside the filter, with the
 * time at which each ends. A map key is the key as the filter hashes it (sieve/exact.h). Packets never read
 * this map: an ended key matches until a controller takes it out.
 *
 * A filter cannot tell a member from a false positive. So a controller notes what it is about to do before it
 * does it, and after another controller's death the notes tell what may be taken out of the filter without
 * touching another key.
 */
#ifndef SIEVE_INSERTED_H
#define SIEVE_INSERTED_H

#include <sieve/key.h>

enum sieve_inserted_state {
    SIEVE_INSERTED_IN = 0,     /* in the filter */
    SIEVE_INSERTED_COMING = 1, /* did not match, and is being inserted: if it matches, it is in */
    SIEVE_INSERTED_UNSURE = 2, /* is being deleted, or inserted although it matched */
};

struct sieve_inserted {
    __u64 end;   /* nanoseconds of CLOCK_BOOTTIME; 0: never */
    __u32 state; /* enum sieve_inserted_state */
    __u32 reserved;
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_inserted) == 16, "no padding");

#endif
