// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The TCP and UDP sockets of the calling thread's network namespace.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "libsieve/keys/address_range.hpp"

namespace sieve::kernel {

// A socket's state has TCP's numbers (TCP_ESTABLISHED and so on). A connected UDP socket counts as
// established.
struct Socket {
    std::uint8_t state = 0;
    uint128 ours = 0;
    uint128 theirs = 0;
    std::uint16_t our_port = 0;
    std::uint16_t their_port = 0;
    std::uint32_t inode = 0;

    [[nodiscard]] friend bool operator==(const Socket&, const Socket&) = default;
};

// The sockets of a protocol (IPPROTO_TCP or IPPROTO_UDP), of both families, in these states (bit s: state s).
// By sock_diag(7); a kernel without that is asked by /proc/net instead. Sockets that come or go meanwhile may
// be missing.
[[nodiscard]] std::vector<Socket> sockets(std::uint8_t protocol, std::uint32_t states);

// The sockets in /proc/net/tcp, tcp6, udp or udp6. Lines that cannot be understood are left out.
[[nodiscard]] std::vector<Socket> sockets_in(std::string_view text);

} // namespace sieve::kernel
