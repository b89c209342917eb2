// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Hashes of keys that nobody has, for the filters that predictions are made with.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <sieve/hash.h>

namespace sieve {

/// That many random hashes in hash_order, which is how a builder gets those of a real set: what is placed for
/// good depends on the order.
std::vector<sieve_hash> sample_hashes(std::uint64_t count, std::mt19937_64& random);

} // namespace sieve
