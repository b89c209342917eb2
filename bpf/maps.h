/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program's maps. Nothing is pinned: the controller finds them through the program that is attached.
 */
#ifndef SIEVE_BPF_MAPS_H
#define SIEVE_BPF_MAPS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <sieve/policy.h>

/* A filter image. BPF_F_INNER_MAP lets images of any size take each other's place; it needs Linux 5.10. */
struct sieve_filter_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, SIEVE_LINE_BYTES); /* a type would be but a forward declaration in BTF here */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, SIEVE_BANKS* SIEVE_SLOTS);
    __type(key, __u32);
    __array(values, struct sieve_filter_map);
} sieve_sets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct sieve_stats);
} sieve_stats SEC(".maps");

/* Sets and order (sieve/policy.h); starts with no set and everything passed. */
volatile struct sieve_control sieve_control SEC(SIEVE_MAP_CONTROL) = {
    .magic = SIEVE_MAGIC,
    .abi = SIEVE_ABI,
    .bank = {{.default_action = SIEVE_ACTION_PASS}, {.default_action = SIEVE_ACTION_PASS}},
};

/* Set before loading by whoever wants to look over the program's shoulder (preflight, replay, tests); else
 * dead code. */
const volatile __u32 sieve_tracing = 0;
struct sieve_trace sieve_trace_last;

#endif
