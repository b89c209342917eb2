// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The Count-Min sketch on two hash functions: A. Kirsch, M. Mitzenmacher, "Less Hashing, Same Performance:
// Building a Better Bloom Filter" (RSA 33, 2008), section 9.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libsieve/util/results/result.hpp"

namespace sieve {

/// Counts items in d rows of w counters. Row j counts an item at g_j = h1 + j h2 mod w. The hashes h1 and h2
/// are pairwise independent and w is prime, so two items that meet in more than one row meet in all.
///
/// An estimate is never below the truth. It exceeds the truth by more than eps N (N is the total of all
/// counts) with a probability of at most 2/(eps w^2) + (2/(eps w))^d over the choice of the hash functions.
/// This is Theorem 9.1, analysis::less_hashing::count_min_overestimate_bound.
class CountMin {
  public:
    /// Errors: a width that is not a prime below 2^32, no rows, or more rows than columns (row w would repeat
    /// row 0).
    static Result<CountMin> create(std::uint64_t width, std::uint32_t depth, std::uint64_t seed);

    /// Counts an item `count` more times.
    void update(std::uint64_t item, std::uint64_t count = 1);

    /// How often the item was counted; never too low.
    [[nodiscard]] std::uint64_t estimate(std::uint64_t item) const;

    /// N: the sum of all counts.
    [[nodiscard]] std::uint64_t total() const { return total_; }

    [[nodiscard]] std::uint64_t width() const { return width_; }
    [[nodiscard]] std::uint32_t depth() const { return depth_; }

  private:
    // Multilinear hashing of the item's halves modulo the prime 2^61 - 1: (a0 low + a1 high + b mod p) mod w.
    // It is pairwise independent, except for a bias below w / p from the last reduction.
    struct Hash {
        std::uint64_t a0, a1, b;
        [[nodiscard]] std::uint64_t operator()(std::uint64_t item, std::uint64_t width) const;
    };

    CountMin(std::uint64_t width, std::uint32_t depth, std::uint64_t seed);

    template <class Visit>
    void for_each_counter(std::uint64_t item, Visit visit) const;

    std::uint64_t width_;
    std::uint32_t depth_;
    Hash first_;
    Hash step_;
    std::uint64_t total_ = 0;
    std::vector<std::uint64_t> counters_; // row by row
};

} // namespace sieve
