// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Which of its lines each key of a blocked filter is put into: the heart of the builder.
#pragma once

#include <cstdint>
#include <span>

#include <sieve/image.h>

#include "libsieve/util/progress.hpp"

namespace sieve {

struct PlacementOptions {
    // Rounds of rebalancing after the online pass; 0 leaves the filter as the online rule made it.
    std::uint32_t rounds = 16;
    // For ties and moves; the same seed, keys and options give the same filter, whatever the number of
    // threads.
    std::uint64_t seed = 0;
};

struct PlacementReport {
    double online_rate = 0;      // pass probability of a random line after the online pass, mean over lines
    double final_rate = 0;       // likewise at the end
    std::uint32_t rounds = 0;    // rebalancing rounds that were run
    std::uint64_t saturated = 0; // bits whose counter reached its limit and could not be taken back
};

// Fills `lines` (as many as lookup.buckets, zeroed) with all keys, in any order.
//
// Online: each key goes where it adds least to the pass probability of a line (not where fewest keys are: the
// sum over lines of that probability is what the false positive rate is made of). Then rounds of rebalancing
// (two-choice paper, section 3.2): each key is looked at again. Beyond the paper: a key always moves to
// another line that is as good, and, ever less often, to a worse one (simulated annealing by Metropolised
// Gibbs sampling: J. Liu, Biometrika 83, 1996), which leads out of the local minima that the greedy rounds
// end in. The other line is proposed and accepted if what it costs is at most T times an exponential draw; so
// nothing is written for a key that stays, and only its two lines are looked at.
//
// Parallel by the parts of the filter that keys touch (line_tasks.hpp), within the caller's limit of threads.
// Memory: a copy of the keys (16 bytes each) and one byte a key, 196 bytes a line. Time: 20 to 35 ns a key
// and round on a processor with AVX-512.
PlacementReport place_blocked(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                              std::span<sieve_line> lines, const PlacementOptions& options,
                              const Progress& progress);

} // namespace sieve
