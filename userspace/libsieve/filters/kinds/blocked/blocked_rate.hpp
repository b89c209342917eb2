// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The exact false positive rate of a blocked filter that is there, from its bits.
#pragma once

#include <cstdint>
#include <span>

#include <sieve/image.h>

namespace sieve {

// Over random hashes: the mean rate of a line, asked as often as a key has lines. `keys` is what the filter
// holds. Filters of a few lines, whose lines are not independent draws, are gone through draw by draw.
double expected_blocked_rate(const sieve_lookup& lookup, std::span<const sieve_line> lines,
                             std::uint64_t keys);

} // namespace sieve
