// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Visits keys in an order unlike their own, for a pass that places each key once and never moves it. Keys are
// sorted by the lines that they go to, but such a pass works best when keys come from everywhere. The order
// is evenly spread, not random. The d-left filter needs an order that has nothing to do with its buckets;
// an even order doubles its rate.
#pragma once

#include <bit>
#include <cstddef>

namespace sieve {

// The numbers below n, each once, spread evenly at every moment, whatever n is: the van der Corput sequence,
// which counts with the bits reversed. (A stride near n divided by the golden ratio does as well for most n.
// For some it comes back to nearly the same place after a few hundred steps, so that one part after the other
// is filled; the rate of a blocked filter was then up to a fifth higher.)
class ScatteredOrder {
  public:
    explicit ScatteredOrder(std::size_t n) : n_(n), ones_(std::bit_ceil(n) - 1) {}

    // The next number. After the last one, the order begins anew with 0.
    std::size_t next() {
        const std::size_t now = at_;
        // With the highest bit set, the number may be too large. Then the one after it has that bit clear.
        const std::size_t next = after(at_);
        at_ = next < n_ ? next : after(next);
        return now;
    }

  private:
    // Counts one on: clears the leading ones and sets the bit below them.
    [[nodiscard]] std::size_t after(std::size_t at) const {
        const std::size_t zeros = ~at & ones_;
        if (zeros == 0) return 0;
        const std::size_t bit = std::bit_floor(zeros);
        return (at & (bit - 1)) | bit;
    }

    std::size_t n_;
    std::size_t ones_; // one in each bit that the numbers have
    std::size_t at_ = 0;
};

} // namespace sieve
