// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Measures whole packets through the real program, from parsing to the verdict, inside the kernel and over a
// veth pair.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/bench/setup/summary.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

struct PacketOptions {
    std::uint32_t rounds = 15;
    double milliseconds = 60;       // of a measurement inside the kernel, warming of the caches included
    double link_milliseconds = 300; // how long a measurement on the link lasts
};

// One program on one kind of packets.
struct PacketRow {
    std::string family; // "IPv4/TCP" or "IPv6/UDP", followed by ", tc" at tc's hook
    std::string program;
    Traffic traffic = Traffic::non_members;
    Rounds nanoseconds;
};

// Nanoseconds per packet in BPF_PROG_TEST_RUN. Each row includes the cost of giving the packet a new address,
// which the row "empty" shows.
struct PacketTable {
    std::uint64_t keys = 0;
    std::vector<PacketRow> rows;
};

// The image must be one of member_keys().
Result<PacketTable> bench_packets(const Image& image, const PacketOptions& options, const Progress& progress);

// Nanoseconds per packet that a program at XDP takes for IPv4 packets from the addresses that `object` draws,
// the giving of these addresses included.
[[nodiscard]] Result<double> time_ipv4_packets(const BenchObject& object, int program, double milliseconds);

// Where the packets come from and where they are received.
enum class Generator {
    frames,       // XDP frames from BPF_PROG_TEST_RUN; sender and receiver share a processor
    frames_apart, // the same, received by a kernel thread on another processor
    sockets,      // sendmmsg on a packet socket, as other programs send
};
[[nodiscard]] const char* generator_name(Generator generator);

// What one program handles, in packets per second.
struct LinkResult {
    std::string program;
    Rounds rate;
};

// The first result is that of a program which is nothing but XDP_DROP. Our program drops non-members by the
// default, as an allowlist does, and drops members because they match, as a blocklist does.
struct LinkRow {
    Generator generator = Generator::frames;
    std::vector<LinkResult> results;
    // Packets sent, as a multiple of what XDP_DROP handled. Above 1, the receiver is the limit.
    double offered = 0;
};

struct LinkTable {
    std::uint64_t keys = 0;
    std::vector<LinkRow> rows;
    std::vector<std::string> skipped;
};

// Makes a veth pair in a private network namespace, which is gone when the call returns.
Result<LinkTable> bench_link(const Image& image, const PacketOptions& options, const Progress& progress);

} // namespace sieve::bench
