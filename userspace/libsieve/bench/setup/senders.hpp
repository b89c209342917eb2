// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Send IPv4 packets with random source addresses over a veth pair.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

// Sends the addresses that BenchObject::draw() has chosen. Every packet is valid, its checksum included, so
// that the network stack takes it as far as its routes.
class Sender {
  public:
    virtual ~Sender() = default;
    // Sends until the time is over. Returns the number of packets.
    virtual Result<std::uint64_t> send_for(std::chrono::duration<double> time) = 0;
};

// XDP frames from BPF_PROG_TEST_RUN, as a driver hands them to a program, sent by VethPair::sender. Each call
// of the kernel sends so many, but first waits for grace periods, 4 ms and more: few packets a call make the
// sender slow.
[[nodiscard]] std::unique_ptr<Sender> frame_sender(const BenchObject& object,
                                                   std::uint32_t packets_a_call = 1U << 19);

// sendmmsg on a packet socket, as other programs send. Call it in the pair's network namespace.
Result<std::unique_ptr<Sender>> socket_sender(const BenchObject& object);

} // namespace sieve::bench
