// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/simulations/block_loads.hpp"

#include <cassert>
#include <cmath>
#include <cstddef>

namespace sieve::experiments {

std::vector<std::uint32_t> place_in_blocks(Random& random, std::uint64_t keys, std::uint64_t blocks,
                                           double alpha) {
    assert(blocks >= 1 && alpha >= 0 && alpha <= 1);
    std::vector<std::uint32_t> loads(blocks, 0);
    for (std::uint64_t key = 0; key < keys; ++key) {
        std::uint32_t* chosen = &loads[random.below(blocks)];
        if (alpha > 0 && random.chance(alpha)) {
            std::uint32_t* other = &loads[random.below(blocks)];
            if (*other < *chosen) chosen = other;
        }
        ++*chosen;
    }
    return loads;
}

double block_rate(Random& random, const std::vector<std::uint32_t>& loads, unsigned block_bits, unsigned k) {
    assert(block_bits >= 2 && k >= 1 && !loads.empty());
    // rate[ones] is tabulated, so that each power is computed once
    std::vector<double> rate(block_bits + 1);
    for (unsigned ones = 0; ones <= block_bits; ++ones)
        rate[ones] = std::pow(static_cast<double>(ones) / block_bits, k);

    std::vector<std::uint64_t> set_by(block_bits, 0); // the last block that set the bit, counted from 1
    double sum = 0;
    for (std::size_t b = 0; b < loads.size(); ++b) {
        unsigned ones = 0;
        const auto set = [&](std::uint64_t draw) {
            std::uint64_t& last = set_by[(draw * block_bits) >> 32];
            ones += last != b + 1 ? 1 : 0;
            last = b + 1;
        };
        const std::uint64_t probes = std::uint64_t{loads[b]} * k;
        for (std::uint64_t i = 0; i + 1 < probes; i += 2) {
            const std::uint64_t draws = random();
            set(draws >> 32);
            set(draws & 0xffffffff);
        }
        if (probes % 2 == 1) set(random() >> 32);
        sum += rate[ones];
    }
    return sum / static_cast<double>(loads.size());
}

} // namespace sieve::experiments
