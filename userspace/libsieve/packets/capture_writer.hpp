// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Packets into a capture file (pcap, nanoseconds) of Ethernet frames.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "libsieve/util/output.hpp"
#include "libsieve/util/result.hpp"

struct pcap;
struct pcap_dumper;

namespace sieve::packets {

class CaptureWriter {
  public:
    // "-" is standard output; a file is opened as open_output() does. `snap`: the longest that a packet's
    // bytes will be.
    static Result<CaptureWriter> create(const std::string& path, std::uint32_t snap,
                                        Replace replace = Replace::ours);

    // `time`: nanoseconds since 1970; `length`: on the wire; `bytes`: its head.
    void write(std::uint64_t time, std::uint32_t length, std::span<const std::uint8_t> bytes);

    // What was written is in the file, or an error.
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
