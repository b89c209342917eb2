/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads lines of a filter from its map: the "fetch" of locate, fetch, test.
 */
#ifndef SIEVE_BPF_FETCH_H
#define SIEVE_BPF_FETCH_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <sieve/image.h>

#include "maps.h"

static __always_inline const struct sieve_line* sieve_fetch(void* filter, __u32 line) {
    __u32 index = line + SIEVE_FIRST_LINE;
    return bpf_map_lookup_elem(filter, &index);
}

/* The filter at a map index, and its first line; false if there is none. */
static __always_inline const struct sieve_lookup* sieve_fetch_lookup(__u32 index, void** filter) {
    __u32 line = 0;
    *filter = bpf_map_lookup_elem(&sieve_sets, &index);
    return *filter ? bpf_map_lookup_elem(*filter, &line) : 0;
}

#endif
