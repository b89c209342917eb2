// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The flows that nf_conntrack tracks in the calling thread's network namespace.
#pragma once

#include <cstdint>
#include <vector>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// Who sends, and to whom; ports are 0 where the protocol has none.
struct Direction {
    uint128 from = 0;
    uint128 to = 0;
    std::uint16_t from_port = 0;
    std::uint16_t to_port = 0;

    [[nodiscard]] friend bool operator==(const Direction&, const Direction&) = default;
};

struct TrackedFlow {
    std::uint8_t protocol = 0;
    Direction begun{};        // as its first packet came, before any translation of addresses
    Direction answered{};     // as its answers come, likewise
    bool established = false; // of TCP: both sides have spoken, and at most one has said goodbye
};

// All of them. None, and no error, if the kernel has no nf_conntrack, or it tracks nothing here; it is not
// loaded for the question.
[[nodiscard]] Result<std::vector<TrackedFlow>> tracked_flows();

} // namespace sieve::kernel
