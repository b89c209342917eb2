// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/address_text.hpp"

#include <array>

#include <fmt/format.h>

#include <sieve/key.h>

namespace sieve {

std::string format_address(std::uint64_t upper, std::uint64_t lower) {
    if (upper == 0 && lower >> 32 == SIEVE_V4_MAPPED >> 32)
        return fmt::format("{}.{}.{}.{}", lower >> 24 & 255, lower >> 16 & 255, lower >> 8 & 255,
                           lower & 255);

    std::array<std::uint16_t, 8> groups{};
    for (int i = 0; i < 4; ++i) {
        groups[i] = static_cast<std::uint16_t>(upper >> (48 - 16 * i));
        groups[4 + i] = static_cast<std::uint16_t>(lower >> (48 - 16 * i));
    }
    int gap = -1;
    int longest = 1; // a lone zero group is written out
    for (int i = 0; i < 8; ++i) {
        int run = 0;
        while (i + run < 8 && groups[i + run] == 0) ++run;
        if (run > longest) {
            gap = i;
            longest = run;
        }
        i += run;
    }
    std::string text;
    for (int i = 0; i < 8; ++i) {
        if (i == gap) {
            text += "::";
            i += longest - 1;
            continue;
        }
        if (!text.empty() && text.back() != ':') text += ':';
        fmt::format_to(std::back_inserter(text), "{:x}", groups[i]);
    }
    return text;
}

} // namespace sieve
