// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the kernel knows about this host's place in its networks, for the network namespace of the calling
// thread: addresses, gateways, routes, TCP sessions. By netlink.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/kernel/host/sockets.hpp"
#include "libsieve/keys/address_range.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// An address, and the interface that has it or behind which it is.
struct PlacedAddress {
    uint128 address = 0;
    std::string interface {};
    bool leased = false; // of this host's: it ends unless a server of DHCP or DHCPv6 renews it

    [[nodiscard]] friend bool operator==(const PlacedAddress&, const PlacedAddress&) = default;
};

// This host's addresses, except those of loopback interfaces.
[[nodiscard]] Result<std::vector<PlacedAddress>> own_addresses();

// The next hops of all routes, in all tables, and the neighbours that are known as routers.
[[nodiscard]] Result<std::vector<PlacedAddress>> gateways();

// How packets to an address leave.
struct WayOut {
    std::string interface {};
    std::optional<uint128> source{}; // of ours, if the kernel names one
};
// Nothing if no route leads there.
[[nodiscard]] std::optional<WayOut> way_to(uint128 address);

struct TcpSession {
    uint128 ours = 0;
    uint128 theirs = 0;
    std::uint16_t our_port = 0;
    std::uint16_t their_port = 0;

    [[nodiscard]] friend bool operator==(const TcpSession&, const TcpSession&) = default;
};
// The TCP sockets that are established or listen, by sock_diag(7). A kernel without that is asked by
// /proc/net/tcp instead.
[[nodiscard]] std::vector<Socket> tcp_sockets();
// The established sessions of these ports of ours.
[[nodiscard]] std::vector<TcpSession> sessions_among(const std::vector<Socket>& sockets,
                                                     const std::set<std::uint16_t>& our_ports);
// The ports on which processes of this name listen.
[[nodiscard]] std::set<std::uint16_t> ports_of(std::string_view process, const std::vector<Socket>& sockets);

} // namespace sieve::kernel
