// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Random hashes, for the sample filters that predictions are made with.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <sieve/hash.h>

namespace sieve {

/// Returns `count` random hashes in hash_order. A builder gets the hashes of a real set in the same order,
/// and the order matters where a key is placed once and never moved.
std::vector<sieve_hash> sample_hashes(std::uint64_t count, std::mt19937_64& random);

} // namespace sieve
