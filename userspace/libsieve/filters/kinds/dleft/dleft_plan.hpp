// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Choosing a d-left filter before it is built: how large it must be, how good it will be.
//
// What comes of it, two subtables (two cache lines a lookup), semi-sorted, 16 rounds of balancing, 60,000
// keys:
//
//     bits a key        14       16       18       20       24       28       32
//     64-bit bucket   7.8e-4   1.9e-4   7.5e-5   3.7e-5   4.0e-6   2.1e-6   7.9e-7
//     128-bit bucket  1.3e-3   2.6e-4   5.5e-5   1.3e-5   1.2e-6   1.8e-7   2.5e-8
//
// A third subtable helps only an online filter, or where the average load is next to a whole number.
#pragma once

#include <cstdint>

#include "libsieve/filters/kinds/dleft/dleft_bucket.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

// The fewest lines of one subtable that give each key at least that many bits.
std::uint64_t dleft_lines_for_bits(std::uint64_t keys, double bits_per_key, const DleftShape& shape);

// False positive rate without balancing, in the limit of many keys: the d-left paper's differential equations
// and formula (1), as a product instead of a sum; grouped: section II-C.
double model_dleft_fpr(double bits_per_key, const DleftShape& shape);

// False positive rate of a filter of `keys` keys with `lines` lines in each subtable as the builder makes it.
// No formula is known for balancing, so a filter of random hashes and the same load is built and its rate
// taken exactly from its bits; sets smaller than the sample are predicted by several filters of their own
// size. A shape that cannot hold the keys is given the rate 1. Deterministic; takes a few hundredths of a
// second.
double predict_dleft_fpr(std::uint64_t keys, std::uint64_t lines, const DleftShape& shape,
                         std::uint32_t rounds);

// The fewest lines of one subtable for which predict_dleft_fpr is at most `fpr`, to within 1%. Fails if 256
// bits a key do not do.
Result<std::uint64_t> dleft_lines_for_fpr(std::uint64_t keys, double fpr, const DleftShape& shape,
                                          std::uint32_t rounds);

} // namespace sieve
