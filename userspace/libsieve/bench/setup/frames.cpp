// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/frames.hpp"

#include <algorithm>
#include <initializer_list>

namespace sieve::bench {

namespace {

void put(Frame& frame, std::size_t at, std::initializer_list<std::uint8_t> bytes) {
    std::ranges::copy(bytes, frame.begin() + static_cast<std::ptrdiff_t>(at));
}

} // namespace

Frame ipv4_tcp_frame() {
    Frame frame{};
    put(frame, 0, {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00});
    // 20 bytes of IP, 20 of TCP; time to live 64.
    put(frame, 14, {0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 0, 0, 0, 0, 198, 51, 100, 2});
    put(frame, 34, {0x9c, 0x40, 0, 80}); // port 40000 to 80
    put(frame, 46, {0x50, 0x02});        // SYN
    return frame;
}

Frame ipv6_udp_frame() {
    Frame frame{};
    put(frame, 0, {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd});
    put(frame, 14, {0x60, 0, 0, 0, 0, 8, 17, 64}); // 8 bytes of UDP; hop limit 64
    put(frame, 32, {0xff, 0xff});
    put(frame, 38, {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
    put(frame, 54, {0x9c, 0x40, 0, 53, 0, 8, 0, 0});
    return frame;
}

std::uint32_t header_sum(const Frame& frame) {
    std::uint32_t sum = 0;
    for (std::size_t at = 14; at < 34; at += 2)
        if (at < ipv4_checksum || at >= ipv4_source + 4) sum += frame[at] << 8 | frame[at + 1];
    return sum;
}

} // namespace sieve::bench
