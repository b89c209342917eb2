// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Choosing a blocked filter before it is built: how many bits a key sets, how large it must be, how good it
// will be.
#pragma once

#include <cstdint>

#include "libsieve/util/result.hpp"

namespace sieve {

// What can be chosen of a blocked filter besides its size.
struct BlockedShape {
    double alpha = 1.0;        // share of keys with more than one line to choose from
    std::uint32_t choices = 2; // lines that such a key chooses from
    std::uint32_t hashes = 0;  // bits a key sets; 0: the best number is chosen
};

// The image's integer form of alpha: a share of all 16-bit values.
std::uint16_t alpha_to_image(double alpha);
double alpha_from_image(std::uint16_t alpha);

// The rate of a query from that of a random line: 1 - (1-q)^j where its choices fall on j different lines of
// `lines`, as (3.4) of the one-plus-alpha paper but exact in filters of a few lines, too, whose choices often
// coincide.
double rate_of_query(double line_rate, std::uint64_t lines, const BlockedShape& shape);

// No line is asked with more than 64 bits of hash: a non-member whose hash equals that of one of the line's
// keys is taken for it, however long the pattern. This is the least rate of a line, on top of what its bits
// give.
double collision_rate(std::uint64_t keys, std::uint64_t lines);

// The best number of bits a key sets at a size, found by experiment.
std::uint32_t best_hashes(double bits_per_key, const BlockedShape& shape);

// False positive rate of a filter of that shape (hashes must be set) without rebalancing, each key in its
// least loaded line: one-plus-alpha paper, eqs. (3.4), (3.5), k independent bits of a 512-bit block.
double model_fpr(double bits_per_key, const BlockedShape& shape);

// False positive rate of a filter of `keys` keys in `lines` lines as the builder makes it. No formula is
// known for rebalancing (the two-choice paper leaves its analysis open), so a small filter of the same shape
// is built out of random hashes and its rate is taken exactly from its bits. The rate hardly depends on the
// number of keys, but for a handful of lines: sets smaller than the sample are predicted by several filters
// of their own size. Hashes must be set. Deterministic; takes 0.1 s.
double predict_fpr(std::uint64_t keys, std::uint64_t lines, const BlockedShape& shape, std::uint32_t rounds);

// The fewest lines for which predict_fpr (with best_hashes unless the shape says otherwise) is at most `fpr`,
// to within 1%. Fails if even most_bits_per_key do not do.
Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr, const BlockedShape& shape,
                                    std::uint32_t rounds);

} // namespace sieve
