// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The probability that a line covers a non-member's pattern (sieve/pattern.h), from the number of ones in the
// line's words.
#pragma once

#include <array>
#include <cstdint>

#include <sieve/image.h>

namespace sieve {

// The number of ones in each of a line's words.
using WordFill = std::array<std::uint8_t, SIEVE_LINE_WORDS>;

WordFill word_fill(const sieve_line& line);

// The exact probability that a line covers a random pattern of k bits, for one k. Full rounds contribute
// (ones/64) for each of the eight words. Each group of the remaining bits averages over the words that it may
// use. The bits of a pattern are independent once its words are chosen, so this is no approximation. (The
// tests show the one limit: the hash only stretches 64 bits.)
class PatternRate {
  public:
    explicit PatternRate(std::uint32_t hashes);

    [[nodiscard]] float operator()(const WordFill& fill) const {
        float full = 1;
        for (const auto ones : fill) full *= rounds_[ones];
        if (rest_ == 0) return full;
        const auto share = [&fill](int word) {
            return static_cast<float>(fill[static_cast<std::size_t>(word)]);
        };
        constexpr float w = 1.0F / 64;
        if (rest_ & 4)
            full *= 0.5F * w * w * w * w *
                    (share(0) * share(2) * share(4) * share(6) + share(1) * share(3) * share(5) * share(7));
        if (rest_ & 2)
            full *= 0.25F * w * w *
                    (share(0) * share(4) + share(1) * share(5) + share(2) * share(6) + share(3) * share(7));
        if (rest_ & 1)
            full *= 0.125F * w *
                    (share(0) + share(1) + share(2) + share(3) + share(4) + share(5) + share(6) + share(7));
        return full;
    }

  private:
    std::uint32_t rest_;
    std::array<float, SIEVE_LINE_BITS / SIEVE_LINE_WORDS + 1> rounds_; // (ones/64)^(k/8)
};

} // namespace sieve
