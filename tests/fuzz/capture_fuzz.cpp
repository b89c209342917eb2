// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes the reader of captures. If the first byte is odd, the rest is a file as it is. If the first byte is
// even, the rest is a list of packets: the target writes them as a file of some format and link type, and
// compares every frame with a model of the link layers.
//
// For any file: packets are numbered from 1, frames are in readable memory, and a garbled file ends in an
// error that names the packet.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "fuzz/support.hpp"
#include "libsieve/packets/capture.hpp"
#include "model/link_model.hpp"

namespace {

using namespace sieve::fuzz;
using File = std::vector<std::uint8_t>;

Total compared("frames compared with the model");

// A file written in either byte order.
class Writer {
  public:
    explicit Writer(bool big) : big_(big) {}

    void put(std::uint64_t value, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; i++) {
            const std::size_t place = big_ ? bytes - 1 - i : i;
            file_.push_back(place < sizeof(value) ? static_cast<std::uint8_t>(value >> 8 * place) : 0);
        }
    }
    void put(Bytes bytes) { file_.insert(file_.end(), bytes.begin(), bytes.end()); }
    [[nodiscard]] const File& file() const { return file_; }
    [[nodiscard]] std::size_t size() const { return file_.size(); }

  private:
    bool big_;
    File file_;
};

// The packets of a list: for each, a byte with its length, then its bytes.
std::vector<Bytes> packets_of(Bytes list) {
    std::vector<Bytes> packets;
    while (!list.empty()) {
        const std::size_t size = std::min<std::size_t>(list[0], list.size() - 1);
        packets.push_back(list.subspan(1, size));
        list = list.subspan(1 + size);
    }
    return packets;
}

// draft-ietf-opsawg-pcap: the classic format, in microseconds or nanoseconds.
File classic_file(const std::vector<Bytes>& packets, std::uint32_t link, bool big, bool nanoseconds) {
    Writer out(big);
    out.put(nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4, 4);
    out.put(2, 2);
    out.put(4, 2);
    out.put(0, 8);
    out.put(65535, 4);
    out.put(link, 4);
    for (const Bytes packet : packets) {
        out.put(1700000000, 4);
        out.put(5, 4);
        out.put(packet.size(), 4);
        out.put(packet.size() + 7, 4);
        out.put(packet);
    }
    return out.file();
}

// draft-ietf-opsawg-pcapng: a section of one interface, and enhanced packet blocks.
File block_file(const std::vector<Bytes>& packets, std::uint32_t link, bool big) {
    Writer out(big);
    const auto block = [&out](std::uint32_t type, std::size_t body, const auto& write) {
        const std::size_t padded = (body + 3) / 4 * 4;
        out.put(type, 4);
        out.put(padded + 12, 4);
        write();
        out.put(0, padded - body);
        out.put(padded + 12, 4);
    };
    block(0x0a0d0d0a, 16, [&] {
        out.put(0x1a2b3c4d, 4);
        out.put(1, 2);
        out.put(0, 2);
        out.put(~std::uint64_t{0}, 8);
    });
    block(1, 8, [&] {
        out.put(link, 2);
        out.put(0, 2);
        out.put(65535, 4);
    });
    for (const Bytes packet : packets)
        block(6, 20 + packet.size(), [&] {
            out.put(0, 12);
            out.put(packet.size(), 4);
            out.put(packet.size() + 7, 4);
            out.put(packet);
        });
    return out.file();
}

// The packet as libpcap returns it from a file in that byte order. A cooked CAN packet holds its CAN ID in
// the byte order of the capturing machine; libpcap converts it to this machine's (pcap-common.c,
// swap_pseudo_headers).
File handed_over(sieve::model::LinkType type, Bytes packet, bool big) {
    using sieve::model::Link;
    constexpr std::size_t id = 4;
    File bytes(packet.begin(), packet.end());
    const bool cooked = type.link == Link::cooked || type.link == Link::cooked2;
    const std::size_t header = type.link == Link::cooked ? 16 : 20;
    if (!cooked || big == (std::endian::native == std::endian::big) || packet.size() < header + id)
        return bytes;
    const std::size_t protocol = type.link == Link::cooked ? 14 : 0;
    const bool can = packet[protocol] == 0 && (packet[protocol + 1] == 0x0c || packet[protocol + 1] == 0x0d);
    const auto payload = bytes.begin() + static_cast<std::ptrdiff_t>(header);
    if (can) std::reverse(payload, payload + id);
    return bytes;
}

// Reads the file to its end or to its first error.
std::optional<std::vector<File>> read(const std::string& path) {
    auto capture = sieve::packets::Capture::open(path);
    if (!capture) {
        require_message(capture.error().message);
        return std::nullopt;
    }
    std::vector<File> frames;
    for (;;) {
        auto packet = capture->next();
        if (!packet) {
            require_message(packet.error().message);
            const std::string place = ": packet " + std::to_string(frames.size() + 1);
            FUZZ_REQUIRE(packet.error().message.find(place) != std::string::npos);
            return std::nullopt;
        }
        if (!*packet) return frames;
        FUZZ_REQUIRE((*packet)->number == frames.size() + 1);
        frames.emplace_back((*packet)->bytes.begin(), (*packet)->bytes.end());
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    static MemoryFile file("capture");
    const std::uint8_t choice = data[0];
    if ((choice & 1) != 0) {
        file.assign(data + 1, size - 1);
        (void)read(file.path());
        return 0;
    }
    const std::vector<Bytes> packets = packets_of({data + 2, size - 2});
    const auto& types = sieve::model::link_types;
    const sieve::model::LinkType type = types[data[1] % types.size()];
    const bool big = (choice & 2) != 0;
    const File content = (choice & 4) != 0 ? block_file(packets, type.number, big)
                                           : classic_file(packets, type.number, big, (choice & 8) != 0);
    file.assign(content.data(), content.size());
    const auto frames = read(file.path());
    FUZZ_REQUIRE(frames && frames->size() == packets.size());
    for (std::size_t i = 0; i < packets.size(); i++)
        FUZZ_REQUIRE((*frames)[i] == sieve::model::frame_of(type, handed_over(type, packets[i], big)));
    compared.add(packets.size());
    return 0;
}
