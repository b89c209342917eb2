// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The frame that answers a frame.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "bpf/packet.hpp"

namespace sieve::test {

// Addresses and ports change places, an echo request becomes a reply. What is no IP, or ends too early, is
// mirrored as far as it goes.
inline Bytes mirror(Bytes frame) {
    const auto swap = [&](std::size_t at, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; i++) std::swap(frame.at(at + i), frame.at(at + bytes + i));
    };
    try {
        std::size_t at = 14;
        while ((frame.at(at - 2) == 0x81 || frame.at(at - 2) == 0x88)) at += 4;
        const bool v6 = frame.at(at) >> 4U == 6;
        std::uint8_t proto = frame.at(at + (v6 ? 6 : 9));
        swap(at + (v6 ? 8 : 12), v6 ? 16 : 4);
        bool later = !v6 && (frame.at(at + 7) != 0 || (frame.at(at + 6) & 0x1fU) != 0);
        at += v6 ? 40 : (frame.at(at) & 15U) * 4;
        while (v6 && (proto == 44 || proto == 60)) {
            later = later || (proto == 44 && (frame.at(at + 2) != 0 || frame.at(at + 3) > 1));
            const std::size_t bytes = proto == 44 ? 8 : (frame.at(at + 1) + 1U) * 8;
            proto = frame.at(at);
            at += bytes;
        }
        if (later) return frame;
        if (proto == 1 && frame.at(at) == 8) frame.at(at) = 0;
        if (proto == 58 && frame.at(at) == 128) frame.at(at) = 129;
        if (proto == 6 || proto == 17 || proto == 33 || proto == 132 || proto == 136) swap(at, 2);
    } catch (const std::out_of_range&) {
    }
    return frame;
}

} // namespace sieve::test
