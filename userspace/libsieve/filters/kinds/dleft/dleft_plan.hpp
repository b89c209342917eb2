// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Plans a d-left filter before it is built: how many lines it needs, and its false positive rate.
//
// False positive rates with two subtables (two cache lines a lookup), semi-sorted, 16 rounds of rebalancing,
// 60,000 keys:
//
//     bits a key        14       16       18       20       24       28       32
//     64-bit bucket   7.8e-4   1.9e-4   7.5e-5   3.7e-5   4.0e-6   2.1e-6   7.9e-7
//     128-bit bucket  1.3e-3   2.6e-4   5.5e-5   1.3e-5   1.2e-6   1.8e-7   2.5e-8
//
// A third subtable helps only a filter without rebalancing, or one whose average load is close to a whole
// number.
#pragma once

#include <cstdint>

#include "libsieve/filters/kinds/dleft/dleft_bucket.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// The fewest lines of one subtable that give each key at least `bits_per_key` bits.
std::uint64_t dleft_lines_for_bits(std::uint64_t keys, double bits_per_key, const DleftShape& shape);

// The false positive rate without rebalancing, in the limit of many keys: the d-left paper's differential
// equations and formula (1), with a product instead of the sum. Grouped shapes: section II-C.
double model_dleft_fpr(double bits_per_key, const DleftShape& shape);

// The false positive rate of a filter of `keys` keys with `lines` lines in each subtable, as the builder
// makes it. No formula is known for rebalancing. So the function builds a filter of random hashes with the
// same load and computes its exact rate from its bits; for sets smaller than the sample, it builds several
// filters of the set's own size. The rate of a shape that cannot hold the keys is 1. Deterministic; takes a
// few hundredths of a second.
double predict_dleft_fpr(std::uint64_t keys, std::uint64_t lines, const DleftShape& shape,
                         std::uint32_t rounds);

// The fewest lines of one subtable for which predict_dleft_fpr is at most `fpr`, to within 1%. Error: even
// 256 bits a key are too few.
Result<std::uint64_t> dleft_lines_for_fpr(std::uint64_t keys, double fpr, const DleftShape& shape,
                                          std::uint32_t rounds);

} // namespace sieve
