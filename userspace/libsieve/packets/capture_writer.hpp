// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Writes packets to a capture file (pcap, nanoseconds) of Ethernet frames.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "libsieve/util/files/output.hpp"
#include "libsieve/util/results/result.hpp"

struct pcap;
struct pcap_dumper;

namespace sieve::packets {

class CaptureWriter {
  public:
    // "-" is standard output. A file is opened with open_output(). `snap` is the maximum number of bytes kept
    // of a packet.
    static Result<CaptureWriter> create(const std::string& path, std::uint32_t snap,
                                        Replace replace = Replace::ours);

    // `time`: nanoseconds since 1970. `length`: bytes on the wire. `bytes`: the first bytes of the packet.
    void write(std::uint64_t time, std::uint32_t length, std::span<const std::uint8_t> bytes);

    // Flushes everything written so far to the file.
    [[nodiscard]] Status flush();

  private:
    struct Close {
        void operator()(pcap* handle) const;
        void operator()(pcap_dumper* file) const;
    };
    CaptureWriter(std::string path, std::unique_ptr<pcap, Close> handle,
                  std::unique_ptr<pcap_dumper, Close> file)
        : path_(std::move(path)), handle_(std::move(handle)), file_(std::move(file)) {}

    std::string path_;
    std::unique_ptr<pcap, Close> handle_;
    std::unique_ptr<pcap_dumper, Close> file_; // closed first
};

} // namespace sieve::packets
