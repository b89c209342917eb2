// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Whole packets through the real program: parse to verdict, inside the kernel and over a veth pair.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/bench/bench_object.hpp"
#include "libsieve/bench/summary.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/progress.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::bench {

struct PacketOptions {
    std::uint32_t rounds = 15;
    double milliseconds = 60;       // a measurement inside the kernel lasts; it includes warming the caches
    double link_milliseconds = 300; // a measurement on the link lasts
};

// One program on one kind of packets.
struct PacketRow {
    std::string family; // "IPv4/TCP", "IPv6/UDP", and the same with ", tc" behind
    std::string program;
    Traffic traffic = Traffic::non_members;
    Rounds nanoseconds;
};

// Nanoseconds a packet in BPF_PROG_TEST_RUN, with what it costs to give the packet a new address: that is in
// every row, and what "empty" shows.
struct PacketTable {
    std::uint64_t keys = 0;
    std::vector<PacketRow> rows;
};

// The image must be one of member_keys().
Result<PacketTable> bench_packets(const Image& image, const PacketOptions& options, const Progress& progress);

// Where the packets come from, and where they are received.
enum class Generator {
    frames,       // XDP frames from BPF_PROG_TEST_RUN; sender and receiver share a processor
    frames_apart, // the same, received by a kernel thread on another processor
    sockets,      // sendmmsg on a packet socket, as other programs send
};
[[nodiscard]] const char* generator_name(Generator generator);

// What one program takes, in packets a second.
struct LinkResult {
    std::string program;
    Rounds rate;
};

// The first result is that of a program which is nothing but XDP_DROP. Ours drops non-members by default, as
// an allowlist does, and members for their match, as a blocklist does.
struct LinkRow {
    Generator generator = Generator::frames;
    std::vector<LinkResult> results;
    // How many times as many were sent as XDP_DROP took: above 1 the receiver is the limit.
    double offered = 0;
};

struct LinkTable {
    std::uint64_t keys = 0;
    std::vector<LinkRow> rows;
    std::vector<std::string> skipped;
};

// Makes a veth pair in a network namespace that no one else sees and that ends with the call.
Result<LinkTable> bench_link(const Image& image, const PacketOptions& options, const Progress& progress);

} // namespace sieve::bench
