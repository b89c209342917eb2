// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which of the flows that exist did this host, or a network behind it, begin? Their answers go on when a
// filter comes that lets only answers pass.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/kernel/conntrack.hpp"
#include "libsieve/kernel/sockets.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::kernel {

// What is known about this host.
struct KnownFlows {
    std::vector<Socket> tcp{}; // established and listening
    std::vector<Socket> udp{}; // connected
    std::vector<TrackedFlow> tracked{};
    std::vector<uint128> own{}; // this host's addresses
};

// Keys of the packets that this host sends through `interface` in flows that it began, or that a network
// behind it began: of TCP established, of other protocols of any age. Distinct.
//
// A connection counts as begun here if nobody listens on its local port. A tracked flow counts if its first
// packet came from this host, or from beyond another interface than its answers do; the key has the addresses
// that the outside sees. `way_out` names the interface through which packets to an address leave.
[[nodiscard]] std::vector<sieve_key> own_flows(const KnownFlows& known, const std::string& interface,
                                               const std::function<std::string(uint128)>& way_out);

// The same by asking the kernel.
[[nodiscard]] Result<std::vector<sieve_key>> own_flows(const std::string& interface);

} // namespace sieve::kernel
