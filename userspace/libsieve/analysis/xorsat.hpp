// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Lines of random linear equations over GF(2), and the false positive rate of a filter made of them
// (sieve/xorsat.h). The derivation is in docs/xorsat.md.
#pragma once

namespace sieve::analysis::xorsat {

/// The unknowns of a line.
inline constexpr int unknowns = 496;
/// q can be any number from 0 to this.
inline constexpr int most_q = 255;

/// The probability that this many random equations have a solution. An equation depends on those before it
/// with probability 2^(rank - unknowns), since they span 2^rank of all 2^unknowns left sides. If it does, its
/// right side is wrong half of the time; if it does not, the rank grows by one.
double solvable(int equations);

/// The false positive rate of a line with this q: the keys of class c compare (q + c) / 8 bits, rounded down,
/// and the eight classes are equally likely.
double rate_of_q(int q);

/// The mean rate of a line of `keys` random keys with the largest q that has a solution.
double rate_of_line(int keys);

/// The rate of a filter without exports, in the limit of many lines: the mean of rate_of_line over a Poisson
/// distribution of the number of keys.
double rate_without_exports(double bits_per_key);

} // namespace sieve::analysis::xorsat
