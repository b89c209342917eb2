// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The exact false positive rate of a finished blocked filter, from its bits.
#pragma once

#include <cstdint>
#include <span>

#include <sieve/image.h>

namespace sieve {

// The rate over random hashes: the mean over all shards of the mean rate of a line, asked once for each line
// that a key has. `keys` is the number of keys in the filter. In filters of a few lines, a key's lines are
// not independent draws, so all draws are evaluated one by one. The number of lines is a multiple of the
// number of shards.
double expected_blocked_rate(const sieve_lookup& lookup, std::span<const sieve_line> lines,
                             std::uint64_t keys);

} // namespace sieve
