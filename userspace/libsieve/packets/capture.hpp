// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Packets out of a capture file (pcap or pcapng), as Ethernet frames.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "libsieve/packets/link_layer.hpp"
#include "libsieve/util/result.hpp"

struct pcap;

namespace sieve::packets {

struct CapturedPacket {
    std::uint64_t number = 0;            // from 1, as in Wireshark
    std::uint32_t length = 0;            // on the wire
    std::span<const std::uint8_t> bytes; // the frame as far as it was captured; valid until the next packet
};

class Capture {
  public:
    // "-" is standard input.
    static Result<Capture> open(const std::string& path);

    // The next packet, or nothing at the end. A file that is cut or garbled is an error that names the packet
    // and, where the file has positions, the byte.
    [[nodiscard]] Result<std::optional<CapturedPacket>> next();

  private:
    struct Close {
        void operator()(pcap* handle) const;
    };
    Capture(std::string path, std::unique_ptr<pcap, Close> handle, LinkLayer link)
        : path_(std::move(path)), handle_(std::move(handle)), link_(std::move(link)) {}

    std::string path_;
    std::unique_ptr<pcap, Close> handle_;
    LinkLayer link_;
    std::uint64_t number_ = 0;
};

} // namespace sieve::packets
