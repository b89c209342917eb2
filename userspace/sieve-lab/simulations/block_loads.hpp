// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The blocked filters of the one-plus-alpha paper (E. Krimer, M. Erez, Internet Mathematics 7, 2010), as the
// paper's own simulator has them: a block has any number of bits, and a key goes into the less loaded of two
// blocks.
//
// The product's filter (filters/blocked_placement.hpp) differs on purpose: it has lines of 512 bits, sets one
// bit per 64-bit word, and puts each key where the key adds least to the false positive rate.
#pragma once

#include <cstdint>
#include <vector>

#include "sieve-lab/simulations/random.hpp"

namespace sieve::experiments {

/// Number of keys in each of `blocks` blocks after `keys` keys (Algorithms 2 to 4): a fraction alpha of the
/// keys goes to the less loaded of two random blocks, the first of equals; the others to a random block.
std::vector<std::uint32_t> place_in_blocks(Random& random, std::uint64_t keys, std::uint64_t blocks,
                                           double alpha);

/// The probability that a random block covers a non-member, from actual bits: each key of a block sets k
/// random bits out of `block_bits`, with replacement, and the rate is the mean of (ones / block_bits)^k over
/// the blocks ("the FPR is derived from the number of set bits", section 4). The bits do not influence the
/// placement, so they may be drawn after it, block by block. Any block_bits >= 2 will do, 500 included.
double block_rate(Random& random, const std::vector<std::uint32_t>& loads, unsigned block_bits, unsigned k);

} // namespace sieve::experiments
