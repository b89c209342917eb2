// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The Ethernet frame that represents a captured packet. Written from the registry of link types
// (https://www.tcpdump.org/linktypes.html), without any of the code under test.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace sieve::model {

enum class Link { ethernet, raw, null, loop, cooked, cooked2 };

struct LinkType {
    Link link;
    std::uint32_t number; // LINKTYPE_, as files have it
};

inline constexpr std::array<LinkType, 8> link_types{{
    {Link::ethernet, 1},
    {Link::raw, 101},
    {Link::raw, 228},
    {Link::raw, 229},
    {Link::null, 0},
    {Link::loop, 108},
    {Link::cooked, 113},
    {Link::cooked2, 276},
}};

// Empty if the packet ends within its link-layer header.
[[nodiscard]] std::vector<std::uint8_t> frame_of(LinkType type, std::span<const std::uint8_t> packet);

} // namespace sieve::model
