/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packet path: parse -> key -> sets in order -> verdict. See docs/ for the flow and sieve/policy.h for
 * how the controller steers it. Attach with `ip link set dev IFACE xdp obj xdp_sieve.bpf.o sec xdp` or
 * `xdp-sieve load`.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "lookup.h"
#include "maps.h"
#include "parse.h"

/* What the sets said of one packet. */
struct sieve_answer {
    __u32 action;   /* enum sieve_action; never COUNT */
    __u32 decision; /* as in struct sieve_trace */
    __u64 hits;     /* likewise */
};

/*
 * Asks the sets in order; counts every hit. A global function, so that the verifier checks it once for any
 * key instead of once for each way through the parser.
 */
__noinline int sieve_ask(const struct sieve_parsed* parsed, struct sieve_stats* stats,
                         struct sieve_answer* answer, __u64 bytes) {
    __u32 bank = sieve_control.active & (SIEVE_BANKS - 1);
    volatile struct sieve_policy* policy = &sieve_control.bank[bank];
    __u32 sets = policy->sets;
    __u32 i;

    if (!parsed || !stats || !answer) return 0; /* cannot happen, but the verifier asks */
    answer->action = policy->default_action;
    answer->decision = SIEVE_NO_SET;
    answer->hits = 0;
    for (i = 0; i < SIEVE_MAX_SETS && i < sets; i++) {
        __u32 slot = policy->entry[i].slot & (SIEVE_SLOTS - 1);
        __u32 place = bank * SIEVE_SLOTS + slot;
        void* filter = bpf_map_lookup_elem(&sieve_sets, &place);

        if (!filter || !sieve_lookup_key(filter, place, &parsed->key, parsed->have)) continue;
        stats->hit[slot].packets++;
        stats->hit[slot].bytes += bytes;
        answer->hits |= 1ULL << slot;
        if (policy->entry[i].action != SIEVE_ACTION_COUNT) {
            answer->action = policy->entry[i].action;
            answer->decision = slot;
            break;
        }
    }
    return 0;
}

static __always_inline int sieve_filter(struct xdp_md* ctx, __u64 bytes) {
    struct sieve_answer answer = {.action = SIEVE_ACTION_PASS, .decision = SIEVE_NOT_ASKED};
    struct sieve_parsed parsed;
    struct sieve_stats* stats;
    __u32 zero = 0;
    int verdict;

    stats = bpf_map_lookup_elem(&sieve_stats, &zero);
    if (!stats) return XDP_PASS; /* cannot happen: the array has one entry */

    sieve_parse(ctx, &parsed);
    stats->outcome[parsed.outcome & (SIEVE_OUTCOME_SLOTS - 1)]++;
    if (parsed.outcome < SIEVE_OUTCOME_FIRST_WITHOUT_KEY) sieve_ask(&parsed, stats, &answer, bytes);

    if (answer.action == SIEVE_ACTION_DROP) {
        stats->dropped.packets++;
        stats->dropped.bytes += bytes;
        verdict = XDP_DROP;
    } else {
        stats->passed.packets++;
        stats->passed.bytes += bytes;
        verdict = XDP_PASS;
    }

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
