// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/packets/capture.hpp"

#include <cstdio>

#include <fmt/core.h>
#include <pcap/pcap.h>

namespace sieve::packets {

void Capture::Close::operator()(pcap* handle) const {
    pcap_close(handle);
}

Result<Capture> Capture::open(const std::string& path) {
    char why[PCAP_ERRBUF_SIZE] = "";
    std::unique_ptr<pcap, Close> handle(pcap_open_offline(path.c_str(), why));
    const std::string name = path == "-" ? "standard input" : path;
    if (!handle) {
        // Some messages of libpcap begin with the path, others do not.
        const std::string text = why;
        return bad_input(text.starts_with(path) ? text : fmt::format("{}: {}", name, text));
    }
    const int type = pcap_datalink(handle.get());
    std::optional<LinkLayer> link = LinkLayer::of(type);
    if (!link) {
        const char* type_name = pcap_datalink_val_to_name(type);
        return bad_input(fmt::format("{}: a capture of link type {}, expected Ethernet (EN10MB), RAW, NULL, "
                                     "LOOP, LINUX_SLL or LINUX_SLL2",
                                     name, type_name != nullptr ? type_name : std::to_string(type)));
    }
    return Capture(name, std::move(handle), std::move(*link));
}

Result<std::optional<CapturedPacket>> Capture::next() {
    pcap_pkthdr* header = nullptr;
    const u_char* bytes = nullptr;
    std::FILE* file = pcap_file(handle_.get());
    const long before = file != nullptr ? std::ftell(file) : -1;
    const int got = pcap_next_ex(handle_.get(), &header, &bytes);
    if (got == PCAP_ERROR_BREAK) return std::nullopt;
    if (got != 1)
        return bad_input(fmt::format("{}: packet {}{}: {}", name_, number_ + 1,
                                     before >= 0 ? fmt::format(" at byte {}", before) : std::string(),
                                     pcap_geterr(handle_.get())));
    return CapturedPacket{
        .number = ++number_, .length = header->len, .bytes = link_.frame({bytes, header->caplen})};
}

} // namespace sieve::packets
