/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flow memory in the kernel (sieve/flow.h): its map, and the question whether it holds a flow.
 */
#ifndef SIEVE_BPF_FLOWS_H
#define SIEVE_BPF_FLOWS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <sieve/flow.h>

struct sieve_flow_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct sieve_flow_head));
};

/* The controller makes the memory and puts it into each program that shares it. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1);
    __type(key, __u32);
    __array(values, struct sieve_flow_map);
} sieve_flows SEC(".maps");

/* The lines of a flow. Both are requested before either is read, so that their cache misses overlap. */
struct sieve_flow_spot {
    const struct sieve_flow_head* head;
    struct sieve_flow_line* line[SIEVE_FLOW_LINES];
    __u64 tag;
};

/* False if there is no memory. */
static __always_inline int sieve_flow_fetch(const struct sieve_key* key, struct sieve_flow_spot* spot) {
    struct sieve_flow_place place;
    __u32 at = 0;
    void* memory = bpf_map_lookup_elem(&sieve_flows, &at);

    if (!memory) return 0;
    spot->head = bpf_map_lookup_elem(memory, &at);
    if (!spot->head) return 0;
    place = sieve_flow_locate(spot->head, key);
    spot->tag = place.tag;
    at = 1 + place.line[0];
    spot->line[0] = bpf_map_lookup_elem(memory, &at);
    at = 1 + place.line[1];
    spot->line[1] = bpf_map_lookup_elem(memory, &at);
    return spot->line[0] && spot->line[1];
}

static __always_inline __u64 sieve_flow_now(const struct sieve_flow_spot* spot) {
    return (bpf_ktime_get_coarse_ns() >> SIEVE_FLOW_CLOCK_SHIFT) + spot->head->clock;
}

/* One of the places of a flow. What is there may change at any moment. */
static __always_inline __u64* sieve_flow_at(const struct sieve_flow_spot* spot, __u32 i) {
    return &spot->line[i / SIEVE_FLOW_ENTRIES]->entry[i % SIEVE_FLOW_ENTRIES];
}

static __always_inline __u64 sieve_flow_read(const __u64* at) {
    return *(const volatile __u64*)at;
}

/*
 * True if the flow of this key, which is that of the host's own packets, is noted and has not expired. Writes
 * nothing. A global function, so that the verifier checks it once. Only a flow that is there needs the clock.
 */
__noinline int sieve_flow_find(const struct sieve_key* key) {
    struct sieve_flow_spot spot;
    __u64 found = 0;
    __u32 i;

    if (!key || !sieve_flow_fetch(key, &spot)) return 0;
#pragma unroll
    for (i = 0; i < SIEVE_FLOW_PLACES; i++) {
        const __u64 entry = sieve_flow_read(sieve_flow_at(&spot, i));

        if (SIEVE_UNLIKELY(sieve_flow_is(entry, spot.tag))) {
            found = entry;
            break;
        }
    }
    return found && sieve_flow_left(found, sieve_flow_now(&spot));
}

#endif
