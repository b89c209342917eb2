// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Turns captures from other links than Ethernet (`tcpdump -i any`, tunnels, BSD loopback) into the frames
// that the XDP program would see if the same packets came over Ethernet.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sieve::packets {

class LinkLayer {
  public:
    // The link layer with this DLT_ number of pcap; empty if its packets are not understood.
    static std::optional<LinkLayer> of(int type);

    // The frame of a captured packet. On Ethernet this is the packet itself; otherwise it lies in this
    // object's memory and is valid until the next call. Empty if the packet is cut off within its link-layer
    // header.
    std::span<const std::uint8_t> frame(std::span<const std::uint8_t> captured);

  private:
    explicit LinkLayer(int type) : type_(type) {}

    int type_;
    std::vector<std::uint8_t> frame_;
};

} // namespace sieve::packets
