// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The smallest real packet that carries a flow key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sieve/key.h>

namespace sieve::packets {

// True if a key's address is IPv4.
[[nodiscard]] bool is_v4_mapped(std::uint64_t upper, std::uint64_t lower);

// Writes packets, always into the same buffer.
class Carrier {
  public:
    // The packet whose `fields` have the key's values; valid until the next call. The packet is IPv4 if all
    // selected addresses are v4-mapped, otherwise IPv6 (which can also carry a mapped address). It is UDP
    // unless the key says otherwise. Empty if no packet can carry the key: the key has ports but its protocol
    // has none, or its protocol number is that of an IPv6 extension header and the packet is IPv6.
    std::span<const std::uint8_t> carry(const sieve_key& key, std::uint32_t fields);

  private:
    static constexpr std::size_t longest = 14 + 40 + 8; // Ethernet, IPv6, the first bytes of the layer above

    std::array<std::uint8_t, longest> bytes_{};
};

} // namespace sieve::packets
