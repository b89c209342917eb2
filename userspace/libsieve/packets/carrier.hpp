// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The smallest real packet that carries a flow key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sieve/key.h>

namespace sieve::packets {

// True for an address of a key that is IPv4.
[[nodiscard]] bool is_v4_mapped(std::uint64_t upper, std::uint64_t lower);

// Writes packets into one buffer, over and over.
class Carrier {
  public:
    // The packet whose `fields` are the key's, valid until the next call. IPv4 if all selected addresses are
    // v4-mapped, else IPv6 (which can carry a mapped address beside another); UDP unless the key says
    // otherwise. Empty if no packet can carry the key: ports with a protocol that has none, or in IPv6 a
    // protocol number that is an extension header's.
    std::span<const std::uint8_t> carry(const sieve_key& key, std::uint32_t fields);

  private:
    static constexpr std::size_t longest = 14 + 40 + 8; // Ethernet, IPv6, the beginning of what is above

    std::array<std::uint8_t, longest> bytes_{};
};

} // namespace sieve::packets
