/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The programs of `sieve-bench --replies`: does a packet answer a flow of this host? The flow memory, an
 * LRU hash map of the kernel, and the kernel's connection tracking are asked, all by the same tuple.
 *
 * reply_bench_in and reply_bench_out give a frame a new source address and pass it to the program under test.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../flows.h"
#include "reply_control.h"

char LICENSE[] SEC("license") = "GPL";

struct reply_control reply_control SEC(".data.replies");

static __always_inline const struct sieve_flow_where* sieve_flow_where(void) {
    return &reply_control.flows;
}

#define REPLY_BENCH_TESTED(name)                                                                             \
    struct {                                                                                                 \
        __uint(type, BPF_MAP_TYPE_PROG_ARRAY);                                                               \
        __uint(max_entries, 1);                                                                              \
        __type(key, __u32);                                                                                  \
        __type(value, __u32);                                                                                \
    } name SEC(".maps")

/* An array holds programs of one type. */
REPLY_BENCH_TESTED(reply_bench_tested);
REPLY_BENCH_TESTED(reply_bench_tested_tc);

#define REPLY_BENCH_LRU(name)                                                                                \
    struct {                                                                                                 \
        __uint(type, BPF_MAP_TYPE_LRU_HASH);                                                                 \
        __uint(max_entries, 1);                                                                              \
        __type(key, struct sieve_key);                                                                       \
        __type(value, __u64);                                                                                \
    } name SEC(".maps")

/* From a flow's key to when it expires, in units: of flows that are answered, that go on, that begin. */
REPLY_BENCH_LRU(reply_bench_answered);
REPLY_BENCH_LRU(reply_bench_kept);
REPLY_BENCH_LRU(reply_bench_begun);

struct reply_bench_frame {
    struct ethhdr ethernet;
    struct iphdr ip;
    __be16 sport;
    __be16 dport;
} __attribute__((packed));

static __always_inline __u64 reply_bench_now(void) {
    return bpf_ktime_get_coarse_ns() >> SIEVE_FLOW_CLOCK_SHIFT;
}

/* The clock is read first. Reading it waits for everything before, so that each packet pays for its own cache
 * misses. */
static __always_inline int reply_bench_readdress(void* data, void* end) {
    struct reply_bench_frame* frame = data;
    __u32 index;

    if ((void*)(frame + 1) > end) return 0;
    reply_control.fence = bpf_ktime_get_ns();
    index = reply_control.in_order
                ? reply_control.first + reply_control.state++ % reply_control.indices
                : bench_draw(&reply_control.state, reply_control.first, reply_control.indices);
    frame->ip.saddr = bpf_htonl(bench_address(index));
    return 1;
}

SEC("xdp") int reply_bench_in(struct xdp_md* ctx) {
    if (reply_bench_readdress((void*)(long)ctx->data, (void*)(long)ctx->data_end))
        bpf_tail_call(ctx, &reply_bench_tested, 0);
    return XDP_ABORTED;
}

SEC("tc") int reply_bench_out(struct __sk_buff* ctx) {
    if (reply_bench_readdress((void*)(long)ctx->data, (void*)(long)ctx->data_end))
        bpf_tail_call(ctx, &reply_bench_tested_tc, 0);
    return TC_ACT_SHOT;
}

/* The key of a packet; with `reverse`, of a packet that it answers. False if the frame is too short. */
static __always_inline int reply_bench_key(void* data, void* end, int reverse, struct sieve_key* key) {
    const struct reply_bench_frame* frame = data;
    __u32 from, to;
    __u16 sport, dport;

    if ((void*)(frame + 1) > end) return 0;
    from = bpf_ntohl(reverse ? frame->ip.daddr : frame->ip.saddr);
    to = bpf_ntohl(reverse ? frame->ip.saddr : frame->ip.daddr);
    sport = bpf_ntohs(reverse ? frame->dport : frame->sport);
    dport = bpf_ntohs(reverse ? frame->sport : frame->dport);
    key->word[0] = key->word[2] = 0;
    key->word[1] = sieve_v4_mapped(from);
    key->word[3] = sieve_v4_mapped(to);
    key->word[4] = sieve_transport_word(sport, dport, frame->ip.protocol);
    return 1;
}

/* A key that the packet answers, in an XDP program. */
#define REPLY_BENCH_ANSWERED(ctx, key)                                                                       \
    reply_bench_key((void*)(long)(ctx)->data, (void*)(long)(ctx)->data_end, 1, key)

/* What all have in common: the key. */
SEC("xdp") int reply_bench_read(struct xdp_md* ctx) {
    struct sieve_key key;

    if (!REPLY_BENCH_ANSWERED(ctx, &key)) return XDP_ABORTED;
    reply_control.found = key.word[1] ^ key.word[3] ^ key.word[4];
    return XDP_DROP;
}

SEC("xdp") int reply_bench_memory(struct xdp_md* ctx) {
    struct sieve_key key;

    if (!REPLY_BENCH_ANSWERED(ctx, &key)) return XDP_ABORTED;
    return sieve_flow_find(&key) ? XDP_PASS : XDP_DROP;
}

SEC("xdp") int reply_bench_ask_lru(struct xdp_md* ctx) {
    struct sieve_key key;
    const __u64* until;

    if (!REPLY_BENCH_ANSWERED(ctx, &key)) return XDP_ABORTED;
    until = bpf_map_lookup_elem(&reply_bench_answered, &key);
    return until && *until > reply_bench_now() ? XDP_PASS : XDP_DROP;
}

/* Notes a flow in an LRU hash map, and writes only if the time has changed. */
static __always_inline void reply_bench_note_lru(struct __sk_buff* ctx, void* map) {
    const __u64 until = reply_bench_now() + SIEVE_FLOW_TCP_ESTABLISHED;
    struct sieve_key key;
    __u64* present;

    if (!reply_bench_key((void*)(long)ctx->data, (void*)(long)ctx->data_end, 0, &key)) return;
    present = bpf_map_lookup_elem(map, &key);
    if (!present)
        bpf_map_update_elem(map, &key, &until, BPF_ANY);
    else if (*present != until)
        *present = until;
}

SEC("tc") int reply_bench_renew_lru(struct __sk_buff* ctx) {
    reply_bench_note_lru(ctx, &reply_bench_kept);
    return TC_ACT_UNSPEC;
}

SEC("tc") int reply_bench_begin_lru(struct __sk_buff* ctx) {
    reply_bench_note_lru(ctx, &reply_bench_begun);
    return TC_ACT_UNSPEC;
}

SEC("tc") int reply_bench_nothing(struct __sk_buff* ctx) {
    (void)ctx;
    return TC_ACT_UNSPEC;
}

/* --- connection tracking -----------------------------------------------------------------------------------
 */

struct nf_conn {
    unsigned long status;
} __attribute__((preserve_access_index));
struct nf_conn___init {
    unsigned long status;
} __attribute__((preserve_access_index));
struct bpf_ct_opts {
    __s32 netns_id;
    __s32 error;
    __u8 l4proto;
    __u8 dir;
    __u8 reserved[2];
};

#define REPLY_BENCH_ANSWERS 1 /* IP_CT_DIR_REPLY */
#define REPLY_BENCH_LASTS 6   /* IPS_SEEN_REPLY | IPS_ASSURED */
#define REPLY_BENCH_MILLISECONDS 3600000

extern struct nf_conn* bpf_xdp_ct_lookup(struct xdp_md*, struct bpf_sock_tuple*, __u32, struct bpf_ct_opts*,
                                         __u32)
__ksym __weak;
extern struct nf_conn___init* bpf_xdp_ct_alloc(struct xdp_md*, struct bpf_sock_tuple*, __u32,
                                               struct bpf_ct_opts*, __u32)
__ksym __weak;
extern struct nf_conn* bpf_ct_insert_entry(struct nf_conn___init*) __ksym __weak;
extern void bpf_ct_set_timeout(struct nf_conn___init*, __u32) __ksym __weak;
extern int bpf_ct_set_status(const struct nf_conn___init*, __u32)
__ksym __weak;
extern void bpf_ct_release(struct nf_conn*) __ksym __weak;

static __always_inline int reply_bench_tuple(struct xdp_md* ctx, struct bpf_sock_tuple* tuple) {
    const struct reply_bench_frame* frame = (void*)(long)ctx->data;

    if ((void*)(frame + 1) > (void*)(long)ctx->data_end) return 0;
    tuple->ipv4.saddr = frame->ip.saddr;
    tuple->ipv4.daddr = frame->ip.daddr;
    tuple->ipv4.sport = frame->sport;
    tuple->ipv4.dport = frame->dport;
    return 1;
}

SEC("xdp") int reply_bench_conntrack(struct xdp_md* ctx) {
    struct bpf_ct_opts options = {.netns_id = -1, .l4proto = IPPROTO_TCP};
    struct bpf_sock_tuple tuple = {};
    struct nf_conn* found;
    int answers;

    if (!reply_bench_tuple(ctx, &tuple)) return XDP_ABORTED;
    found = bpf_xdp_ct_lookup(ctx, &tuple, sizeof(tuple.ipv4), &options, sizeof(options));
    if (!found) return XDP_DROP;
    answers = options.dir == REPLY_BENCH_ANSWERS;
    bpf_ct_release(found);
    return answers ? XDP_PASS : XDP_DROP;
}

/* Makes an entry for the flow that the frame would answer if it were from the next address; counts those
 * made. */
SEC("xdp") int reply_bench_track(struct xdp_md* ctx) {
    struct bpf_ct_opts options = {.netns_id = -1, .l4proto = IPPROTO_TCP};
    struct bpf_sock_tuple answer = {}, tuple = {};
    struct nf_conn___init* made;
    struct nf_conn* inserted;

    if (!reply_bench_tuple(ctx, &answer)) return XDP_ABORTED;
    tuple.ipv4.saddr = answer.ipv4.daddr;
    tuple.ipv4.daddr = bpf_htonl(bench_address((__u32)reply_control.state++));
    tuple.ipv4.sport = answer.ipv4.dport;
    tuple.ipv4.dport = answer.ipv4.sport;
    made = bpf_xdp_ct_alloc(ctx, &tuple, sizeof(tuple.ipv4), &options, sizeof(options));
    if (!made) return XDP_DROP;
    bpf_ct_set_timeout(made, REPLY_BENCH_MILLISECONDS);
    bpf_ct_set_status(made, REPLY_BENCH_LASTS);
    inserted = bpf_ct_insert_entry(made);
    if (!inserted) return XDP_DROP;
    reply_control.found++;
    bpf_ct_release(inserted);
    return XDP_DROP;
}
