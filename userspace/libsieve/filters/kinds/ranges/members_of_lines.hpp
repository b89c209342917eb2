// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reads the members of a `ranges` filter back from its lines (sieve/ranges.h), whoever wrote them.
#pragma once

#include <functional>
#include <span>

#include <sieve/image.h>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::ranges {

// Calls `visit` for disjoint ranges that are together all addresses that a lookup finds. The header must be
// without a fault. Walks each cell as a lookup does, with the lookup's own functions, for all of the cell's
// numbers at once: a line's answers change at its separators only, so those divide the numbers into pieces.
// Time and calls: proportional to the filter's lines. bad_input for lines that lead to more work than a
// builder's lines do, and for pieces of a /64 that is whole already.
[[nodiscard]] Status visit_members(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                   const std::function<void(const AddressRange&)>& visit);

} // namespace sieve::ranges
