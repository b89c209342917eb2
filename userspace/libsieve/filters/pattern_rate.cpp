// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/pattern_rate.hpp"

#include <bit>
#include <cmath>

namespace sieve {

WordFill word_fill(const sieve_line& line) {
    WordFill fill{};
    for (std::size_t w = 0; w < fill.size(); w++)
        fill[w] = static_cast<std::uint8_t>(std::popcount(line.word[w]));
    return fill;
}

PatternRate::PatternRate(std::uint32_t hashes) : rest_(hashes % SIEVE_LINE_WORDS) {
    const auto rounds = static_cast<double>(hashes / SIEVE_LINE_WORDS);
    for (std::size_t ones = 0; ones < rounds_.size(); ones++)
        rounds_[ones] = static_cast<float>(std::pow(static_cast<double>(ones) / 64, rounds));
}

} // namespace sieve
