// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Plans a blocked filter before it is built: how many bits a key sets, how many lines the filter needs, and
// its false positive rate.
#pragma once

#include <cstdint>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// The choices for a blocked filter besides its size.
struct BlockedShape {
    double alpha = 1.0;        // share of keys with more than one line to choose from
    std::uint32_t choices = 2; // lines that such a key chooses from
    std::uint32_t hashes = 0;  // bits a key sets; 0: the best number is chosen
};

// The image's integer form of alpha: a share of all 16-bit values.
std::uint16_t alpha_to_image(double alpha);
double alpha_from_image(std::uint16_t alpha);

// How much higher the rate is because each shard gets a random number of keys with mean `keys`: a factor.
// `rate` is the rate of a shard with just `keys` keys. A filter's rate is close to exp(-c m/n) with m bits
// and n keys, so that n (1 + e) keys give rate^(1 / (1 + e)). Its mean over e of variance 1/keys (Poisson),
// to the second order, is rate * (1 + (l^2 / 2 - l) / keys) with l = -ln(rate).
double rate_of_uneven_shards(double rate, double keys);

// The rate of a query, from the rate q of a random line of a shard (or filter) of `lines` lines:
// 1 - (1-q)^j if a query's choices are j different lines. Follows (3.4) of the one-plus-alpha paper, but is
// exact even in filters of a few lines, where choices often coincide.
double rate_of_query(double line_rate, std::uint64_t lines, const BlockedShape& shape);

// The least rate of a line, on top of the rate that its bits give. A line compares at most 64 bits of hash,
// so a non-member whose hash equals that of one of the line's keys matches, however long the pattern is.
double collision_rate(std::uint64_t keys, std::uint64_t lines);

// The best number of bits a key sets at a size, found by experiment.
std::uint32_t best_hashes(double bits_per_key, const BlockedShape& shape);

// The false positive rate of a filter of this shape without rebalancing, when each key is in its least loaded
// line: one-plus-alpha paper, eqs. (3.4), (3.5), with k independent bits of a 512-bit block. `shape.hashes`
// must be set.
double model_fpr(double bits_per_key, const BlockedShape& shape);

// The false positive rate of a filter of `keys` keys in `lines` lines, as the builder makes it. No formula is
// known for rebalancing (the two-choice paper leaves its analysis open). So the function builds a small
// filter of the same shape from random hashes and computes its exact rate from its bits. Except in filters of
// a handful of lines, the rate hardly depends on the number of keys: for sets smaller than the sample, the
// function builds several filters of the set's own size. `shape.hashes` must be set. Deterministic; takes 0.1
// s.
double predict_fpr(std::uint64_t keys, std::uint64_t lines, const BlockedShape& shape, std::uint32_t rounds);

// The fewest lines for which predict_fpr (with best_hashes unless the shape says otherwise) is at most `fpr`,
// to within 1%. Error: even most_bits_per_key are too few.
Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr, const BlockedShape& shape,
                                    std::uint32_t rounds);

} // namespace sieve
