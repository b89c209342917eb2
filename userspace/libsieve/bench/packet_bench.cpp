// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/packet_bench.hpp"

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <sieve/policy.h>

#include "bpf/bench/bench_control.h"
#include "libsieve/bench/setup/frames.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "sieve_bench.skel.h"

namespace sieve::bench {

namespace {

constexpr std::uint32_t trial = 10'000; // packets; a trial run tells how many a measurement takes

struct Tested {
    std::string name;
    int program = -1;
    bool has_set = false;
    bool ipv4_only = false;
    bool at_tc = false;
};

// Frames of one sort, and the bench's program that hands them to the program under test.
struct Family {
    const char* name;
    int program;
    Frame frame;
    bool ipv4;
    bool at_tc;
};

std::vector<Family> families_of(const BenchObject& object) {
    const auto& programs = object.skeleton().progs;
    return {
        {"IPv4/TCP", bpf_program__fd(programs.bench_packet_ipv4), ipv4_tcp_frame(), true, false},
        {"IPv6/UDP", bpf_program__fd(programs.bench_packet_ipv6), ipv6_udp_frame(), false, false},
        {"IPv4/TCP, tc", bpf_program__fd(programs.bench_tc_packet_ipv4), ipv4_tcp_frame(), true, true},
        {"IPv6/UDP, tc", bpf_program__fd(programs.bench_tc_packet_ipv6), ipv6_udp_frame(), false, true},
    };
}

// Every combination that makes sense: members only where there is a set, each program at its own hook.
std::vector<PacketRow> rows_of(std::span<const Family> families, std::span<const Tested> tested) {
    std::vector<PacketRow> rows;
    for (const Family& family : families)
        for (const Tested& one : tested)
            for (const Traffic traffic : {Traffic::non_members, Traffic::members, Traffic::half})
                if ((one.has_set || traffic == Traffic::non_members) && (family.ipv4 || !one.ipv4_only) &&
                    family.at_tc == one.at_tc)
                    rows.push_back(
                        {.family = family.name, .program = one.name, .traffic = traffic, .nanoseconds = {}});
    return rows;
}

// Nanoseconds per packet of a program, from one measurement.
Result<double> time_program(const BenchObject& object, const Family& family, int program,
                            double milliseconds) {
    const auto& maps = object.skeleton().maps;
    constexpr std::uint32_t zero = 0;
    if (bpf_map_update_elem(bpf_map__fd(family.at_tc ? maps.bench_tested_tc : maps.bench_tested), &zero,
                            &program, BPF_ANY) != 0)
        return kernel::refusal("putting a program under test", errno);
    SIEVE_ASSIGN(const double first, run_program(family.program, family.frame, trial));
    const auto repeat =
        static_cast<std::uint32_t>(std::clamp(milliseconds * 1e6 / std::max(first, 1.0), 1000.0, 1e7));
    return run_program(family.program, family.frame, repeat);
}

// Nanoseconds per packet of a row, from one measurement.
Result<double> measure(const BenchObject& object, const PacketRow& row, std::span<const Family> families,
                       std::span<const Tested> tested, std::uint64_t keys, const PacketOptions& options) {
    const Family& family =
        *std::ranges::find_if(families, [&row](const Family& each) { return row.family == each.name; });
    const Tested& one = *std::ranges::find_if(
        tested, [&](const Tested& each) { return row.program == each.name && family.at_tc == each.at_tc; });
    object.draw(row.traffic, keys);
    return time_program(object, family, one.program, options.milliseconds);
}

} // namespace

Result<double> time_ipv4_packets(const BenchObject& object, int program, double milliseconds) {
    return time_program(object, families_of(object).front(), program, milliseconds);
}

Result<PacketTable> bench_packets(const Image& image, const PacketOptions& options,
                                  const Progress& progress) {
    PacketTable table{.keys = image.file().keys, .rows = {}};
    SIEVE_ASSIGN(const kernel::Scratch idle, kernel::Scratch::load(false));
    SIEVE_ASSIGN(const kernel::Scratch filtering, kernel::Scratch::load(false));
    SIEVE_ASSIGN(const kernel::FilterMap map, kernel::FilterMap::create(image, "bench"));
    SIEVE_ASSIGN(const BenchObject object,
                 BenchObject::load(BenchSizes::without_peers(image.lookup().buckets, map.fd())));
    SIEVE_ASSIGN(const kernel::Scratch tc_idle, kernel::Scratch::load(false, kernel::HookPoint::egress));
    SIEVE_ASSIGN(const kernel::Scratch tc_filtering, kernel::Scratch::load(false, kernel::HookPoint::egress));
    for (const kernel::Scratch* scratch : {&filtering, &tc_filtering})
        SIEVE_TRY(scratch->table().replace(
            {.default_action = SIEVE_ACTION_PASS,
             .sets = {{.name = "bench", .action = SIEVE_ACTION_DROP, .map_fd = map.fd()}}}));

    const auto& programs = object.skeleton().progs;
    const Tested tested[] = {
        {.name = "empty", .program = bpf_program__fd(programs.bench_pass)},
        {.name = "XDP_DROP", .program = bpf_program__fd(programs.bench_drop)},
        {.name = "floor", .program = bpf_program__fd(programs.bench_floor), .ipv4_only = true},
        {.name = "xdp-sieve, no set", .program = idle.object().program_fd()},
        {.name = "xdp-sieve, one set", .program = filtering.object().program_fd(), .has_set = true},
        {.name = "empty", .program = bpf_program__fd(programs.bench_tc_pass), .at_tc = true},
        {.name = "xdp-sieve, no set", .program = tc_idle.object().program_fd(), .at_tc = true},
        {.name = "xdp-sieve, one set",
         .program = tc_filtering.object().program_fd(),
         .has_set = true,
         .at_tc = true},
    };
    const std::vector<Family> families = families_of(object);
    table.rows = rows_of(families, tested);
    for (std::uint32_t round = 0; round < options.rounds; round++) {
        for (PacketRow& row : table.rows) {
            SIEVE_ASSIGN(const double nanoseconds,
                         measure(object, row, families, tested, table.keys, options));
            row.nanoseconds.push_back(nanoseconds);
        }
        progress("packets", (round + 1.0) / options.rounds);
    }
    return table;
}

} // namespace sieve::bench
