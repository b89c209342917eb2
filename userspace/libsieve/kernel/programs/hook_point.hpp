// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where on a packet's way the program runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sieve::kernel {

enum class HookPoint : std::uint8_t {
    xdp,     // arriving, before the network stack sees it
    ingress, // arriving, at tc
    egress,  // leaving, at tc
};

inline constexpr HookPoint all_hook_points[] = {HookPoint::xdp, HookPoint::ingress, HookPoint::egress};

// "xdp", "ingress" or "egress".
[[nodiscard]] constexpr const char* hook_point_name(HookPoint point) {
    switch (point) {
    case HookPoint::xdp:
        return "xdp";
    case HookPoint::ingress:
        return "ingress";
    case HookPoint::egress:
        return "egress";
    }
    return "unknown";
}

// The hook point with that name; nothing if there is none.
[[nodiscard]] constexpr std::optional<HookPoint> parse_hook_point(std::string_view name) {
    for (const HookPoint point : all_hook_points)
        if (name == hook_point_name(point)) return point;
    return std::nullopt;
}

} // namespace sieve::kernel
