// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Balls and bins for the d-left filter: where each key lands, without fingerprints. The simulations of F.
// Bonomi et al., "Bloom Filters via d-Left Hashing and Dynamic Bit Reassignment" (Allerton 2006, sections
// II-B and II-D) work the same way.
#pragma once

#include <cstdint>
#include <vector>

#include "libsieve/analysis/d_left.hpp"
#include "sieve-lab/simulations/random.hpp"

namespace sieve::experiments {

/// What a key does when it is inserted again and several of its buckets are least loaded.
enum class Tie { left, random };

/// A d-left table of counts.
class DLeftTable {
  public:
    /// A bucket holds at most 255 keys.
    DLeftTable(unsigned subtables, std::uint32_t buckets_per_subtable);

    /// Inserts keys one by one. A key has one random bucket in each subtable and goes into the least loaded
    /// of them, the leftmost if several are.
    void insert(Random& random, std::uint64_t keys);

    /// Section II-D: takes each key out, in the order of insertion, and puts it back into its least loaded
    /// bucket.
    void rebalance(Random& random, unsigned rounds, Tie tie);

    /// Q_ij as measured; for the formulas of analysis::d_left.
    analysis::d_left::SubtableLoads loads() const;

    /// analysis::d_left::false_positive_grouped for the groups of `group` neighbours that are there, each
    /// with its own total load. Precondition: group divides the number of buckets.
    double false_positive_grouped(const analysis::d_left::BucketLayout& layout, unsigned group) const;

  private:
    unsigned choose(const std::uint32_t* candidates, Tie tie, Random& random) const;

    unsigned subtables_;
    std::uint32_t buckets_;
    std::vector<std::uint8_t> load_;        // subtable by subtable
    std::vector<std::uint32_t> candidates_; // of each key, one of each subtable
    std::vector<std::uint8_t> chosen_;      // of each key: the subtable it is in
};

} // namespace sieve::experiments
