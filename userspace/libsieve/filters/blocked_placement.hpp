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
    // Greedy rounds that follow the planned ones until one gains less than this share of the rate.
    double least_gain = 0.002;
    std::uint32_t most_rounds = 40;
    // For ties and noise; the same seed, keys and options give the same filter.
    std::uint64_t seed = 0;
};

struct PlacementReport {
    double online_rate = 0;      // pass probability of a random line after the online pass, mean over lines
    double final_rate = 0;       // likewise at the end
    std::uint32_t rounds = 0;    // rebalancing rounds that were run
    std::uint64_t saturated = 0; // bits whose counter reached its limit and could not be taken back
};

// The order in which place_blocked wants its keys: by their first line.
inline bool first_line_order(const sieve_hash& a, const sieve_hash& b) {
    const auto major = [](const sieve_hash& hash) { return (hash.locate << 32) | (hash.locate >> 32); };
    return major(a) != major(b) ? major(a) < major(b) : a.test < b.test;
}

// Fills `lines` (as many as lookup.buckets, zeroed) with all keys.
//
// Online: each key goes where it adds least to the pass probability of a line (not where fewest keys are: the
// sum over lines of that probability is what the false positive rate is made of). Then rounds of rebalancing
// (two-choice paper, section 3.2): each key is taken out and put in anew, ties broken at random. Beyond the
// paper: a noise is laid on the comparison that cools from round to round (simulated annealing by Gumbel
// perturbation), which leads out of the local minima that the greedy rounds end in.
//
// Keys should be sorted by their first line (hash.locate's lower half), so that one of the lines is in the
// cache. Memory: 256 bytes a line and one byte a key besides.
PlacementReport place_blocked(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                              std::span<sieve_line> lines, const PlacementOptions& options,
                              const Progress& progress);

} // namespace sieve
