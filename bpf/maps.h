/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program's maps. Nothing is pinned: the controller finds them through the program that is attached.
 */
#ifndef SIEVE_BPF_MAPS_H
#define SIEVE_BPF_MAPS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <sieve/count_min.h>
#include <sieve/event.h>
#include <sieve/inserted.h>
#include <sieve/limit.h>
#include <sieve/policy.h>

#include "flows.h"

/* Lines, mostly of a filter image. BPF_F_INNER_MAP lets arrays of different sizes replace each other; it
 * needs Linux 5.10. */
struct sieve_filter_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, SIEVE_LINE_BYTES); /* a type would only be a forward declaration in BTF */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, SIEVE_BANKS* SIEVE_SLOTS);
    __type(key, __u32);
    __array(values, struct sieve_filter_map);
} sieve_sets SEC(".maps");

/* The exact sets, for verification (sieve/records.h), at the same map indices as their filters. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, SIEVE_BANKS* SIEVE_SLOTS);
    __type(key, __u32);
    __array(values, struct sieve_filter_map);
} sieve_exact SEC(".maps");

/*
 * The keys that were inserted since the filters were built, at the same map indices (sieve/inserted.h). No
 * packet reads them: the controller keeps them here because they must live and die with their filters.
 */
struct sieve_inserted_map {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(key_size, sizeof(struct sieve_key));
    __uint(value_size, sizeof(struct sieve_inserted));
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, SIEVE_BANKS* SIEVE_SLOTS);
    __type(key, __u32);
    __array(values, struct sieve_inserted_map);
} sieve_inserted SEC(".maps");

/* For each bank its joint filter (sieve/joint.h), if it has one. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, SIEVE_BANKS);
    __type(key, __u32);
    __array(values, struct sieve_filter_map);
} sieve_joint SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct sieve_stats);
} sieve_stats SEC(".maps");

/*
 * Where packets are redirected to: for each bank a map of interfaces, by index, and one of CPUs, by number,
 * if its sets name any. They are inside map-in-maps because a cpumap can belong to only one program, and so
 * that each has as many entries as it needs. The values are the short form, without a second program.
 */
struct sieve_device_map {
    __uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
    __uint(max_entries, SIEVE_MAX_SETS);
    __type(key, __u32);
    __type(value, __u32);
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, SIEVE_BANKS);
    __type(key, __u32);
    __array(values, struct sieve_device_map);
} sieve_devices SEC(".maps");

struct sieve_cpu_map {
    __uint(type, BPF_MAP_TYPE_CPUMAP);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, SIEVE_BANKS);
    __type(key, __u32);
    __array(values, struct sieve_cpu_map);
} sieve_cpus SEC(".maps");

/* A controller that watches matches supplies the memory: a ring buffer, a sketch. */
struct sieve_ring {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1);
    __type(key, __u32);
    __array(values, struct sieve_ring);
} sieve_events SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1);
    __type(key, __u32);
    __array(values, struct sieve_filter_map);
} sieve_sketches SEC(".maps");

/* The accounts of sets with a limit (sieve/limit.h), by slot. Shared by all CPUs. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, SIEVE_SLOTS);
    __type(key, __u32);
    __type(value, struct sieve_account);
} sieve_accounts SEC(".maps");

/* Where the sets are asked again, about a packet that another one quotes (bpf/reply.h): struct sieve_quoted.
 * Begins with a word that is not zero as long as they are asked. The kernel takes types of both key and
 * value, or of neither. */
#define SIEVE_QUOTED_BYTES (sizeof(struct sieve_stats) + 80)
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, SIEVE_QUOTED_BYTES);
} sieve_quoted SEC(".maps");

/* Each map of the list, by its name. */
#define SIEVE_MAP_IS_HERE(map) SIEVE_STATIC_ASSERT(sizeof(sieve_##map) > 0, "a map of the list");
SIEVE_OPEN_MAPS(SIEVE_MAP_IS_HERE)
SIEVE_RARE_MAPS(SIEVE_MAP_IS_HERE)

#define SIEVE_PASS_ALL                                                                                       \
    { .default_action = SIEVE_ACTION_PASS, .unreadable = SIEVE_ACTION_PASS }

/* Sets and order (sieve/policy.h). Initially there is no set and every packet passes. */
volatile struct sieve_control sieve_control SEC(SIEVE_MAP_CONTROL) = {
    .magic = SIEVE_MAGIC,
    .abi = SIEVE_ABI,
    .bank = {SIEVE_PASS_ALL, SIEVE_PASS_ALL},
};

/* With what the interface's packets begin (enum sieve_link). */
static __always_inline __u32 sieve_link(void) {
    return sieve_control.link;
}

static __always_inline const struct sieve_flow_where* sieve_flow_where(void) {
    return (const struct sieve_flow_where*)&sieve_control.flows;
}

/* Set before loading by whoever inspects each packet's treatment (preflight, replay, tests); else dead code.
 */
const volatile __u32 sieve_tracing = 0;
struct sieve_trace sieve_trace_last;

#endif
