// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Sizes and rates that mean the same for every kind of filter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <sieve/image.h>

namespace sieve {

/// Sizes outside these limits are refused.
inline constexpr double least_bits_per_key = 1;
inline constexpr double most_bits_per_key = 256;

/// The lowest false positive rate that is promised: no kind compares more than 64 bits of a key's hash.
inline constexpr double least_fpr = 1e-15;

/// The fewest lines that give each key at least `bits_per_key` bits, and at least one line.
std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key);

/// The bits that `lines` lines have for each of `keys` keys.
double bits_per_key_of(std::uint64_t keys, std::uint64_t lines);

/// Where fewest_lines() searches, and how exactly.
struct LinesSearch {
    std::uint64_t least = 1; ///< the first size to try
    std::uint64_t most = 1;
    double precision = 0.01; ///< the result may have such a share of lines more than needed
};

/// The fewest lines for which `rate(lines)`, a false positive rate, is at most `fpr`. Nothing if even the
/// most have a higher rate. The logarithm of a rate falls nearly in proportion to the lines, so that a few
/// tries suffice; each may build a small filter.
std::optional<std::uint64_t> fewest_lines(double fpr, const LinesSearch& search,
                                          const std::function<double(std::uint64_t)>& rate);

/// The number of witnesses of an image: one for a thousand keys, within bounds that keep small sets small and
/// the preflight short.
std::uint32_t witness_count(std::uint64_t keys);

/// rate_of_probes: the rate of a packet that makes `probes` probes (of a prefix set), from the rate of one
/// probe. rate_of_one_probe is the inverse.
double rate_of_probes(double rate, std::uint32_t probes);
double rate_of_one_probe(double rate, std::uint32_t probes);

} // namespace sieve
