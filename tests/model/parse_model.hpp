// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a packet should be parsed to, written from the RFCs and the contract in sieve/policy.h, slowly, over a
// byte vector, and without a line of the packet path.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <ostream>

#include <sieve/policy.h>

#include "bpf/packet.hpp"

namespace sieve::test {

struct Parsed {
    std::uint32_t outcome = 0;
    std::uint32_t have = 0;
    std::array<std::uint64_t, 5> key{};

    bool operator==(const Parsed&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Parsed& parsed);

// `segmented`: the packet awaits segmentation, so that a length of zero stands for one that is too
// large for its field.
[[nodiscard]] Parsed parse_by_model(const Bytes& packet, sieve_link link = SIEVE_LINK_ETHERNET,
                                    bool segmented = false);

} // namespace sieve::test
