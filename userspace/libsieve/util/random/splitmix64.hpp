// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#pragma once

#include <cstdint>

#include <sieve/hash.h>

namespace sieve {

/// SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014):
/// the mix of sieve/hash.h over a counter. Any state is good, and neighbouring states give unrelated numbers.
class SplitMix64 {
  public:
    explicit SplitMix64(std::uint64_t state) : state_(state) {}

    std::uint64_t operator()() { return sieve_mix(state_ += 0x9e3779b97f4a7c15ULL); }

    /// Uniform in 0..n-1; the bias is below n / 2^64.
    std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>((*this)()) * n) >> 64);
    }

  private:
    std::uint64_t state_;
};

} // namespace sieve
