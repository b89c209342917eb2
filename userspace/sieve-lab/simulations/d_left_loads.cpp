// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/simulations/d_left_loads.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>

namespace sieve::experiments {

DLeftTable::DLeftTable(unsigned subtables, std::uint32_t buckets_per_subtable)
    : subtables_(subtables), buckets_(buckets_per_subtable),
      load_(static_cast<std::size_t>(subtables) * buckets_per_subtable, 0) {
    assert(subtables >= 1 && buckets_per_subtable >= 1);
}

unsigned DLeftTable::choose(const std::uint32_t* candidates, Tie tie, Random& random) const {
    unsigned best = 0;
    unsigned equals = 1;
    for (unsigned i = 1; i < subtables_; ++i) {
        if (load_[candidates[i]] < load_[candidates[best]]) {
            best = i;
            equals = 1;
        } else if (tie == Tie::random && load_[candidates[i]] == load_[candidates[best]] &&
                   random.below(++equals) == 0) {
            best = i;
        }
    }
    return best;
}

void DLeftTable::insert(Random& random, std::uint64_t keys) {
    for (std::uint64_t key = 0; key < keys; ++key) {
        const std::size_t first = candidates_.size();
        for (unsigned i = 0; i < subtables_; ++i)
            candidates_.push_back(i * buckets_ + static_cast<std::uint32_t>(random.below(buckets_)));
        const unsigned best = choose(&candidates_[first], Tie::left, random);
        std::uint8_t& load = load_[candidates_[first + best]];
        assert(load < 255);
        ++load;
        chosen_.push_back(static_cast<std::uint8_t>(best));
    }
}

void DLeftTable::rebalance(Random& random, unsigned rounds, Tie tie) {
    for (unsigned round = 0; round < rounds; ++round) {
        for (std::size_t key = 0; key < chosen_.size(); ++key) {
            const std::uint32_t* candidates = &candidates_[key * subtables_];
            --load_[candidates[chosen_[key]]];
            const unsigned best = choose(candidates, tie, random);
            ++load_[candidates[best]];
            chosen_[key] = static_cast<std::uint8_t>(best);
        }
    }
}

analysis::d_left::SubtableLoads DLeftTable::loads() const {
    const std::size_t highest = *std::max_element(load_.begin(), load_.end());
    analysis::d_left::SubtableLoads result(subtables_, std::vector<double>(highest + 1, 0.0));
    std::vector<std::uint64_t> count(highest + 1);
    for (unsigned i = 0; i < subtables_; ++i) {
        std::fill(count.begin(), count.end(), 0);
        for (std::uint32_t b = 0; b < buckets_; ++b) ++count[load_[i * buckets_ + b]];
        for (std::size_t j = 0; j <= highest; ++j) result[i][j] = static_cast<double>(count[j]) / buckets_;
    }
    return result;
}

double DLeftTable::false_positive_grouped(const analysis::d_left::BucketLayout& layout,
                                          unsigned group) const {
    assert(group >= 1 && buckets_ % group == 0);
    double sum = 0;
    for (std::size_t first = 0; first < load_.size(); first += group) {
        unsigned total = 0;
        for (unsigned g = 0; g < group; ++g) total += load_[first + g];
        for (unsigned g = 0; g < group; ++g) {
            const unsigned load = load_[first + g];
            if (load == 0) continue;
            const unsigned bits = group * layout.fingerprint_bits / total + layout.sorted_bits(load);
            sum += std::ldexp(load, -static_cast<int>(bits));
        }
    }
    return sum / buckets_;
}

} // namespace sieve::experiments
