// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Measures xdp-sieve beside the packet filters that people run today, over a veth pair.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/bench/setup/summary.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

struct FirewallOptions {
    std::filesystem::path program; // this program; its `load` runs as a separate process
    std::uint32_t rounds = 7;
    std::uint32_t load_rounds = 3;           // loading that takes over 3 seconds is measured once
    double milliseconds = 150;               // how long a measurement sends packets
    std::uint32_t packets_a_call = 1U << 19; // frame_sender()'s
    std::uint64_t most_keys = 1'000'000;

    // Shows that everything works; the figures mean little.
    void shorten() {
        load_rounds = 1;
        milliseconds = 10;
        packets_a_call = 1U << 14;
    }
};

// How packets reach the receiver.
enum class Arrival {
    frames,  // as XDP frames, as from a driver: what needs a packet buffer makes one
    sockets, // from a packet socket, with a buffer that XDP programs cannot use and have copied
};
inline constexpr std::array arrivals = {Arrival::frames, Arrival::sockets};
[[nodiscard]] const char* arrival_name(Arrival arrival);

// One firewall on one sort of traffic. One number for each round.
struct FirewallResult {
    Rounds rate;        // packets per second that were judged
    Rounds nanoseconds; // of the receiver's processor, for each packet
    double passed = 0;  // share of the packets that reached the host's routes
};

struct FirewallRow {
    std::string name;
    Rounds load_seconds;     // empty for rows without a list
    std::uint64_t bytes = 0; // in the kernel
    std::string bytes_by;
    // By arrival, and by traffic: non-members, members.
    std::array<std::array<FirewallResult, 2>, arrivals.size()> results;
};

// The first row is a receiver without a filter, the second drops every packet with XDP_DROP. Rows hold the
// members of the image and drop them.
struct FirewallTable {
    std::uint64_t keys = 0;
    std::vector<FirewallRow> rows;
    std::vector<std::string> skipped; // what was left out, and why
};

// `image` is the set of the member_keys() of its size. Everything happens in a private network namespace,
// which is gone when the call returns. A kernel thread receives, so that its processor time is known. The
// packets are for no address of the host: what passes ends at the host's routes. Error: also a firewall that
// passes members or drops non-members.
Result<FirewallTable> bench_firewalls(const Image& image, const FirewallOptions& options,
                                      const Progress& progress);

} // namespace sieve::bench
