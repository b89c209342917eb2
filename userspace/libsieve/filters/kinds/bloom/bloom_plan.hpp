// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Plans an unblocked Bloom filter before it is built: how many bits a key sets, how many lines the filter
// needs, and its false positive rate. The unblocked counterpart of blocked_plan.hpp.
#pragma once

#include <cstdint>

#include "libsieve/filters/kinds/bloom/bloom_placement.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

/// The choices for an unblocked filter besides its size.
struct BloomGroups {
    std::uint32_t groups = 3; ///< c: groups of hash functions that a key chooses from
    std::uint32_t hashes = 0; ///< k: probes of a group; 0: the best number is chosen
    BloomSearch search = BloomSearch::annealed;
};

/// The best number of probes at a size, found by experiment for annealed filters (and within 2% of the best
/// rate for the other searches).
std::uint32_t best_hashes(double bits_per_key, const BloomGroups& shape);

/// The false positive rate without rebalancing: two-choice paper, differential equation (3.2). `shape.hashes`
/// must be set.
double model_fpr(double bits_per_key, const BloomGroups& shape);

/// The false positive rate of a filter of `keys` keys in `lines` lines, as place_bloom makes it. No formula
/// is known for rebalancing, so the function builds smaller filters of the same shape from random hashes: the
/// rate depends on the bits per key alone (two-choice paper, section 3.2). `shape.hashes` must be set.
/// Deterministic; takes 0.1 to 0.3 s.
double predict_fpr(std::uint64_t keys, std::uint64_t lines, const BloomGroups& shape, std::uint32_t rounds);

/// The fewest lines for which predict_fpr (with best_hashes unless the shape says otherwise) is at most
/// `fpr`, to within 1%. Fails if SIEVE_BLOOM_MAX_HASHES probes cannot reach it.
Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr, const BloomGroups& shape,
                                    std::uint32_t rounds);

} // namespace sieve
