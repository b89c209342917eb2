// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The frames that the benchmark sends. Its programs rewrite the source addresses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sieve::bench {

inline constexpr std::size_t frame_bytes = 64;
using Frame = std::array<std::uint8_t, frame_bytes>;

inline constexpr std::size_t ipv4_checksum = 24; // offset of the header's checksum
inline constexpr std::size_t ipv4_source = 26;   // offset of the source address

[[nodiscard]] Frame ipv4_tcp_frame();
[[nodiscard]] Frame ipv6_udp_frame(); // from a v4-mapped address, so that a set of IPv4 addresses can match

// The sum of the 16-bit words of an IPv4 header but its checksum and source address, for bench_checksum().
[[nodiscard]] std::uint32_t header_sum(const Frame& frame);

} // namespace sieve::bench
