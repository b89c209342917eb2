// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Controlled prefix expansion: a set of address ranges as prefixes of a few lengths (sieve/prefix.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <sieve/image.h>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

struct PrefixLimits {
    std::uint32_t max_probes = 4; // lengths a packet is asked for, within its family; 1 to SIEVE_MAX_PROBES
    std::uint64_t max_keys = 20'000'000; // prefixes that the filter may hold
};

// Expansion goes for the fewest lengths that keep the filter about this small (it then stays in a core's own
// cache and each probe saved is time saved on every packet); only beyond does it spend more of the lengths it
// may.
inline constexpr std::uint64_t cheap_keys = 250'000;

// What will be stored, and what it stands for.
struct PrefixPlan {
    sieve_probes probes{};
    std::uint64_t keys = 0; // prefixes after expansion
    // All addresses of the set, by family: disjoint, rising, not adjacent. A range of IPv6 that reaches over
    // the v4-mapped addresses does not mean IPv4, since packets are asked for the lengths of their own family
    // only.
    std::vector<AddressRange> members[SIEVE_FAMILIES];
    double covered[SIEVE_FAMILIES] = {0, 0}; // share of the family's addresses that are members
};

// Merges the ranges and chooses the lengths for which expansion makes the fewest prefixes (dynamic
// programming over lengths, exact), at most max_probes for each family. An IPv6 range that includes the
// v4-mapped addresses does not mean IPv4. Fails with the numbers if more prefixes than max_keys would be
// needed.
Result<PrefixPlan> plan_prefixes(std::vector<AddressRange> ranges, const PrefixLimits& limits);

// Calls `visit(upper, lower, length)` for each prefix to be stored, its address cut to its length.
void expand_prefixes(
    const PrefixPlan& plan,
    const std::function<void(std::uint64_t upper, std::uint64_t lower, std::uint32_t length)>& visit);

// True if the address is in one of the plan's members.
bool is_member(const PrefixPlan& plan, uint128 address);

} // namespace sieve
