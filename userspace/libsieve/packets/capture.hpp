// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reads packets from a capture file (pcap or pcapng), as Ethernet frames.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "libsieve/packets/link_layer.hpp"
#include "libsieve/util/results/result.hpp"

struct pcap;

namespace sieve::packets {

struct CapturedPacket {
    std::uint64_t number = 0;            // counts from 1, as in Wireshark
    std::uint32_t length = 0;            // on the wire
    std::span<const std::uint8_t> bytes; // the captured part of the frame; valid until the next packet
};

class Capture {
  public:
    // "-" is standard input.
    static Result<Capture> open(const std::string& path);

    // The next packet, or nothing at the end of the file. Error: the file is truncated or garbled. The error
    // names the packet and, if the file has positions, the byte.
    [[nodiscard]] Result<std::optional<CapturedPacket>> next();

  private:
    struct Close {
        void operator()(pcap* handle) const;
    };
    Capture(std::string name, std::unique_ptr<pcap, Close> handle, LinkLayer link)
        : name_(std::move(name)), handle_(std::move(handle)), link_(std::move(link)) {}

    std::string name_; // for messages
    std::unique_ptr<pcap, Close> handle_;
    LinkLayer link_;
    std::uint64_t number_ = 0;
};

} // namespace sieve::packets
