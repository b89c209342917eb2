/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packet path: parse -> key -> sets in order -> verdict. See docs/ for the flow and sieve/policy.h for
 * how the controller steers it.
 *
 * The path is written once. Each hook compiles it with the hook's own header (hook_xdp.h, hook_tc.h), which
 * is included first and defines:
 *
 *   SIEVE_CONTEXT             the type of the context that this hook passes to a program
 *   sieve_length_reserve()    negative if the packet may be longer than its IP header can state
 *   sieve_load()              copies bytes of the packet from an offset, wherever they lie
 *   sieve_redirect()          the verdict on a packet for another interface or CPU
 */
#ifndef SIEVE_BPF_PATH_H
#define SIEVE_BPF_PATH_H

#include "answer.h"
#include "limit.h"
#include "lookup.h"
#include "lookup_joint.h"
#include "maps.h"
#include "parse.h"
#include "parse_deep.h"
#include "reply.h"
#include "verify.h"
#include "watch.h"

/* The bank in force. Only a change on probation reads the clock. */
static __always_inline __u32 sieve_active_bank(void) {
    __u64 active = sieve_control.active;

    if (SIEVE_UNLIKELY(active >= SIEVE_BANKS)) return sieve_bank_in_force(active, bpf_ktime_get_coarse_ns());
    return active & (SIEVE_BANKS - 1);
}

/*
 * Handles a packet that sieve_parse() has not read to its end. Reads on if there is more to read. If the
 * packet stays unreadable, applies the policy for unreadable packets. True if the policy drops the packet.
 * This is a global function: such packets are rare, and the path to the sets stays short.
 */
__noinline int sieve_refuses_unreadable(SIEVE_CONTEXT* ctx, struct sieve_parsed* parsed,
                                        struct sieve_answer* answer) {
    volatile struct sieve_policy* policy;
    struct sieve_stats* stats;
    __u32 zero = 0;

    if (!parsed || !answer) return 0; /* cannot happen, but the verifier asks */
    sieve_parse_further(ctx, parsed);
    if (parsed->outcome < SIEVE_OUTCOME_FIRST_UNREADABLE) return 0;
    policy = &sieve_control.bank[sieve_active_bank() & (SIEVE_BANKS - 1)];
    if (policy->unreadable != SIEVE_ACTION_DROP) {
        /* Not an argument, which would cost the caller's stack. */
        stats = bpf_map_lookup_elem(&sieve_stats, &zero);
        if (stats && parsed->have) stats->asked_unreadable++;
        return 0;
    }
    answer->action = SIEVE_ACTION_DROP;
    return 1;
}

/* Counts a match with the set of an entry. True if the set decides. */
static __always_inline int sieve_match(const struct sieve_parsed* parsed, struct sieve_stats* stats,
                                       struct sieve_answer* answer, volatile struct sieve_policy_entry* entry,
                                       __u32 slot, __u32 index) {
    stats->hit[slot].packets++;
    stats->hit[slot].bytes += parsed->bytes;
    answer->hits |= 1U << slot;
    if (entry->action == SIEVE_ACTION_COUNT) return 0;
    answer->decision = slot;
    answer->flags = entry->flags;
    stats->decided++;
    if (SIEVE_UNLIKELY(entry->action == SIEVE_ACTION_LIMIT)) {
        /* The answer already holds the default action. */
        if (sieve_over_limit(stats, index, parsed->bytes)) answer->action = SIEVE_ACTION_DROP;
        return 1;
    }
    answer->action = entry->action;
    answer->target = entry->target;
    return 1;
}

/* Whether the packet meets the condition of the i-th set. A global function, so that the verifier checks it
 * once, and tables without conditions have no part in it. */
__noinline int sieve_meets_condition(const struct sieve_parsed* parsed, __u32 bank, __u32 i) {
    volatile struct sieve_policy* policy = &sieve_control.bank[bank & (SIEVE_BANKS - 1)];

    if (!parsed) return 0; /* cannot happen, but the verifier asks */
    return sieve_condition_met((const struct sieve_condition*)&policy->condition[i & (SIEVE_MAX_SETS - 1)],
                               parsed->key.word[4], parsed->have);
}

/* How sieve_ask() comes to a set. */
enum sieve_turn {
    SIEVE_TURN_FIRST, /* it is the first set, and the answer is to be begun */
    SIEVE_TURN_NEXT,  /* the sets before it have been asked */
    SIEVE_TURN_NAMED, /* likewise, and the joint filter says that it holds the key */
};

/*
 * Asks the i-th set in order. True if others remain to be asked; with a joint filter, the first turn asks no
 * set. A global function, so that the verifier checks it once, and not for each set or for each path through
 * the parser. The first set takes no further call, since most tables have only one.
 */
__noinline int sieve_ask(const struct sieve_parsed* parsed, struct sieve_stats* stats,
                         struct sieve_answer* answer, __u32 i, __u32 turn) {
    volatile struct sieve_policy_entry* entry;
    volatile struct sieve_policy* policy;
    __u32 bank, slot, index;
    void* filter;
    int hit;

    if (!parsed || !stats || !answer) return 0; /* cannot happen, but the verifier asks */
    if (turn == SIEVE_TURN_FIRST) answer->bank = sieve_active_bank();
    bank = answer->bank & (SIEVE_BANKS - 1);
    policy = &sieve_control.bank[bank];
    if (turn == SIEVE_TURN_FIRST) {
        answer->action = policy->default_action;
        answer->decision = SIEVE_NO_SET;
        if (SIEVE_UNLIKELY(policy->joined)) return 1;
        if (!policy->sets) return 0;
    }
    entry = &policy->entry[i & (SIEVE_MAX_SETS - 1)];
    /* Before the lookup, which it saves, and whatever the joint filter says. */
    if (SIEVE_UNLIKELY(entry->flags & SIEVE_ENTRY_CONDITION) && !sieve_meets_condition(parsed, bank, i))
        return i + 1 < policy->sets;
    slot = entry->slot & (SIEVE_SLOTS - 1);
    index = bank * SIEVE_SLOTS + slot;
    hit = turn == SIEVE_TURN_NAMED;
    if (!hit) {
        filter = bpf_map_lookup_elem(&sieve_sets, &index);
        hit = filter && sieve_lookup_key(filter, index, &parsed->key, parsed->have);
        if (SIEVE_UNLIKELY(entry->flags & SIEVE_ENTRY_VERIFY)) {
            int matched = hit;

            hit = sieve_verify(parsed, stats, index, matched);
            if (matched && !hit) answer->rejected |= 1U << slot;
        }
    }
    if (hit && sieve_match(parsed, stats, answer, entry, slot, index)) return 0;
    return i + 1 < policy->sets;
}

/*
 * Asks the sets that remain after the first turn, in order. With a joint filter, these are the one that it
 * names, without a further lookup, and those that its answer leaves open.
 */
__noinline int sieve_ask_others(const struct sieve_parsed* parsed, struct sieve_stats* stats,
                                struct sieve_answer* answer) {
    volatile struct sieve_policy* policy;
    __u32 bank, number, open, i, n;

    if (!parsed || !stats || !answer) return 0; /* cannot happen, but the verifier asks */
    bank = answer->bank & (SIEVE_BANKS - 1);
    policy = &sieve_control.bank[bank];
    if (!policy->joined) {
        for (i = 1; i < SIEVE_MAX_SETS; i++)
            if (!sieve_ask(parsed, stats, answer, i, SIEVE_TURN_NEXT)) break;
        return 0;
    }
    number = sieve_lookup_joint(&parsed->key, bank, parsed->have);
    open = policy->joint.alone;
    if (number < SIEVE_MAX_SETS)
        open |= policy->joint.after[number];
    else if (SIEVE_UNLIKELY(number == SIEVE_JOINT_NO_ANSWER))
        open = (1U << (policy->sets & 31)) - 1;
    for (n = 0; n < SIEVE_MAX_SETS && open; n++) {
        __u32 named;

        i = sieve_lowest_bit(open);
        open &= open - 1;
        /* No branch, because the verifier would walk both ways in each iteration. */
        named = ((__u64)(policy->entry[i & (SIEVE_MAX_SETS - 1)].joined ^ (number + 1)) - 1) >> 63;
        if (!sieve_ask(parsed, stats, answer, i, SIEVE_TURN_NEXT + named)) break;
    }
    return 0;
}

/* The verdict for the answer's action. Counts packets that cannot be redirected. */
static __always_inline int sieve_verdict(const struct sieve_answer* answer, struct sieve_stats* stats) {
    __u32 action = answer->action;

    if (SIEVE_UNLIKELY(action >= SIEVE_ACTION_FIRST_REDIRECT)) {
        __u32 bank = answer->bank & (SIEVE_BANKS - 1);
        __u32 otherwise = sieve_control.bank[bank].default_action;
        int verdict =
            sieve_redirect(bank, action, answer->target,
                           otherwise == SIEVE_ACTION_DROP ? SIEVE_VERDICT_DROP : SIEVE_VERDICT_PASS);
        if (verdict != SIEVE_VERDICT_REDIRECT) stats->redirect_failed++;
        return verdict;
    }
    return action == SIEVE_ACTION_DROP ? SIEVE_VERDICT_DROP : SIEVE_VERDICT_PASS;
}

static __always_inline void sieve_count(struct sieve_counter* counter, __u64 bytes) {
    counter->packets++;
    counter->bytes += bytes;
}

/* Whether a packet that would be dropped passes, since it answers a flow of the host (reply.h). Counts it. */
static __always_inline int sieve_passes_as_reply(SIEVE_CONTEXT* ctx, const struct sieve_parsed* parsed,
                                                 struct sieve_answer* answer, struct sieve_stats* stats) {
    struct sieve_quoted* quoted;
    __u32 zero = 0;

    switch (sieve_is_reply(ctx, parsed, answer->flags)) {
    case SIEVE_REPLY_NO:
        return 0;
    case SIEVE_REPLY_ASKS:
        /* Not from within a function, whose stack would come on top. */
        quoted = bpf_map_lookup_elem(&sieve_quoted, &zero);
        if (!quoted) return 0;
        quoted->is_asked = 1;
        if (sieve_ask(&quoted->parsed, &quoted->stats, &quoted->answer, 0, SIEVE_TURN_FIRST))
            sieve_ask_others(&quoted->parsed, &quoted->stats, &quoted->answer);
        quoted->is_asked = 0;
        if (quoted->answer.decision >= SIEVE_SLOTS || quoted->answer.action == SIEVE_ACTION_DROP) return 0;
    }
    if (answer->decision == SIEVE_NO_SET) stats->decided++;
    answer->decision = SIEVE_REPLY;
    sieve_count(&stats->replied, parsed->bytes);
    return 1;
}

/* The whole path, from a packet of `bytes` bytes to its verdict (enum sieve_verdict). */
static __always_inline int sieve_filter(SIEVE_CONTEXT* ctx, __u32 bytes) {
    struct sieve_answer answer = {.action = SIEVE_ACTION_PASS, .decision = SIEVE_NOT_ASKED};
    struct sieve_parsed parsed;
    struct sieve_stats* stats;
    int verdict;

    /* `bank` is 0 until the sets are asked, so it can serve as the map index here. */
    stats = bpf_map_lookup_elem(&sieve_stats, &answer.bank);
    if (!stats) return SIEVE_VERDICT_PASS; /* cannot happen: the array has one entry */

    sieve_parse(ctx, bytes, &parsed);
    if (SIEVE_LIKELY(parsed.outcome < SIEVE_OUTCOME_FIRST_UNREADABLE) ||
        !sieve_refuses_unreadable(ctx, &parsed, &answer))
        if (parsed.have && SIEVE_UNLIKELY(sieve_ask(&parsed, stats, &answer, 0, SIEVE_TURN_FIRST)))
            sieve_ask_others(&parsed, stats, &answer);
    stats->outcome[parsed.outcome & (SIEVE_OUTCOME_SLOTS - 1)]++;

    verdict = sieve_verdict(&answer, stats);
    if (verdict == SIEVE_VERDICT_DROP &&
        SIEVE_UNLIKELY(sieve_control.bank[answer.bank & (SIEVE_BANKS - 1)].replies == SIEVE_ACTION_PASS) &&
        sieve_passes_as_reply(ctx, &parsed, &answer, stats))
        verdict = SIEVE_VERDICT_PASS;
    answer.verdict = verdict;
    if (verdict == SIEVE_VERDICT_DROP)
        sieve_count(&stats->dropped, parsed.bytes);
    else if (SIEVE_LIKELY(verdict == SIEVE_VERDICT_PASS))
        sieve_count(&stats->passed, parsed.bytes);
    else
        sieve_count(&stats->redirected, parsed.bytes);

    /* While nobody watches, every packet takes only the first branch. */
    if (SIEVE_UNLIKELY(sieve_control.watch) &&
        (answer.hits ||
         (sieve_control.watch & (SIEVE_WATCH_DEFAULT | SIEVE_WATCH_REJECTED | SIEVE_WATCH_REPLIES))))
        sieve_watch(ctx, &parsed, &answer, stats);

    if (sieve_tracing) {
        sieve_trace_last.key = parsed.key;
        sieve_trace_last.have = parsed.have;
        sieve_trace_last.outcome = parsed.outcome;
        sieve_trace_last.verdict = verdict;
        sieve_trace_last.decision = answer.decision;
        sieve_trace_last.hits = answer.hits;
    }
    return verdict;
}

/*
 * This function is never called or loaded. It makes the object's BTF describe an image's lines, as it
 * describes the maps' values. A test compares this compiler's layout of the lines with the controller's.
 */
__noinline int sieve_layout(const struct sieve_lookup* lookup, const struct sieve_probes* probes,
                            const struct sieve_file* file, const struct sieve_witness* witness,
                            const struct sieve_exception* exception) {
    return lookup && probes && file && witness && exception;
}

#endif
