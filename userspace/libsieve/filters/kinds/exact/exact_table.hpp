// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Builds a table of kind `exact` (sieve/exact_table.h) of both families' addresses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sieve/exact_table.h>

#include "libsieve/filters/kinds/exact/exact_ends.hpp"
#include "libsieve/filters/placement/hash_sum.hpp"
#include "libsieve/keys/address_range.hpp"
#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::exact {

/// A list's addresses, by family, in its order. Repetitions are allowed. In a table with values, each address
/// has one; the first one counts if the address is repeated.
struct Addresses {
    std::span<const std::uint32_t> ipv4{};
    std::span<const uint128> ipv6{};
    std::span<const std::uint16_t> ipv4_values{};
    std::span<const std::uint16_t> ipv6_values{};
    std::uint64_t ipv4_room = 0; ///< for so many more
    std::uint64_t ipv6_room = 0;
    std::uint32_t marks = 0; ///< 1: keys have marks; then they have no values, and can_be_marked() of each
};

struct Table {
    sieve_exact geometry{}; ///< `fields` and what all kinds share is left to the caller
    HugeArray<sieve_line> lines{};
    std::uint64_t keys = 0; ///< distinct
    HashSum sum{};          ///< of the distinct keys' hashes (sieve_file::key_sum)
};

/// Builds the smallest table of the list. If the keys find no room, new secrets are drawn, and after a few
/// draws a table a little larger is tried. The secrets follow from `secret`, the outcome from it and from the
/// list's order, not from the number of threads. Errors: more lines than a filter can have; no room after
/// all, which has practically no chance.
[[nodiscard]] Result<Table> build_table(const Addresses& addresses, std::uint32_t fields,
                                        std::span<const __u64, SIEVE_HASH_KEY_WORDS> secret,
                                        const Values& values = {});

/// The lines of the filter, all parts together, of so many distinct addresses.
[[nodiscard]] std::uint64_t table_lines(std::uint64_t ipv4, std::uint64_t ipv6, std::uint32_t value_bits = 0,
                                        std::uint32_t marks = 0);

/// What an address adds to the sum.
[[nodiscard]] HashSum sum_of_key(const sieve_lookup& lookup, uint128 address);

} // namespace sieve::exact
