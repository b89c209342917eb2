// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The unblocked filter with c groups of k hash functions as the two-choice paper simulates it (S. Lumetta, M.
// Mitzenmacher, Internet Mathematics 4, 2007, section 3): independent random hashes, any number of bits.
//
// The product's filter (filters/bloom_placement.hpp) derives its hashes from two words and has whole lines of
// 512 bits. Its figures are compared with those of the filter here.
#pragma once

#include <cstdint>
#include <vector>

#include "sieve-lab/simulations/random.hpp"

namespace sieve::experiments {

/// How a key's hashes are drawn.
enum class GroupHashing {
    independent, ///< k numbers for each group
    doubled      ///< a1 + i a2 mod m, a2 odd, two numbers for each group; section 3.1
};

/// A filter of `bits` bits and its keys, each in one of the key's groups.
class GreedyGroups {
  public:
    /// Draws the hashes of all keys. Preconditions: bits < 2^32, k >= 1, 1 <= groups <= 255.
    GreedyGroups(Random& random, std::uint32_t keys, std::uint32_t bits, unsigned k, unsigned groups,
                 GroupHashing hashing = GroupHashing::independent);

    /// Section 3.1, online: each key takes the group that needs the fewest new ones. Ties are broken at
    /// random.
    void insert_all(Random& random);

    /// Section 3.2, one round: takes each key out, in the order of insertion, and puts it into the group that
    /// needs the fewest new ones. Ties are broken at random.
    void rebalance(Random& random);

    /// Fraction of ones, p.
    double ones() const { return static_cast<double>(ones_) / bits_; }

    /// 1 - (1 - p^k)^c, from which the paper's rates are calculated.
    double false_positive() const;

  private:
    const std::uint32_t* positions(std::uint32_t key, unsigned group) const {
        return &positions_[(static_cast<std::size_t>(key) * groups_ + group) * k_];
    }
    unsigned cheapest(std::uint32_t key, Random& random) const;
    void put(std::uint32_t key, unsigned group);
    void take(std::uint32_t key);

    std::uint32_t keys_;
    std::uint32_t bits_;
    unsigned k_;
    unsigned groups_;
    std::uint64_t ones_ = 0;
    std::vector<std::uint32_t> positions_;
    std::vector<std::uint16_t> count_; // of each bit: the probes that need it; never near its limit
    std::vector<std::uint8_t> chosen_; // of each key
};

} // namespace sieve::experiments
