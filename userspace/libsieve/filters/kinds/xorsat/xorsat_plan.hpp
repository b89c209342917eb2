// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Plans a XORSAT filter before it is built: how many lines it needs, and its false positive rate.
//
// False positive rates of a million keys:
//
//     bits a key        8        10       12       14       16       20       24       32
//     without exports   5.7e-3   1.7e-3   5.4e-4   1.8e-4   6.6e-5   9.9e-6   1.8e-6   1.0e-7
//     with exports      5.1e-3   1.3e-3   3.5e-4   9.3e-5   2.4e-5   1.7e-6   1.3e-7   8.6e-10
#pragma once

#include <cstdint>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// The false positive rate of a filter of `keys` keys in `lines` lines after this many sweeps of exports (0:
// none). The rate of a line follows from its number of keys. Without exports, that number has a binomial
// distribution. The numbers with exports are those of a sample: sample filters get random keys and choose
// their exports, but no line is solved. Deterministic; takes a few thousandths of a second.
double predict_xorsat_fpr(std::uint64_t keys, std::uint64_t lines, std::uint32_t sweeps);

// The fewest lines for which predict_xorsat_fpr is at most `fpr`, to within 1%. Error: the rate is below that
// of a line without keys, 2.6e-10.
Result<std::uint64_t> xorsat_lines_for_fpr(std::uint64_t keys, double fpr, std::uint32_t sweeps);

} // namespace sieve
