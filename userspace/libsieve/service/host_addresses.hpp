// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The addresses that this host lives by: whoever drops one of them may cut the host off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::service {

struct HostAddress {
    uint128 address = 0;
    std::string what; // for a message: "the default gateway of eth0"
    // Of an administrator's session: the interface with the address that the session is to. Empty: this is no
    // session, or the interface is not known.
    std::string session_through{};
};

// An address of this host.
struct OwnAddress {
    uint128 address = 0;
    std::string interface {};
};

// A seam: the host's own, or a test's.
class HostAddresses {
  public:
    virtual ~HostAddresses() = default;
    [[nodiscard]] virtual Result<std::vector<HostAddress>> read() = 0;
};

// This host's own addresses, its gateways, its resolvers, and the peers of its administrators: of TCP
// connections to port 22 here, and of the session that this process runs in (SSH_CONNECTION). Loopback
// addresses never come in from outside and are left out.
class RealHostAddresses final : public HostAddresses {
  public:
    Result<std::vector<HostAddress>> read() override;
};

// The parts that read text, for tests. What cannot be understood is left out.

// Gateways in /proc/net/route and /proc/net/ipv6_route.
[[nodiscard]] std::vector<HostAddress> gateways_of_ipv4_routes(std::string_view text);
[[nodiscard]] std::vector<HostAddress> gateways_of_ipv6_routes(std::string_view text);
// `nameserver` lines of resolv.conf(5).
[[nodiscard]] std::vector<HostAddress> resolvers_of(std::string_view text);
// Peers of established connections to local port 22 in /proc/net/tcp and /proc/net/tcp6.
[[nodiscard]] std::vector<HostAddress> administrators_of(std::string_view text,
                                                         const std::vector<OwnAddress>& own = {});

} // namespace sieve::service
