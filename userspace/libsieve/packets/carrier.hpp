// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The smallest real packet that carries a flow key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <sieve/key.h>

namespace sieve::packets {

// True if a key's address is IPv4.
[[nodiscard]] bool is_v4_mapped(std::uint64_t upper, std::uint64_t lower);

// Why no packet can carry a key, about its protocol; empty if a packet can.
[[nodiscard]] std::string_view obstacle(const sieve_key& key, std::uint32_t fields);

// Writes packets, always into the same buffer.
class Carrier {
  public:
    // The packet whose `fields` have the key's values; valid until the next call. The packet is IPv4 if all
    // selected addresses are v4-mapped, otherwise IPv6 (which can also carry a mapped address). It is UDP
    // unless the key says otherwise. Empty if there is an obstacle.
    std::span<const std::uint8_t> carry(const sieve_key& key, std::uint32_t fields);

  private:
    static constexpr std::size_t longest = 14 + 40 + 8; // Ethernet, IPv6, the first bytes of the layer above

    std::array<std::uint8_t, longest> bytes_{};
};

} // namespace sieve::packets
