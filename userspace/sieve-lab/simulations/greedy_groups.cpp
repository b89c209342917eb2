// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/simulations/greedy_groups.hpp"

#include <cassert>
#include <cstddef>

#include "libsieve/analysis/two_choice.hpp"

namespace sieve::experiments {

GreedyGroups::GreedyGroups(Random& random, std::uint32_t keys, std::uint32_t bits, unsigned k,
                           unsigned groups, GroupHashing hashing)
    : keys_(keys), bits_(bits), k_(k), groups_(groups), count_(bits, 0), chosen_(keys, 0) {
    assert(bits >= 1 && k >= 1 && groups >= 1 && groups <= 255);
    positions_.reserve(static_cast<std::size_t>(keys) * groups * k);
    for (std::uint64_t group = 0; group < std::uint64_t{keys} * groups; ++group) {
        if (hashing == GroupHashing::independent) {
            for (unsigned i = 0; i < k; ++i)
                positions_.push_back(static_cast<std::uint32_t>(random.below(bits)));
        } else {
            std::uint64_t at = random.below(bits);
            const std::uint64_t step = random.below(bits / 2) * 2 + 1;
            for (unsigned i = 0; i < k; ++i) {
                positions_.push_back(static_cast<std::uint32_t>(at));
                at = (at + step) % bits;
            }
        }
    }
}

unsigned GreedyGroups::cheapest(std::uint32_t key, Random& random) const {
    // Two equal hashes of a group count as two here. A share k^2 / 2m of the groups has such a pair, and it
    // matters only if the decision is close.
    unsigned best = 0;
    unsigned best_cost = ~0U;
    unsigned equals = 0;
    for (unsigned group = 0; group < groups_; ++group) {
        const std::uint32_t* at = positions(key, group);
        unsigned cost = 0;
        for (unsigned i = 0; i < k_; ++i) cost += count_[at[i]] == 0 ? 1 : 0;
        if (cost < best_cost) {
            best = group;
            best_cost = cost;
            equals = 1;
        } else if (cost == best_cost && random.below(++equals) == 0) {
            best = group;
        }
    }
    return best;
}

void GreedyGroups::put(std::uint32_t key, unsigned group) {
    const std::uint32_t* at = positions(key, group);
    for (unsigned i = 0; i < k_; ++i) ones_ += count_[at[i]]++ == 0 ? 1 : 0;
    chosen_[key] = static_cast<std::uint8_t>(group);
}

void GreedyGroups::take(std::uint32_t key) {
    const std::uint32_t* at = positions(key, chosen_[key]);
    for (unsigned i = 0; i < k_; ++i) ones_ -= --count_[at[i]] == 0 ? 1 : 0;
}

void GreedyGroups::insert_all(Random& random) {
    for (std::uint32_t key = 0; key < keys_; ++key) put(key, groups_ == 1 ? 0 : cheapest(key, random));
}

void GreedyGroups::rebalance(Random& random) {
    for (std::uint32_t key = 0; key < keys_; ++key) {
        take(key);
        put(key, cheapest(key, random));
    }
}

double GreedyGroups::false_positive() const {
    return analysis::two_choice::fpp_given_ones(ones(), k_, groups_);
}

} // namespace sieve::experiments
