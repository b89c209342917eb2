// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Places the keys of a blocked filter: decides which of its lines each key takes. This is the heart of the
// builder.
#pragma once

#include <cstdint>
#include <span>

#include <sieve/image.h>

#include "libsieve/util/parallel/progress.hpp"

namespace sieve {

struct PlacementOptions {
    // Rounds of rebalancing after the online pass; 0 leaves the filter as the online rule made it.
    std::uint32_t rounds = 16;
    // For ties and moves; the same seed, keys and options give the same filter, whatever the number of
    // threads.
    std::uint64_t seed = 0;
};

struct PlacementReport {
    // probability that a random line covers a random pattern, after the online pass
    double online_rate = 0;
    double final_rate = 0;       // the same at the end
    std::uint32_t rounds = 0;    // rebalancing rounds that were run
    std::uint64_t saturated = 0; // bits whose counter reached its limit and could not be decremented
};

// Fills `lines` (as many as lookup.buckets) with all keys, which are in hash_order.
//
// Online pass: each key goes to the line whose pass probability it raises least. (This is not always the line
// with the fewest keys: the false positive rate is made of the sum of the pass probabilities.) Rounds of
// rebalancing follow (two-choice paper, section 3.2): each round looks at each key again. Beyond the paper, a
// key always moves to another line that is as good. It also moves, less and less often, to a worse line
// (simulated annealing by Metropolised Gibbs sampling: J. Liu, Biometrika 83, 1996); this leads out of the
// local minima in which greedy rounds end. A move to another line is proposed and accepted if it costs at
// most T times an exponential draw. So a key that stays causes no write, and only two lines are read.
//
// Places the keys of each shard on their own (filters/placement/shards.hpp), in parallel within the caller's
// limit of threads. Memory: for each thread 196 bytes for each line of a shard, and 17 bytes for each of its
// keys (two choices). Time: 14 ns a key and round on a processor with AVX-512.
PlacementReport place_blocked(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                              std::span<sieve_line> lines, const PlacementOptions& options,
                              const Progress& progress);

// The same for shards `first` to `first + count - 1`, with their keys only. `lines` are those of the whole
// filter; the rates of the report are those of the shards. Each shard becomes what place_blocked() makes of
// it.
PlacementReport place_shards(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                             std::span<sieve_line> lines, std::uint32_t first, std::uint32_t count,
                             const PlacementOptions& options, const Progress& progress);

} // namespace sieve
