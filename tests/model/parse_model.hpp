// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The right result of parsing a packet, by the RFCs and the contract in sieve/policy.h. The model reads a
// byte vector slowly, and uses no code of the packet path.
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

// `segmented`: the packet awaits segmentation, so a length of zero means that the length is too large for its
// field.
[[nodiscard]] Parsed parse_by_model(const Bytes& packet, sieve_link link = SIEVE_LINK_ETHERNET,
                                    bool segmented = false);

} // namespace sieve::test
