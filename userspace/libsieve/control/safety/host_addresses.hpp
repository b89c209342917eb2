// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The addresses that this host lives by: whoever drops one of them may cut the host off.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

enum class HostRole : std::uint8_t {
    own,      // an address of this host
    gateway,  // the next hop of a route, or a neighbour that is a router
    resolver, // of names
    server,   // the service gets its lists from it
    lease,    // who leased this host an address, by DHCP
    session,  // the other end of an administrator's session
    listed,   // an operator listed it
};

struct HostAddress {
    uint128 address = 0;
    std::string what; // for a message: "a gateway of eth0"
    HostRole role = HostRole::gateway;
    // Of an own address, and of a session with one: the interface that has it. Of others: the interface
    // through which packets go there; empty if it is not known.
    std::string interface {};
    std::optional<uint128> ours{}; // our end, if it is known
    std::uint16_t our_port = 0;    // of a session
    std::uint16_t their_port = 0;  // likewise, and of a server
};

// A seam: the host's own, or a test's.
class HostAddresses {
  public:
    virtual ~HostAddresses() = default;
    [[nodiscard]] virtual Result<std::vector<HostAddress>> read() = 0;
    // Those of read() that are wanted, at the cost of these only.
    [[nodiscard]] virtual Result<std::vector<HostAddress>>
    read_some(const std::function<bool(uint128 address)>& wanted);
};

// This host's own addresses, its gateways, its resolvers, and the peers of its administrators: of established
// TCP sessions of the ports 22, those on which sshd listens, and `more_ports`, and of the session that this
// process runs in (SSH_CONNECTION). Loopback addresses never come in from outside and are left out.
//
// A host without /etc/resolv.conf has no resolvers. If the file is there and cannot be read, `warn` is told
// once that resolvers are not protected; without `warn`, that is an error. read() may be called from any
// thread, and so may `warn`.
class RealHostAddresses final : public HostAddresses {
  public:
    explicit RealHostAddresses(std::set<std::uint16_t> more_ports = {}, std::vector<HostAddress> more = {},
                               std::function<void(const std::string& text)> warn = {})
        : more_ports_(std::move(more_ports)), more_(std::move(more)), warn_(std::move(warn)) {}
    Result<std::vector<HostAddress>> read() override;
    Result<std::vector<HostAddress>> read_some(const std::function<bool(uint128 address)>& wanted) override;

    // From here on, these servers are among the addresses, in place of those before. From any thread.
    void depend_on(std::vector<HostAddress> servers);

  private:
    [[nodiscard]] Result<std::vector<HostAddress>> resolvers();
    [[nodiscard]] std::vector<HostAddress> servers();

    std::set<std::uint16_t> more_ports_;
    std::vector<HostAddress> more_;
    std::function<void(const std::string& text)> warn_;
    std::mutex mutex_;
    std::vector<HostAddress> servers_;
    std::string warned_; // the last warning; empty: the file could be read since
};

// Every address of the ranges, each with the role `listed` and this text. Error bad_input: more than
// most_listed addresses.
[[nodiscard]] Result<std::vector<HostAddress>> listed_addresses(const std::vector<AddressRange>& ranges,
                                                                const std::string& what);

// The addresses of a list of addresses, prefixes and ranges (feeds/feed.hpp), each with the role `listed`.
// Errors: those of read_feed(); bad_input for a list of more than most_listed addresses, since each of them
// is asked about.
[[nodiscard]] Result<std::vector<HostAddress>> read_protect_list(const std::string& path);
inline constexpr std::uint64_t most_listed = 65536;

// The parts that read text, for tests. What cannot be understood is left out.

// `nameserver` lines of resolv.conf(5).
[[nodiscard]] std::vector<HostAddress> resolvers_of(std::string_view text);
// The same of a file; none if there is no such file. Errors: those of read_small_file().
[[nodiscard]] Result<std::vector<HostAddress>> read_resolvers(const std::string& path);
// The value of SSH_CONNECTION: their address and port, ours and our port.
[[nodiscard]] std::optional<HostAddress> ssh_session_of(std::string_view text);

} // namespace sieve::control
