// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/packets/capture_writer.hpp"

#include <cerrno>
#include <cstdio>

#include <fmt/core.h>
#include <pcap/pcap.h>

namespace sieve::packets {

void CaptureWriter::Close::operator()(pcap* handle) const {
    pcap_close(handle);
}

void CaptureWriter::Close::operator()(pcap_dumper* file) const {
    pcap_dump_close(file);
}

namespace {

// Nanosecond time stamps, in this machine's byte order.
const OutputKind& capture_output() {
    static const OutputKind kind{
        .name = "capture of nanosecond time stamps", .beginnings = {"\x4d\x3c\xb2\xa1"}, .mode = 0666};
    return kind;
}

} // namespace

Result<CaptureWriter> CaptureWriter::create(const std::string& path, std::uint32_t snap, Replace replace) {
    std::unique_ptr<pcap, Close> handle(
        pcap_open_dead_with_tstamp_precision(DLT_EN10MB, static_cast<int>(snap), PCAP_TSTAMP_PRECISION_NANO));
    if (!handle) return bad_input(fmt::format("{}: no memory for a capture", path));
    std::FILE* stream = stdout;
    if (path != "-") {
        SIEVE_ASSIGN(UniqueFd fd, open_output(path, capture_output(), replace));
        stream = ::fdopen(fd.get(), "wb");
        if (stream == nullptr) return bad_input(fmt::format("{}: {}", path, errno_text(errno)));
        fd.release();
    }
    std::unique_ptr<pcap_dumper, Close> file(pcap_dump_fopen(handle.get(), stream));
    if (!file) {
        // Some messages of libpcap begin with the path, others do not.
        const std::string text = pcap_geterr(handle.get());
        return bad_input(text.starts_with(path) ? text : fmt::format("{}: {}", path, text));
    }
    return CaptureWriter(path, std::move(handle), std::move(file));
}

void CaptureWriter::write(std::uint64_t time, std::uint32_t length, std::span<const std::uint8_t> bytes) {
    constexpr std::uint64_t second = 1'000'000'000;
    pcap_pkthdr header{};
    header.ts.tv_sec = static_cast<decltype(header.ts.tv_sec)>(time / second);
    // nanoseconds, as the file's header says
    header.ts.tv_usec = static_cast<decltype(header.ts.tv_usec)>(time % second);
    header.caplen = static_cast<bpf_u_int32>(bytes.size());
    header.len = length;
    pcap_dump(reinterpret_cast<u_char*>(file_.get()), &header, bytes.data());
}

Status CaptureWriter::flush() {
    if (pcap_dump_flush(file_.get()) != 0 || std::ferror(pcap_dump_file(file_.get())) != 0)
        return bad_input(fmt::format("{}: writing the capture: {}", path_, errno_text(errno)));
    return {};
}

} // namespace sieve::packets
