// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which of the flows that exist did this host, or a network behind it, begin? Their answers go on when a
// filter comes that lets only answers pass.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/kernel/hooks/flow_memory.hpp"
#include "libsieve/kernel/host/conntrack.hpp"
#include "libsieve/kernel/host/sockets.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// What is known about this host.
struct KnownFlows {
    std::vector<Socket> tcp{}; // all that listen, and those of connections
    std::vector<Socket> udp{}; // connected
    std::vector<TrackedFlow> tracked{};
    std::vector<uint128> own{}; // this host's addresses
};

// The key of the packets that this host sends in a flow, and how far the flow has come.
struct OwnFlow {
    sieve_key key{};
    FlowAge age = FlowAge::established;
};

// The flows through `interface` that this host began, or that a network behind it began: of TCP those that
// still carry data one way or the other, of other protocols of any age. Distinct.
//
// A connection counts as begun here if nobody listens on its local port. A tracked flow counts if its first
// packet came from this host, or from beyond another interface than its answers do; the key has the addresses
// that the outside sees. Tracking does not tell which end has sent its FIN, so a tracked connection counts as
// established until both have. `way_out` names the interface through which packets to an address leave.
[[nodiscard]] std::vector<OwnFlow> own_flows(const KnownFlows& known, const std::string& interface,
                                             const std::function<std::string(uint128)>& way_out);

// The same by asking the kernel.
[[nodiscard]] Result<std::vector<OwnFlow>> own_flows(const std::string& interface);

} // namespace sieve::kernel
