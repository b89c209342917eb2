// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/reply_bench.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <utility>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <linux/pkt_cls.h>
#include <sieve/flow.h>
#include <sieve/policy.h>
#include <sieve/ports.h>

#include "bpf/bench/reply_control.h"
#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/bench/setup/frames.hpp"
#include "libsieve/bench/setup/private_network.hpp"
#include "libsieve/kernel/hooks/flow_memory.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "reply_bench.skel.h"
#include "sieve_note.skel.h"

namespace sieve::bench {

namespace {

using kernel::FlowMemory;

constexpr std::uint32_t trial = 10'000; // packets; a trial run tells how many a measurement takes
constexpr std::size_t tcp_flags = 47;   // offset in the frame
constexpr std::uint8_t ack = 0x10;
constexpr std::uint64_t lru_places = 2; // for a flow: when it is full, it evicts early

// The tuple of ipv4_tcp_frame(), whose source is drawn.
constexpr std::uint32_t frame_target = 0xc6336402;
constexpr std::uint16_t frame_sport = 40000, frame_dport = 80;

struct Destroy {
    void operator()(reply_bench_bpf* skeleton) const { reply_bench_bpf::destroy(skeleton); }
    void operator()(sieve_note_bpf* skeleton) const { sieve_note_bpf::destroy(skeleton); }
};
using Programs = std::unique_ptr<reply_bench_bpf, Destroy>;
using Note = std::unique_ptr<sieve_note_bpf, Destroy>;

// Whether the kernel, or its module of connection tracking, lets BPF programs look up connections.
bool kernel_tracks() {
    constexpr const char* function = "bpf_xdp_ct_lookup";
    const std::unique_ptr<btf, decltype(&btf__free)> kernel(btf__load_vmlinux_btf(), &btf__free);
    if (!kernel) return false;
    if (btf__find_by_name_kind(kernel.get(), function, BTF_KIND_FUNC) >= 0) return true;
    const std::unique_ptr<btf, decltype(&btf__free)> module(
        btf__load_module_btf("nf_conntrack", kernel.get()), &btf__free);
    return module && btf__find_by_name_kind(module.get(), function, BTF_KIND_FUNC) >= 0;
}

Result<Programs> load_programs(std::uint64_t flows, bool tracked) {
    const kernel::LogCapture log;
    Programs skeleton(reply_bench_bpf::open());
    if (!skeleton) return kernel::refusal("opening the benchmark's programs", errno);
    for (bpf_map* const map : {skeleton->maps.reply_bench_answered, skeleton->maps.reply_bench_kept,
                               skeleton->maps.reply_bench_begun})
        bpf_map__set_max_entries(map, static_cast<std::uint32_t>(flows * lru_places));
    for (bpf_program* const program :
         {skeleton->progs.reply_bench_conntrack, skeleton->progs.reply_bench_track})
        bpf_program__set_autoload(program, tracked);
    if (const int error = reply_bench_bpf::load(skeleton.get()); error != 0) {
        auto refused = kernel::refusal("loading the benchmark's programs", error);
        refused.value().message += "\n" + log.verifier_log(8);
        return refused;
    }
    skeleton->data_replies->reply_control.state = 1;
    return skeleton;
}

Result<Note> load_note() {
    Note skeleton(sieve_note_bpf::open());
    if (!skeleton) return kernel::refusal("opening the noting program", errno);
    bpf_program__set_type(skeleton->progs.sieve_note, BPF_PROG_TYPE_SCHED_CLS);
    skeleton->data_note->sieve_note_control.link = SIEVE_LINK_ETHERNET;
    if (const int error = sieve_note_bpf::load(skeleton.get()); error != 0)
        return kernel::refusal("loading the noting program", error);
    return skeleton;
}

// Makes a program with a map sieve_flows use the memory. `copy` is in its data.
Status use(const bpf_map* flows, sieve_flow_where& copy, const FlowMemory& memory) {
    copy = memory.where();
    constexpr std::uint32_t zero = 0;
    const int fd = memory.fd();
    if (bpf_map_update_elem(bpf_map__fd(flows), &zero, &fd, BPF_ANY) != 0)
        return kernel::refusal("giving the flow memory to a program", errno);
    return {};
}

// The flow that a packet from the address answers, and the flow of such a packet that leaves.
sieve_key answered(std::uint32_t address) {
    return {{0, sieve_v4_mapped(frame_target), 0, sieve_v4_mapped(address),
             sieve_transport_word(frame_dport, frame_sport, SIEVE_PORTED_TCP)}};
}
sieve_key leaving(std::uint32_t address) {
    return {{0, sieve_v4_mapped(address), 0, sieve_v4_mapped(frame_target),
             sieve_transport_word(frame_sport, frame_dport, SIEVE_PORTED_TCP)}};
}
using KeyOf = sieve_key (*)(std::uint32_t);

Result<FlowMemory> filled_memory(std::uint64_t flows, KeyOf key) {
    SIEVE_ASSIGN(FlowMemory memory, FlowMemory::create(flows));
    for (std::uint64_t i = 0; i < flows; i++)
        // A refused one is measured as it is in service.
        (void)memory.note(key(bench_address(static_cast<std::uint32_t>(i))), kernel::FlowAge::established);
    return memory;
}

Status fill_lru(const bpf_map* map, std::uint64_t flows, KeyOf key) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const std::uint64_t until =
        ((static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U) >> SIEVE_FLOW_CLOCK_SHIFT) +
        SIEVE_FLOW_TCP_ESTABLISHED;
    for (std::uint64_t i = 0; i < flows; i++) {
        const sieve_key of = key(bench_address(static_cast<std::uint32_t>(i)));
        if (bpf_map_update_elem(bpf_map__fd(map), &of, &until, BPF_ANY) != 0)
            return kernel::refusal("filling an LRU hash map", errno);
    }
    return {};
}

struct Contender {
    ReplyRow row;
    int program = -1;
};

class Bench {
  public:
    Bench(const ReplyOptions& options, ReplyTable& table) : options_(options), table_(table) {}

    Status run(const Progress& progress) {
        table_.flows = options_.flows;
        const bool tracked = kernel_tracks();
        SIEVE_ASSIGN(programs_, load_programs(options_.flows, tracked));
        SIEVE_ASSIGN(const FlowMemory answered_memory, filled_memory(options_.flows, answered));
        SIEVE_ASSIGN(const FlowMemory kept_memory, filled_memory(options_.flows, leaving));
        SIEVE_ASSIGN(const FlowMemory begun_memory, filled_memory(options_.flows, leaving));
        SIEVE_TRY(
            use(programs_->maps.sieve_flows, programs_->data_replies->reply_control.flows, answered_memory));
        SIEVE_TRY(fill_lru(programs_->maps.reply_bench_answered, options_.flows, answered));
        SIEVE_TRY(fill_lru(programs_->maps.reply_bench_kept, options_.flows, leaving));
        SIEVE_TRY(fill_lru(programs_->maps.reply_bench_begun, options_.flows, leaving));
        table_.memory_bytes = answered_memory.facts().bytes;
        table_.lru_bytes = map_bytes(bpf_map__fd(programs_->maps.reply_bench_answered));
        SIEVE_ASSIGN(const Note idle, load_note());
        SIEVE_ASSIGN(const Note keeping, load_note());
        SIEVE_ASSIGN(const Note beginning, load_note());
        SIEVE_TRY(use(keeping->maps.sieve_flows, keeping->data_note->sieve_note_control.flows, kept_memory));
        SIEVE_TRY(
            use(beginning->maps.sieve_flows, beginning->data_note->sieve_note_control.flows, begun_memory));

        const auto& progs = programs_->progs;
        const std::size_t read = add("the key alone", progs.reply_bench_read, ReplyTraffic::dropped);
        add_both("flow memory", progs.reply_bench_memory, read);
        add_both("LRU hash map", progs.reply_bench_ask_lru, read);
        if (!tracked)
            table_.skipped.emplace_back("connection tracking: this kernel has no bpf_xdp_ct_lookup()");
        else if (const std::uint64_t made = track(); made < options_.flows)
            table_.skipped.push_back(fmt::format("connection tracking: it took {} of {} connections "
                                                 "(net.netfilter.nf_conntrack_max says how many it takes)",
                                                 made, options_.flows));
        else
            add_both("connection tracking", progs.reply_bench_conntrack, read);

        const auto whole = [&](sieve_action default_action, bool asks) -> Result<int> {
            SIEVE_ASSIGN(kernel::Scratch scratch, kernel::Scratch::load(false));
            kernel::WantedTable table;
            table.default_action = default_action;
            table.replies = asks ? SIEVE_ACTION_PASS : SIEVE_ACTION_DROP;
            if (asks) SIEVE_TRY(answered_memory.put_into(scratch.instance()));
            SIEVE_TRY(scratch.table().replace(table));
            const int program = scratch.object().program_fd();
            whole_.push_back(std::move(scratch));
            return program;
        };
        SIEVE_ASSIGN(const int drops, whole(SIEVE_ACTION_DROP, false));
        SIEVE_ASSIGN(const int asks, whole(SIEVE_ACTION_DROP, true));
        SIEVE_ASSIGN(const int passes, whole(SIEVE_ACTION_PASS, false));
        SIEVE_ASSIGN(const int would_ask, whole(SIEVE_ACTION_PASS, true));
        const std::size_t off = add("xdp-sieve, replies off", drops, ReplyTraffic::dropped);
        add("xdp-sieve, replies on", asks, ReplyTraffic::dropped, off, options_.flows <= 100'000 ? 35 : 130);
        add("xdp-sieve, replies on", asks, ReplyTraffic::answers, off);
        const std::size_t passed = add("xdp-sieve, replies off", passes, ReplyTraffic::passed);
        add("xdp-sieve, replies on", would_ask, ReplyTraffic::passed, passed, 0);

        const double most_out = options_.flows <= 100'000 ? 60 : 200;
        const std::size_t parses =
            add("sieve_note, no memory", idle->progs.sieve_note, ReplyTraffic::goes_on);
        add("sieve_note", keeping->progs.sieve_note, ReplyTraffic::goes_on, parses, most_out);
        add("sieve_note", keeping->progs.sieve_note, ReplyTraffic::renews, parses);
        add("sieve_note", beginning->progs.sieve_note, ReplyTraffic::begins, parses, most_out);
        const std::size_t nothing = add("empty", progs.reply_bench_nothing, ReplyTraffic::goes_on);
        add("LRU hash map", progs.reply_bench_renew_lru, ReplyTraffic::goes_on, nothing);
        add("LRU hash map", progs.reply_bench_begin_lru, ReplyTraffic::begins, nothing);
        add("sieve_note, from parsing on", keeping->progs.sieve_note, ReplyTraffic::goes_on, nothing);

        kept_ = &kept_memory;
        for (std::uint32_t round = 0; round < options_.rounds; round++) {
            for (Contender& each : contenders_) {
                SIEVE_ASSIGN(const double nanoseconds, measure(each));
                each.row.nanoseconds.push_back(nanoseconds);
            }
            progress("packets", (round + 1.0) / options_.rounds);
        }
        for (Contender& each : contenders_) table_.rows.push_back(std::move(each.row));
        return {};
    }

  private:
    static constexpr std::size_t own_base = ~std::size_t{0};

    std::size_t add(const char* name, int program, ReplyTraffic traffic, std::size_t base = own_base,
                    std::optional<double> goal = {}) {
        const std::size_t number = contenders_.size();
        contenders_.push_back({.row = {.program = name,
                                       .traffic = traffic,
                                       .base = base == own_base ? number : base,
                                       .goal = goal,
                                       .nanoseconds = {}},
                               .program = program});
        return number;
    }
    std::size_t add(const char* name, const bpf_program* program, ReplyTraffic traffic,
                    std::size_t base = own_base, std::optional<double> goal = {}) {
        return add(name, bpf_program__fd(program), traffic, base, goal);
    }
    void add_both(const char* name, const bpf_program* program, std::size_t base) {
        add(name, program, ReplyTraffic::dropped, base);
        add(name, program, ReplyTraffic::answers, base);
    }

    // Makes the connections that packets answer; how many were made.
    std::uint64_t track() {
        reply_control& control = programs_->data_replies->reply_control;
        const std::uint64_t state = std::exchange(control.state, 0);
        control.found = 0;
        const auto done = run_program(bpf_program__fd(programs_->progs.reply_bench_track), ipv4_tcp_frame(),
                                      static_cast<std::uint32_t>(options_.flows), SIEVE_VERDICT_DROP);
        control.state = state;
        return done ? control.found : 0;
    }

    Result<double> measure(const Contender& each) {
        const ReplyTraffic traffic = each.row.traffic;
        const bool leaves = traffic >= ReplyTraffic::goes_on;
        const bool of_flow = traffic == ReplyTraffic::answers || traffic == ReplyTraffic::goes_on ||
                             traffic == ReplyTraffic::renews;
        const std::uint32_t wanted = leaves ? static_cast<std::uint32_t>(TC_ACT_UNSPEC)
                                     : traffic == ReplyTraffic::dropped ? std::uint32_t{SIEVE_VERDICT_DROP}
                                                                        : std::uint32_t{SIEVE_VERDICT_PASS};
        constexpr std::uint32_t zero = 0;
        const auto& maps = programs_->maps;
        const auto& progs = programs_->progs;
        if (bpf_map_update_elem(bpf_map__fd(leaves ? maps.reply_bench_tested_tc : maps.reply_bench_tested),
                                &zero, &each.program, BPF_ANY) != 0)
            return kernel::refusal("putting a program under test", errno);
        Frame frame = ipv4_tcp_frame(); // a SYN
        if (traffic == ReplyTraffic::goes_on || traffic == ReplyTraffic::renews) frame[tcp_flags] = ack;
        const int driver = bpf_program__fd(leaves ? progs.reply_bench_out : progs.reply_bench_in);
        reply_control& control = programs_->data_replies->reply_control;
        control.first = of_flow ? 0 : options_.flows;
        control.indices = of_flow ? options_.flows : (1ULL << 32) - options_.flows;
        const auto each_flow = [&] {
            control.in_order = 1;
            const std::uint64_t state = std::exchange(control.state, 0);
            const auto nanoseconds =
                run_program(driver, frame, static_cast<std::uint32_t>(options_.flows), wanted);
            control.state = state;
            control.in_order = 0;
            return nanoseconds;
        };
        if (traffic == ReplyTraffic::renews) {
            // Another unit of time.
            kept_->age(std::chrono::seconds(10));
            return each_flow();
        }
        if (traffic == ReplyTraffic::goes_on) SIEVE_TRY(each_flow().map([](double) {}));
        SIEVE_ASSIGN(const double first, run_program(driver, frame, trial, wanted));
        const auto repeat = static_cast<std::uint32_t>(
            std::clamp(options_.milliseconds * 1e6 / std::max(first, 1.0), 1000.0, 1e7));
        return run_program(driver, frame, repeat, wanted);
    }

    const ReplyOptions& options_;
    ReplyTable& table_;
    Programs programs_;
    std::vector<kernel::Scratch> whole_;
    const FlowMemory* kept_ = nullptr; // of flows that go on
    std::vector<Contender> contenders_;
};

} // namespace

const char* reply_traffic_name(ReplyTraffic traffic) {
    return std::array{
        "dropped", "answers", "passed", "goes_on", "renews", "begins"}[static_cast<std::size_t>(traffic)];
}

Rounds ReplyTable::more(const ReplyRow& row) const {
    return minus(row.nanoseconds, rows[row.base].nanoseconds);
}

Result<ReplyTable> bench_replies(const ReplyOptions& options, const Progress& progress) {
    ReplyTable table;
    SIEVE_TRY(in_private_network([&] { return Bench(options, table).run(progress); }));
    return table;
}

} // namespace sieve::bench
