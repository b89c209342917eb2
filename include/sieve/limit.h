/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A limit on a set's matches: so many packets per second, and so many at once. A token bucket.
 *
 * The state of a bucket is one number, the account: the moment up to which packets are paid for. Each packet
 * moves the account forward by one interval. A packet for which this would pass the present is over the
 * limit. An account that lies more than the bucket's depth in the past is moved to that point: the bucket is
 * full.
 *
 *        oldest                 spent                       now
 *    ------|----------------------|--------------------------|------> time
 *          '------- depth (burst * interval) ----------------'
 *                                 '- as many whole intervals as packets may pass -'
 *
 * All CPUs share the account, so the limit holds for the whole host, whatever CPU receives the packets. Each
 * CPU has a purse: it takes up to `step` packets from the account at once, and then needs no shared memory
 * until they are used. What lies in the purses of other CPUs may pass later. So the error is at most
 * CPUs * (step - 1) packets more than the burst, once. The step is 1, and the limit exact, below
 * 2 * SIEVE_LIMIT_WITHDRAWALS packets per second.
 *
 * Times are in ticks of 1/16 ns, so that an interval of 10 ns is right within 0.4%.
 */
#ifndef SIEVE_LIMIT_H
#define SIEVE_LIMIT_H

#include <sieve/base.h>

#define SIEVE_LIMIT_TICKS_PER_SECOND 16000000000ULL
#define SIEVE_LIMIT_TICK_SHIFT 4 /* of nanoseconds */
/* About how often all CPUs together take from an account, in one second. */
#define SIEVE_LIMIT_WITHDRAWALS 65536

#define SIEVE_LIMIT_MOST_RATE 100000000U /* packets per second */
#define SIEVE_LIMIT_MOST_SECONDS 86400U  /* until an empty bucket is full */

struct sieve_limit {
    __u64 interval; /* ticks for each packet; 0: the set has no limit */
    __u64 depth;    /* ticks until an empty bucket is full */
    __u32 step;     /* packets that a CPU takes from the account at a time */
    __u32 burst;    /* packets in a full bucket */
};

/* A set's account, alone in its cache line. Zero: the bucket is full. */
struct sieve_account {
    __u64 spent;
    __u64 reserved[7];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_account) == 64, "one cache line");

/* The rate is 1 to SIEVE_LIMIT_MOST_RATE, and burst / rate at most SIEVE_LIMIT_MOST_SECONDS. */
SIEVE_INLINE struct sieve_limit sieve_limit_of(__u32 rate, __u32 burst) {
    struct sieve_limit limit;
    limit.interval = (SIEVE_LIMIT_TICKS_PER_SECOND + rate / 2) / rate;
    limit.depth = limit.interval * burst;
    limit.step = rate / SIEVE_LIMIT_WITHDRAWALS;
    if (limit.step > burst) limit.step = burst;
    if (limit.step == 0) limit.step = 1;
    limit.burst = burst;
    return limit;
}

/*
 * The moment in ticks, of the kernel's clock in nanoseconds. It begins in the middle of the range, so that a
 * bucket can be full right after the machine started; the clock has 18 years.
 */
SIEVE_INLINE __u64 sieve_limit_now(__u64 nanoseconds) {
    return (1ULL << 63) + (nanoseconds << SIEVE_LIMIT_TICK_SHIFT);
}

/*
 * Takes packets from an account that stands at `spent`: none if the limit is reached, else 1 to `step`.
 * `*after` is where the account stands then.
 */
SIEVE_INLINE __u64 sieve_limit_take(__u64 interval, __u64 depth, __u32 step, __u64 spent, __u64 now,
                                    __u64* after) {
    const __u64 oldest = now - depth;
    __u64 packets = 1;

    if (spent < oldest) spent = oldest;
    /* Another CPU's clock may be ahead of this one's. */
    if (spent > now || now - spent < interval || !interval) return 0;
    if (step > 1) {
        packets = (now - spent) / interval;
        if (packets > step) packets = step;
    }
    *after = spent + packets * interval;
    return packets;
}

#endif
