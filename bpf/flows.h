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
    __uint(value_size, sizeof(struct sieve_flow_page));
};

/* The controller makes the memory and puts it into each program that shares it. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1);
    __type(key, __u32);
    __array(values, struct sieve_flow_map);
} sieve_flows SEC(".maps");

/* Where this program's memory has its flows: the copy in its control block. */
static __always_inline const struct sieve_flow_where* sieve_flow_where(void);

/* The lines of a flow. No load of theirs waits for another, so their cache misses overlap. */
struct sieve_flow_spot {
    struct sieve_flow_line* line[SIEVE_FLOW_LINES];
    __u64 tag;
};

/* False if there is no memory. */
static __always_inline int sieve_flow_fetch(const struct sieve_key* key, struct sieve_flow_spot* spot) {
    struct sieve_flow_place place;
    struct sieve_flow_page* page;
    __u32 zero = 0;
    void* memory = bpf_map_lookup_elem(&sieve_flows, &zero);

    if (!memory) return 0;
    place = sieve_flow_locate(sieve_flow_where(), key);
    page = bpf_map_lookup_elem(memory, &place.page);
    if (!page) return 0;
    spot->tag = place.tag;
    spot->line[0] = &page->line[place.line[0] & (SIEVE_FLOW_PAGE_LINES - 1)];
    spot->line[1] = &page->line[place.line[1] & (SIEVE_FLOW_PAGE_LINES - 1)];
    return 1;
}

static __always_inline __u64 sieve_flow_now(void) {
    return bpf_ktime_get_coarse_ns() >> SIEVE_FLOW_CLOCK_SHIFT;
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
 * nothing. Only a flow that is there needs the clock.
 */
static __always_inline int sieve_flow_is_noted(const struct sieve_key* key) {
    struct sieve_flow_spot spot;
    __u64 found = 0;
    __u32 i;

    if (!sieve_flow_fetch(key, &spot)) return 0;
#pragma unroll
    for (i = 0; i < SIEVE_FLOW_PLACES; i++) {
        const __u64 entry = sieve_flow_read(sieve_flow_at(&spot, i));

        if (SIEVE_UNLIKELY(sieve_flow_is(entry, spot.tag))) {
            found = entry;
            break;
        }
    }
    return found && sieve_flow_left(found, sieve_flow_now());
}

/* The same as a global function, so that the verifier checks it once, for callers that are rare. */
__noinline int sieve_flow_find(const struct sieve_key* key) {
    return key && sieve_flow_is_noted(key);
}

#endif
