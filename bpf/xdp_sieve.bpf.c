/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packet path: parse -> key -> sets in order -> verdict. See docs/ for the flow and sieve/policy.h for
 * how the controller steers it. Attach with `ip link set dev IFACE xdp obj xdp_sieve.bpf.o sec xdp` or
 * `xdp-sieve load`.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "answer.h"
#include "lookup.h"
#include "maps.h"
#include "parse.h"
#include "redirect.h"
#include "verify.h"
#include "watch.h"

/* Asks the set that is i-th in order; true if it decides. */
static __always_inline int sieve_ask_set(const struct sieve_parsed* parsed, struct sieve_stats* stats,
                                         struct sieve_answer* answer, __u32 i) {
    __u32 bank = answer->bank & (SIEVE_BANKS - 1);
    volatile struct sieve_policy_entry* entry = &sieve_control.bank[bank].entry[i & (SIEVE_MAX_SETS - 1)];
    __u32 slot = entry->slot & (SIEVE_SLOTS - 1);
    __u32 place = bank * SIEVE_SLOTS + slot;
    void* filter = bpf_map_lookup_elem(&sieve_sets, &place);

    int hit = filter && sieve_lookup_key(filter, place, &parsed->key, parsed->have);

    if (SIEVE_UNLIKELY(entry->flags & SIEVE_ENTRY_VERIFY)) hit = sieve_verify(parsed, stats, place, hit);
    if (!hit) return 0;
    stats->hit[slot].packets++;
    stats->hit[slot].bytes += answer->bytes;
    answer->hits |= 1U << slot;
    if (entry->action == SIEVE_ACTION_COUNT) return 0;
    answer->action = entry->action;
    answer->target = entry->target;
    answer->decision = slot;
    return 1;
}

/*
 * A set after the first. A global function, so that the verifier checks it once and not in each turn of the
 * loop over sets: four fifths of the time that loading takes.
 */
__noinline int sieve_ask_next(const struct sieve_parsed* parsed, struct sieve_stats* stats,
                              struct sieve_answer* answer, __u32 i) {
    if (!parsed || !stats || !answer) return 0; /* cannot happen, but the verifier asks */
    return sieve_ask_set(parsed, stats, answer, i);
}

/*
 * Asks the sets in order; counts every hit. A global function, so that the verifier checks it once for any
 * key instead of once for each way through the parser. The first set is asked without a further call: most
 * have but one.
 */
__noinline int sieve_ask(const struct sieve_parsed* parsed, struct sieve_stats* stats,
                         struct sieve_answer* answer) {
    volatile struct sieve_policy* policy;
    __u32 sets, i;

    if (!parsed || !stats || !answer) return 0; /* cannot happen, but the verifier asks */
    answer->bank = sieve_control.active & (SIEVE_BANKS - 1);
    policy = &sieve_control.bank[answer->bank & (SIEVE_BANKS - 1)];
    sets = policy->sets;
    answer->action = policy->default_action;
    answer->decision = SIEVE_NO_SET;
    if (!sets || sieve_ask_set(parsed, stats, answer, 0)) return 0;
    for (i = 1; i < SIEVE_MAX_SETS && i < sets; i++)
        if (sieve_ask_next(parsed, stats, answer, i)) break;
    return 0;
}

/* XDP's verdict for an action; counts packets that cannot go where they should. */
static __always_inline int sieve_verdict(const struct sieve_answer* answer, struct sieve_stats* stats) {
    __u32 action = answer->action;

    if (SIEVE_UNLIKELY(action >= SIEVE_ACTION_FIRST_REDIRECT)) {
        __u32 bank = answer->bank & (SIEVE_BANKS - 1);
        __u32 otherwise = sieve_control.bank[bank].default_action;
        int verdict = sieve_redirect(bank, action, answer->target,
                                     otherwise == SIEVE_ACTION_DROP ? XDP_DROP : XDP_PASS);
        if (verdict != XDP_REDIRECT) stats->redirect_failed++;
        return verdict;
    }
    return action == SIEVE_ACTION_DROP ? XDP_DROP : XDP_PASS;
}

static __always_inline void sieve_count(struct sieve_counter* counter, __u64 bytes) {
    counter->packets++;
    counter->bytes += bytes;
}

static __always_inline int sieve_filter(struct xdp_md* ctx, __u64 bytes) {
    struct sieve_answer answer = {.action = SIEVE_ACTION_PASS, .decision = SIEVE_NOT_ASKED, .bytes = bytes};
    struct sieve_parsed parsed;
    struct sieve_stats* stats;
    __u32 zero = 0;
    int verdict;

    stats = bpf_map_lookup_elem(&sieve_stats, &zero);
    if (!stats) return XDP_PASS; /* cannot happen: the array has one entry */

    sieve_parse(ctx, &parsed);
    stats->outcome[parsed.outcome & (SIEVE_OUTCOME_SLOTS - 1)]++;
    if (parsed.outcome < SIEVE_OUTCOME_FIRST_WITHOUT_KEY) sieve_ask(&parsed, stats, &answer);

    answer.verdict = verdict = sieve_verdict(&answer, stats);
    if (verdict == XDP_DROP)
        sieve_count(&stats->dropped, answer.bytes);
    else if (SIEVE_LIKELY(verdict == XDP_PASS))
        sieve_count(&stats->passed, answer.bytes);
    else
        sieve_count(&stats->redirected, answer.bytes);

    /* A stranger costs the first branch only. */
    if (SIEVE_UNLIKELY(answer.hits) && SIEVE_UNLIKELY(sieve_control.watch))
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

SEC("xdp")
int xdp_sieve(struct xdp_md* ctx) {
    return sieve_filter(ctx, ctx->data_end - ctx->data);
}

/* For jumbo frames: the headers must lie in the first buffer, else the packet counts as cut off there. */
SEC("xdp.frags")
int xdp_sieve_frags(struct xdp_md* ctx) {
    return sieve_filter(ctx, bpf_xdp_get_buff_len(ctx));
}

/*
 * Never called and never loaded: it makes this object's BTF describe the image's lines as it does the maps'
 * values, so that a test can hold this compiler's layout of them against the controller's.
 */
__noinline int sieve_layout(const struct sieve_lookup* lookup, const struct sieve_probes* probes,
                            const struct sieve_file* file, const struct sieve_witness* witness) {
    return lookup && probes && file && witness;
}

char LICENSE[] SEC("license") = "GPL";
