// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Captures that were not made on Ethernet (`tcpdump -i any`, tunnels, loopback of BSD): the frames that the
// XDP program would see if the same packets came over Ethernet.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sieve::packets {

class LinkLayer {
  public:
    // Of one of pcap's DLT_ numbers; nothing for a link whose packets are not understood.
    static std::optional<LinkLayer> of(int type);

    // The frame of what was captured: itself on Ethernet, else in memory of this object, valid until the next
    // call. A packet that is cut within its link-layer header gives an empty one.
    std::span<const std::uint8_t> frame(std::span<const std::uint8_t> captured);

  private:
    explicit LinkLayer(int type) : type_(type) {}

    int type_;
    std::vector<std::uint8_t> frame_;
};

} // namespace sieve::packets
