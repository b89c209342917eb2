// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Places the keys of an unblocked filter: decides which group of hash functions each key takes.
#pragma once

#include <cstdint>
#include <span>

#include <sieve/bloom.h>

#include "libsieve/util/parallel/progress.hpp"

namespace sieve {

/// How a round of rebalancing treats a key that has been removed.
enum class BloomSearch {
    greedy,   ///< takes the group that needs fewest new ones, ties at random: two-choice paper, section 3.2
    plateau,  ///< like greedy, but at a tie the key always moves
    annealed, ///< like plateau, but also accepts moves that cost ones, fewer as the search cools
};

struct BloomPlacementOptions {
    BloomSearch search = BloomSearch::annealed;
    /// Rounds of rebalancing after the online pass. (The paper counts the online pass as the first round.)
    std::uint32_t rounds = 40;
    /// For ties and moves; the same seed, keys and options give the same filter.
    std::uint64_t seed = 0;
};

struct BloomPlacementReport {
    double online_ones = 0;      ///< fraction of ones after the online pass
    double final_ones = 0;       ///< fraction of ones at the end
    std::uint32_t rounds = 0;    ///< rebalancing rounds that were run
    std::uint64_t moved = 0;     ///< keys that the last round moved
    std::uint64_t saturated = 0; ///< bits whose counter reached its limit and could not be decremented
};

/// Fills `filter` (lookup.buckets lines) with all keys. A key chooses one of lookup.choices groups, each of
/// lookup.hashes probes.
///
/// Online (two-choice paper, section 3.1; stochastically optimal by Theorem 3.1): each key takes the group
/// that needs fewest new ones. Rounds of rebalancing follow (section 3.2), on a counting Bloom filter.
///
/// Beyond the paper, a round never keeps a key in its group if another group does as well, because the search
/// depends on drifting along plateaus. The search also anneals, by Metropolised Gibbs sampling (J. Liu,
/// "Peskun's theorem and a modified discrete-state Gibbs sampler", Biometrika 83, 1996): it draws another
/// group from the Boltzmann distribution and accepts it by its cost relative to the present group. At 16 bits
/// a key, c = 3, and 40 rounds, the rate falls from 1.57e-4 (greedy) to 1.51e-4 (plateau) and 1.44e-4
/// (annealed).
///
/// Memory: half a byte a bit, and one byte a key. Time: 0.1 to 0.25 microseconds a key and round. Uses all
/// processors; the filter does not depend on their number.
BloomPlacementReport place_bloom(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                 std::span<sieve_line> filter, const BloomPlacementOptions& options,
                                 const Progress& progress);

/// The false positive rate of a filter with this fraction of ones: 1 - (1 - p^k)^c.
double bloom_rate(double ones, std::uint32_t hashes, std::uint32_t groups);

} // namespace sieve
