// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How full a table can be in which each key has two buckets to choose from, and keys may move. And how small
// any exact set can be.
#pragma once

#include <cstdint>

namespace sieve::analysis {

/// The load below which nearly every large table of buckets with `lanes` places (at least 2) has room for its
/// keys, and above which hardly any has: the threshold for orienting the edges of a random graph so that no
/// vertex gets more than `lanes` (Fernholz, Ramachandran, "The k-orientability Thresholds for G(n,p)"; Cain,
/// Sanders, Wormald, "The Random Graph Threshold for k-orientability and a Fast Algorithm for Optimal
/// Multiple-Choice Allocation"; both SODA 2007).
double cuckoo_threshold(int lanes);

/// The bits a key that every exact set of `keys` of 2^32 possible keys needs: log2 C(2^32, keys) / keys.
double least_exact_bits(std::uint64_t keys);

} // namespace sieve::analysis
