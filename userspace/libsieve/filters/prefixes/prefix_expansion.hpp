// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Controlled prefix expansion: turns a set of address ranges into prefixes of a few lengths (sieve/prefix.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <sieve/image.h>
#include <sieve/prefix.h>

#include "libsieve/filters/prefixes/address_set.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

struct PrefixLimits {
    std::uint32_t max_probes = 4; // prefix lengths probed for a packet of one family; 1 to SIEVE_MAX_PROBES
    std::uint64_t max_keys = 20'000'000; // prefixes that the filter may hold
    // Lengths of 128 bits that are probed whatever the prefixes are, for each family.
    std::array<std::vector<std::uint32_t>, SIEVE_FAMILIES> lengths{};

    [[nodiscard]] friend bool operator==(const PrefixLimits&, const PrefixLimits&) = default;
};

// Expansion uses the fewest lengths that keep the filter at about this many keys. A filter of this size stays
// in a core's own cache, and each probe saved is time saved on every packet. Only a larger set gets more of
// the allowed lengths.
inline constexpr std::uint64_t cheap_keys = 250'000;

// How many prefixes there are of each length.
using LengthCounts = std::array<double, 129>;

// For each number of lengths k from 1 up, the cheapest choice: `lengths[k-1]`, ascending, makes `keys[k-1]`
// prefixes. Infinitely many mean that so few lengths cannot include the required ones.
struct LengthChoices {
    std::vector<double> keys;
    std::vector<std::vector<std::uint32_t>> lengths;
};

// Exact, by dynamic programming over lengths. Each choice includes the required lengths.
[[nodiscard]] LengthChoices choose_lengths(const LengthCounts& counts, std::uint32_t max_probes,
                                           std::span<const std::uint32_t> required = {});

// The probes of a set of one address, and how many prefixes they make.
struct ChosenProbes {
    sieve_probes probes{};
    std::uint64_t keys = 0;
};

// Chooses probes for prefixes of these lengths. For each family that has prefixes or required lengths,
// `choose` is told how many keys each number of probes makes, from one up, and returns the index of its
// choice. Errors: more probes than the limits allow, or more keys; the message gives the numbers.
Result<ChosenProbes> choose_probes(const LengthCounts (&counts)[SIEVE_FAMILIES], const PrefixLimits& limits,
                                   const std::function<std::size_t(const std::vector<double>& keys)>& choose);

// The prefixes to store, and the addresses that they stand for.
struct PrefixPlan : AddressSet {
    sieve_probes probes{};
    std::uint64_t keys = 0; // prefixes after expansion
};

// Merges the ranges and chooses at most max_probes lengths for each family, such that expansion makes the
// fewest prefixes (exact, by dynamic programming over lengths). An IPv6 range that includes the v4-mapped
// addresses does not mean IPv4. Error: more than max_keys prefixes would be needed; the message gives the
// numbers.
Result<PrefixPlan> plan_prefixes(std::vector<AddressRange> ranges, const PrefixLimits& limits);

// Calls `visit(upper, lower, length)` for each prefix to be stored. The address is cut to the length.
void expand_prefixes(
    const PrefixPlan& plan,
    const std::function<void(std::uint64_t upper, std::uint64_t lower, std::uint32_t length)>& visit);

} // namespace sieve
