/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The programs of `sieve-bench`.
 *
 * Programs named bench_KIND make random keys and look them up, many times in one run, so that the cost of
 * the run itself hardly counts. All share the loop, the key and the hash; only the lookup differs. The
 * filter's lookup is the packet path's own code, bpf/lookup.h, through the map-in-map.
 *
 * Programs named bench_packet_FAMILY give a frame a new source address and pass it to the program under
 * test. bench_send gives it a new address and the checksum that belongs to it, and sends it to an interface.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../hook_xdp.h"
#include "../lookup.h"
#include "../maps.h"
#include "../verify.h"
#include "bench_control.h"

char LICENSE[] SEC("license") = "GPL";

struct bench_control bench_control SEC(".data.bench");

/*
 * The floor: a map of which only one line is read. The controller uses the filter's own map for it. Two maps
 * of the same size can differ by more than the effect to be measured, because the physical pages of a map
 * decide how much of it fits into the processor's cache.
 */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
    __type(key, __u32);
    __type(value, struct sieve_line);
} bench_lines SEC(".maps");

/* The kernel's own sets of IPv4 addresses. The controller sizes them. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u8);
} bench_hash SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u8);
} bench_lru SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct bench_prefix);
    __type(value, __u8);
} bench_lpm SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct bench_prefix6);
    __type(value, __u8);
} bench_lpm6 SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct bench_question);
} bench_questions SEC(".maps");

#define BENCH_BLOOM_MAP(name)                                                                                \
    struct {                                                                                                 \
        __uint(type, BPF_MAP_TYPE_BLOOM_FILTER);                                                             \
        __uint(max_entries, 1);                                                                              \
        __type(value, __u32);                                                                                \
        __uint(map_extra, 1);                                                                                \
    } name SEC(".maps")

BENCH_BLOOM_MAP(bench_bloom_plain);
BENCH_BLOOM_MAP(bench_bloom_tuned);
BENCH_BLOOM_MAP(bench_bloom_equal);

/* --- lookups -----------------------------------------------------------------------------------------------
 */

struct bench_loop {
    __u64 state;
    __u64 found;
};

/* Hides the value from the compiler, as if it came from a packet. */
#define BENCH_OPAQUE(x) asm volatile("" : "+r"(x))

/*
 * Draws an address. If lookups must not overlap, the clock is read first. Reading it waits for everything
 * before, so that each lookup pays for its own cache misses, as a packet does.
 */
static __always_inline __u32 bench_next_address(struct bench_loop* loop) {
    if (bench_control.apart) bench_control.fence = bpf_ktime_get_ns();
    return bench_address(bench_draw(&loop->state, bench_control.first, bench_control.indices));
}

static __always_inline void bench_make_key(struct sieve_key* key, __u32 address) {
    __u64 upper = 0, lower = sieve_v4_mapped(address);

    BENCH_OPAQUE(upper);
    BENCH_OPAQUE(lower);
    key->word[0] = upper;
    key->word[1] = lower;
    key->word[2] = key->word[3] = key->word[4] = 0;
}

static __always_inline struct sieve_hash bench_hash_address(__u32 address) {
    struct sieve_key key;

    bench_make_key(&key, address);
    return sieve_hash_key(&key, bench_control.hash_key, SIEVE_FIELD_SRC);
}

/*
 * These are not XDP programs. For XDP programs BPF_PROG_TEST_RUN first waits for a grace period, during which
 * other processes evict the filter's lines from this processor's caches.
 */
#define BENCH_PROGRAM(name)                                                                                  \
    static long name##_step(__u32 i, struct bench_loop* loop);                                               \
    SEC("tc") int name(struct __sk_buff* ctx) {                                                              \
        struct bench_loop loop = {.state = bench_control.state, .found = 0};                                 \
                                                                                                             \
        (void)ctx;                                                                                           \
        bpf_loop(bench_control.lookups, name##_step, &loop, 0);                                              \
        bench_control.state = loop.state;                                                                    \
        bench_control.found += loop.found;                                                                   \
        return 0;                                                                                            \
    }                                                                                                        \
    static long name##_step(__u32 i __attribute__((unused)), struct bench_loop* loop)

BENCH_PROGRAM(bench_empty) {
    loop->found += i;
    return 0;
}

BENCH_PROGRAM(bench_key_hash) {
    struct sieve_hash hash = bench_hash_address(bench_next_address(loop));

    loop->found += hash.locate ^ hash.test;
    return 0;
}

BENCH_PROGRAM(bench_touch_one) {
    struct sieve_hash hash = bench_hash_address(bench_next_address(loop));
    __u32 at = sieve_reduce((__u32)hash.locate, bench_control.buckets);
    struct sieve_line* line = bpf_map_lookup_elem(&bench_lines, &at);

    if (line) loop->found += hash.test ^ line->word[0];
    return 0;
}

BENCH_PROGRAM(bench_touch_two) {
    struct sieve_hash hash = bench_hash_address(bench_next_address(loop));
    __u32 at = sieve_reduce((__u32)hash.locate, bench_control.buckets);
    __u32 other = sieve_reduce((__u32)(hash.locate >> 32), bench_control.buckets);
    struct sieve_line* line = bpf_map_lookup_elem(&bench_lines, &at);
    struct sieve_line* second = bpf_map_lookup_elem(&bench_lines, &other);

    if (line && second) loop->found += hash.test ^ line->word[0] ^ second->word[0];
    return 0;
}

/* The set may be at any index of the map-in-map. */
BENCH_PROGRAM(bench_filter) {
    __u32 address = bench_next_address(loop);
    __u32 index = bench_control.index;
    void* filter = bpf_map_lookup_elem(&sieve_sets, &index);
    struct sieve_key key;

    bench_make_key(&key, address);
    if (filter && sieve_lookup_key(filter, index, &key, SIEVE_FIELD_ADDRESSES)) loop->found++;
    return 0;
}

/* The same with verification: a match counts only if the exact set behind the filter has the key. */
BENCH_PROGRAM(bench_verified) {
    __u32 address = bench_next_address(loop);
    __u32 index = bench_control.index;
    void* filter = bpf_map_lookup_elem(&sieve_sets, &index);
    struct sieve_key key;

    bench_make_key(&key, address);
    if (filter && sieve_lookup_key(filter, index, &key, SIEVE_FIELD_ADDRESSES) &&
        sieve_ask_exact(&key, index))
        loop->found++;
    return 0;
}

/* Asks for the addresses of one index after the other, from `state` on, and counts the wrong answers. */
BENCH_PROGRAM(bench_wrong) {
    __u64 position = loop->state++;
    __u32 index = bench_control.index;
    void* filter = bpf_map_lookup_elem(&sieve_sets, &index);
    struct sieve_key key;

    bench_make_key(&key, bench_address((__u32)position));
    if (!filter || (sieve_lookup_key(filter, index, &key, SIEVE_FIELD_ADDRESSES) != 0) !=
                       (position < bench_control.members))
        loop->found++;
    return 0;
}

BENCH_PROGRAM(bench_hash_lookup) {
    __u32 address = bench_next_address(loop);

    if (bpf_map_lookup_elem(&bench_hash, &address)) loop->found++;
    return 0;
}

BENCH_PROGRAM(bench_lru_lookup) {
    __u32 address = bench_next_address(loop);

    if (bpf_map_lookup_elem(&bench_lru, &address)) loop->found++;
    return 0;
}

BENCH_PROGRAM(bench_lpm_lookup) {
    struct bench_prefix prefix = {.length = 32, .address = bpf_htonl(bench_next_address(loop))};

    if (bpf_map_lookup_elem(&bench_lpm, &prefix)) loop->found++;
    return 0;
}

#define BENCH_BLOOM_PROGRAM(name, map)                                                                       \
    BENCH_PROGRAM(name) {                                                                                    \
        __u32 address = bench_next_address(loop);                                                            \
                                                                                                             \
        if (!bpf_map_peek_elem(&map, &address)) loop->found++;                                               \
        return 0;                                                                                            \
    }

BENCH_BLOOM_PROGRAM(bench_bloom_plain_lookup, bench_bloom_plain)
BENCH_BLOOM_PROGRAM(bench_bloom_tuned_lookup, bench_bloom_tuned)
BENCH_BLOOM_PROGRAM(bench_bloom_equal_lookup, bench_bloom_equal)

/* --- lookups of prefix workloads ---------------------------------------------------------------------------
 */

/* The next question. Questions lie in order, so that the processor fetches them before they are needed. */
static __always_inline const struct bench_question* bench_next_question(struct bench_loop* loop) {
    __u32 index = bench_control.first + (loop->state++ & (bench_control.indices - 1));

    if (bench_control.apart) bench_control.fence = bpf_ktime_get_ns();
    return bpf_map_lookup_elem(&bench_questions, &index);
}

BENCH_PROGRAM(bench_ask_nothing) {
    const struct bench_question* question = bench_next_question(loop);

    if (question) loop->found += question->upper ^ question->lower;
    return 0;
}

BENCH_PROGRAM(bench_ask_filter) {
    const struct bench_question* question = bench_next_question(loop);
    __u32 index = bench_control.index;
    void* filter = bpf_map_lookup_elem(&sieve_sets, &index);
    struct sieve_key key = {};

    if (!question || !filter) return 0;
    key.word[0] = question->upper;
    key.word[1] = question->lower;
    if (sieve_lookup_key(filter, index, &key, SIEVE_FIELD_ADDRESSES)) loop->found++;
    return 0;
}

BENCH_PROGRAM(bench_ask_lpm) {
    const struct bench_question* question = bench_next_question(loop);
    struct bench_prefix prefix = {.length = 32};

    if (!question) return 0;
    prefix.address = bpf_htonl((__u32)question->lower);
    if (bpf_map_lookup_elem(&bench_lpm, &prefix)) loop->found++;
    return 0;
}

BENCH_PROGRAM(bench_ask_lpm6) {
    const struct bench_question* question = bench_next_question(loop);
    struct bench_prefix6 prefix = {.length = 128};

    if (!question) return 0;
    prefix.address[0] = bpf_htonl(question->upper >> 32);
    prefix.address[1] = bpf_htonl((__u32)question->upper);
    prefix.address[2] = bpf_htonl(question->lower >> 32);
    prefix.address[3] = bpf_htonl((__u32)question->lower);
    if (bpf_map_lookup_elem(&bench_lpm6, &prefix)) loop->found++;
    return 0;
}

/* --- packets -----------------------------------------------------------------------------------------------
 */

/* The program under test: xdp_sieve itself, as it is loaded in service, or one of the two below. */
struct {
    __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} bench_tested SEC(".maps");

/* The same for tc: an array holds programs of one type. */
struct {
    __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} bench_tested_tc SEC(".maps");

/* Writes a fresh random address to byte `offset` of the frame; false if the frame is too short. */
static __always_inline int bench_readdress(void* data, void* end, __u32 offset) {
    __be32* address = data + offset;

    if ((void*)(address + 1) > end) return 0;
    *address = bpf_htonl(
        bench_address(bench_draw(&bench_control.state, bench_control.first, bench_control.indices)));
    return 1;
}

/* In IPv6 the last four bytes: the frame's source is a v4-mapped address, so that one set serves both. */
#define BENCH_IPV4_SOURCE (sizeof(struct ethhdr) + __builtin_offsetof(struct iphdr, saddr))
#define BENCH_IPV6_SOURCE (sizeof(struct ethhdr) + __builtin_offsetof(struct ipv6hdr, saddr) + 12)

#define BENCH_READDRESS(ctx, offset)                                                                         \
    bench_readdress((void*)(long)(ctx)->data, (void*)(long)(ctx)->data_end, offset)

#define BENCH_PACKET_PROGRAMS(family, offset)                                                                \
    SEC("xdp") int bench_packet_##family(struct xdp_md* ctx) {                                               \
        if (BENCH_READDRESS(ctx, offset)) bpf_tail_call(ctx, &bench_tested, 0);                              \
        return XDP_ABORTED;                                                                                  \
    }                                                                                                        \
    SEC("tc") int bench_tc_packet_##family(struct __sk_buff* ctx) {                                          \
        if (BENCH_READDRESS(ctx, offset)) bpf_tail_call(ctx, &bench_tested_tc, 0);                           \
        return TC_ACT_SHOT;                                                                                  \
    }

BENCH_PACKET_PROGRAMS(ipv4, BENCH_IPV4_SOURCE)
BENCH_PACKET_PROGRAMS(ipv6, BENCH_IPV6_SOURCE)

/* A frame from an earlier run has that run's address and checksum, so both are written anew. */
SEC("xdp") int bench_send(struct xdp_md* ctx) {
    struct iphdr* header = (void*)(long)ctx->data + sizeof(struct ethhdr);
    __u32 source =
        bench_address(bench_draw(&bench_control.state, bench_control.first, bench_control.indices));

    if ((void*)(header + 1) > (void*)(long)ctx->data_end) return XDP_ABORTED;
    header->saddr = bpf_htonl(source);
    header->check = bpf_htons(bench_checksum(bench_control.header_sum, source));
    return bpf_redirect(bench_control.interface, 0);
}

/*
 * What any filter must do before it can drop: read the frame's source address. The floor also makes a key of
 * the address, hashes it and waits for one line. The branch keeps the verdict from preceding the line.
 */
static __always_inline const __be32* bench_source(struct xdp_md* ctx) {
    void* end = (void*)(long)ctx->data_end;
    const __be32* address = (void*)(long)ctx->data + BENCH_IPV4_SOURCE;

    return (void*)(address + 1) > end ? 0 : address;
}

SEC("xdp") int bench_read(struct xdp_md* ctx) {
    const __be32* address = bench_source(ctx);

    return address && *address ? XDP_DROP : XDP_PASS;
}

SEC("xdp") int bench_floor(struct xdp_md* ctx) {
    const __be32* address = bench_source(ctx);
    struct sieve_line* line;
    struct sieve_hash hash;
    __u32 at;

    if (!address) return XDP_PASS;
    hash = bench_hash_address(bpf_ntohl(*address));
    at = sieve_reduce((__u32)hash.locate, bench_control.buckets);
    line = bpf_map_lookup_elem(&bench_lines, &at);
    return line && (line->word[0] ^ hash.test) ? XDP_DROP : XDP_PASS;
}

SEC("xdp") int bench_pass(struct xdp_md* ctx) {
    (void)ctx;
    return XDP_PASS;
}

SEC("tc") int bench_tc_pass(struct __sk_buff* ctx) {
    (void)ctx;
    return TC_ACT_UNSPEC;
}

SEC("xdp") int bench_drop(struct xdp_md* ctx) {
    (void)ctx;
    return XDP_DROP;
}
