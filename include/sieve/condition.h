/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A condition of a set in a table: the set matches only packets with such ports and such a protocol.
 *
 * It belongs to the table's entry and not to the filter. So a list of addresses serves for one port, without
 * the port in each key. A packet that lacks a field that the condition asks for does not meet it: a fragment
 * other than the first has no ports, and nor has ICMP.
 */
#ifndef SIEVE_CONDITION_H
#define SIEVE_CONDITION_H

#include <sieve/key.h>

/* So many spans of a field. Each costs a packet one comparison. */
#define SIEVE_CONDITION_SPANS 8

/* The fields that a condition can ask for. */
enum sieve_part {
    SIEVE_PART_DPORT = 0,
    SIEVE_PART_SPORT = 1,
    SIEVE_PART_PROTO = 2,
    SIEVE_PARTS = 3,
};

/* Both ends belong to it. */
struct sieve_span {
    __u16 first;
    __u16 last;
};

struct sieve_condition {
    __u8 fields;             /* enum sieve_field bits: what it asks for; 0: there is no condition */
    __u8 spans[SIEVE_PARTS]; /* of each part; 0 of those that it does not ask for */
    struct sieve_span span[SIEVE_PARTS][SIEVE_CONDITION_SPANS];
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_condition) == 4 + 4 * SIEVE_PARTS * SIEVE_CONDITION_SPANS,
                    "no padding");

/* Whether one of the spans holds the value. */
SIEVE_INLINE int sieve_spans_hold(const struct sieve_span* span, __u32 spans, __u32 value) {
    __u32 i;

    for (i = 0; i < SIEVE_CONDITION_SPANS; i++) {
        if (i >= spans) return 0;
        if (value >= span[i].first && value <= span[i].last) return 1;
    }
    return 0;
}

/* Whether a packet meets the condition: its key's word 4, and the fields that it has. */
SIEVE_INLINE int sieve_condition_met(const struct sieve_condition* condition, __u64 transport, __u32 have) {
    const __u32 fields = condition->fields;

    if (fields & ~have) return 0;
    if ((fields & SIEVE_FIELD_PROTO) &&
        !sieve_spans_hold(condition->span[SIEVE_PART_PROTO], condition->spans[SIEVE_PART_PROTO],
                          (transport >> SIEVE_PROTO_SHIFT) & 0xff))
        return 0;
    if ((fields & SIEVE_FIELD_DPORT) &&
        !sieve_spans_hold(condition->span[SIEVE_PART_DPORT], condition->spans[SIEVE_PART_DPORT],
                          (transport >> SIEVE_DPORT_SHIFT) & 0xffff))
        return 0;
    return !(fields & SIEVE_FIELD_SPORT) ||
           sieve_spans_hold(condition->span[SIEVE_PART_SPORT], condition->spans[SIEVE_PART_SPORT],
                            (transport >> SIEVE_SPORT_SHIFT) & 0xffff);
}

#endif
