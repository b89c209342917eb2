/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets that somebody watches: sampled into a ring buffer (sieve/event.h), or, if they match, counted by
 * key (sieve/count_min.h). Unless a controller has asked for it, none of this runs and none of its memory
 * exists.
 */
#ifndef SIEVE_BPF_WATCH_H
#define SIEVE_BPF_WATCH_H

#include <sieve/count_min.h>
#include <sieve/event.h>
#include <sieve/exact.h>
#include <sieve/pattern.h>

#include "answer.h"
#include "fetch.h"
#include "parse.h"

/* Sends the packet's head to the listener. A global function, so that it has a stack of its own. */
__noinline int sieve_sample(SIEVE_CONTEXT* ctx, const struct sieve_parsed* parsed,
                            const struct sieve_answer* answer) {
    struct sieve_event* event;
    __u32 zero = 0, captured;
    void* ring;

    if (!parsed || !answer) return 0; /* cannot happen, but the verifier asks */
    /* No packet needs this map. This is its only use, and without one the program would not hold it. */
    if (sieve_tracing) bpf_map_lookup_elem(&sieve_inserted, &zero);
    ring = bpf_map_lookup_elem(&sieve_events, &zero);
    if (!ring) return 0;
    event = bpf_ringbuf_reserve(ring, sizeof(*event), 0);
    if (!event) return 1;
    event->time = bpf_ktime_get_ns();
    event->hits = answer->hits;
    event->length = parsed->bytes;
    event->verdict = answer->verdict;
    event->decision = answer->decision;
    event->key = parsed->key;
    event->have = parsed->have;
    event->rejected = answer->rejected;
    /* 1 to SIEVE_EVENT_HEAD, in a form that Linux 6.1's verifier understands. */
    captured = parsed->bytes - 1;
    if (captured > SIEVE_EVENT_HEAD - 1) captured = SIEVE_EVENT_HEAD - 1;
    SIEVE_KEEP(captured);
    captured = (captured & (SIEVE_EVENT_HEAD - 1)) + 1;
    if (sieve_load(ctx, 0, event->head, captured) != 0) captured = 0;
    event->captured = captured;
    bpf_ringbuf_submit(event, 0);
    return 0;
}

static __always_inline void* sieve_sketch_line(void* sketch, __u32 line) {
    return bpf_map_lookup_elem(sketch, &line);
}

static __always_inline int sieve_is_candidate(const struct sieve_candidate* candidate,
                                              const struct sieve_key* item, __u32 slot) {
    return candidate->slot == slot && candidate->key.word[0] == item->word[0] &&
           candidate->key.word[1] == item->word[1] && candidate->key.word[2] == item->word[2] &&
           candidate->key.word[3] == item->word[3] && candidate->key.word[4] == item->word[4];
}

/*
 * Remembers the item if it is heavier than the candidate that it would replace. A global function, so that
 * the verifier does not walk it again for every path through the sketch.
 */
__noinline int sieve_remember(const struct sieve_key* item, __u32 slot, __u64 estimate, __u32 first,
                              __u32 second) {
    const __u32 base = sieve_sketch_cpu_line(bpf_get_smp_processor_id()) + SIEVE_SKETCH_FIRST_CANDIDATE;
    struct sieve_candidate *one, *other;
    __u32 zero = 0;
    void* sketch;

    sketch = bpf_map_lookup_elem(&sieve_sketches, &zero);
    if (!sketch || !item) return 0;
    one = sieve_sketch_line(sketch, base + (first & (SIEVE_SKETCH_CANDIDATES - 1)));
    other = sieve_sketch_line(sketch, base + (second & (SIEVE_SKETCH_CANDIDATES - 1)));
    if (!one || !other) return 0;
    if (!sieve_is_candidate(one, item, slot)) {
        if (sieve_is_candidate(other, item, slot) || other->estimate < one->estimate) one = other;
        if (!sieve_is_candidate(one, item, slot)) {
            if (estimate <= one->estimate) return 0;
            one->key = *item;
            one->slot = slot;
        }
    }
    one->estimate = estimate;
    return 0;
}

/*
 * Counts a match of the set in this slot, in this CPU's own part of the sketch. A global function, for the
 * same reason.
 */
__noinline int sieve_tally(const struct sieve_key* key, __u32 index) {
    __u32 zero = 0, slot = index & (SIEVE_SLOTS - 1), base, first, second, column, step, i;
    const struct sieve_line* hash_keys[SIEVE_SKETCH_LINES];
    const struct sieve_lookup* lookup;
    struct sieve_sketch_cpu* cpu;
    __u64 estimate = ~0ULL >> 1;
    struct sieve_key item;
    void *filter, *sketch;

    sketch = bpf_map_lookup_elem(&sieve_sketches, &zero);
    lookup = sieve_fetch_lookup(index, &filter);
    if (!sketch || !lookup || !key) return 0;
    for (i = 0; i < SIEVE_SKETCH_LINES; i++) {
        hash_keys[i] = sieve_sketch_line(sketch, i);
        if (!hash_keys[i]) return 0;
    }
    sieve_exact_of_key(key, lookup->fields, &item);
    first = sieve_sketch_sum(hash_keys[0], hash_keys[1], &item, slot);
    second = sieve_sketch_sum(hash_keys[SIEVE_SKETCH_HASH_LINES], hash_keys[SIEVE_SKETCH_HASH_LINES + 1],
                              &item, slot);

    base = sieve_sketch_cpu_line(bpf_get_smp_processor_id());
    cpu = sieve_sketch_line(sketch, base);
    if (!cpu) return 0;
    cpu->total++;
    column = first % SIEVE_SKETCH_WIDTH;
    step = second % SIEVE_SKETCH_WIDTH;
    for (i = 0; i < SIEVE_SKETCH_DEPTH; i++) {
        struct sieve_line* line = sieve_sketch_line(
            sketch, base + SIEVE_SKETCH_FIRST_ROW + i * SIEVE_SKETCH_ROW_LINES + column / SIEVE_LINE_WORDS);
        __u64 count;
        if (!line) return 0;
        count = ++line->word[column % SIEVE_LINE_WORDS];
        estimate = sieve_sketch_less(estimate, count);
        column = sieve_sketch_next(column, step);
    }
    sieve_remember(&item, slot, estimate, first, second);
    return 0;
}

struct sieve_tallying {
    const struct sieve_key* key;
    __u32 hits;
    __u32 first; /* map index of the bank's slot 0 */
};

static long sieve_tally_slot(__u32 slot, struct sieve_tallying* tallying) {
    if (tallying->hits >> (slot & (SIEVE_SLOTS - 1)) & 1) sieve_tally(tallying->key, tallying->first + slot);
    return 0;
}

/* Is the packet one of those that are sampled? */
static __always_inline int sieve_is_sampled(const struct sieve_answer* answer, __u32 watch) {
    return (answer->hits && (watch & SIEVE_WATCH_EVENTS)) ||
           (answer->decision == SIEVE_NO_SET && (watch & SIEVE_WATCH_DEFAULT)) ||
           (answer->rejected && (watch & SIEVE_WATCH_REJECTED)) ||
           (answer->decision == SIEVE_REPLY && (watch & SIEVE_WATCH_REPLIES));
}

/* Watches a packet. A global function, so that its stack is not on the path to the sets. */
__noinline int sieve_watch(SIEVE_CONTEXT* ctx, const struct sieve_parsed* parsed,
                           const struct sieve_answer* answer, struct sieve_stats* stats) {
    struct sieve_tallying tallying;
    __u32 sample, watch;

    if (!parsed || !answer || !stats) return 0; /* cannot happen, but the verifier asks */
    sample = sieve_control.sample;
    watch = sieve_control.watch;
    if (sieve_is_sampled(answer, watch) && sample && bpf_get_prandom_u32() % sample == 0 &&
        sieve_sample(ctx, parsed, answer))
        stats->events_lost++;
    if (!answer->hits || !(watch & SIEVE_WATCH_TALLY)) return 0;
    tallying.key = &parsed->key;
    tallying.hits = answer->hits;
    tallying.first = (answer->bank & (SIEVE_BANKS - 1)) * SIEVE_SLOTS;
    /* bpf_loop: the verifier checks the body once. */
    bpf_loop(SIEVE_SLOTS, sieve_tally_slot, &tallying, 0);
    return 0;
}

#endif
