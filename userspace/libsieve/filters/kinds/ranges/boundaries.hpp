// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The addresses at which membership flips: what the kind `ranges` stores (sieve/ranges.h).
#pragma once

#include <cstdint>
#include <vector>

#include "libsieve/filters/prefixes/address_set.hpp"

namespace sieve::ranges {

// A set of numbers from 0 on. A number is a member if the count of boundaries at or below it is odd; even, if
// the set begins inside.
template <class Number>
struct Boundaries {
    bool begins_inside = false; // 0 is a member
    std::vector<Number> at;     // rising; never 0
};

// The three parts of a set. An IPv6 address is a member if `ipv6` holds its upper word or `fine` holds the
// whole address; never both.
struct SetBoundaries {
    Boundaries<std::uint32_t> ipv4;
    Boundaries<std::uint64_t> ipv6; // whole /64s
    Boundaries<uint128> fine;       // pieces of /64s
};

[[nodiscard]] SetBoundaries boundaries_of(const AddressSet& set);

} // namespace sieve::ranges
