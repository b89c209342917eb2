// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Random numbers for simulations: fast, and the same on every machine and with any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libsieve/util/random/splitmix64.hpp"

namespace sieve::experiments {

/// Mixes x: the result depends only on x, but looks unrelated to it.
inline std::uint64_t mix(std::uint64_t x) {
    return SplitMix64(x)();
}

/// xoshiro256++ (D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators", 2021). The
/// standard library's generators would be slower, and its distributions may differ between implementations.
class Random {
  public:
    using result_type = std::uint64_t;

    explicit Random(std::uint64_t seed) {
        for (std::uint64_t i = 0; i < 4; ++i) state_[i] = mix(seed + i * 0x9e3779b97f4a7c15);
    }

    static constexpr result_type min() { return 0; }
    static constexpr result_type max() { return ~result_type{0}; }

    result_type operator()() {
        const std::uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
        const std::uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = rotate(state_[3], 45);
        return result;
    }

    /// Uniform in 0..n-1; the bias is below n / 2^64.
    std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>((*this)()) * n) >> 64);
    }

    /// True with probability p.
    bool chance(double p) { return static_cast<double>((*this)() >> 11) * 0x1p-53 < p; }

  private:
    static constexpr std::uint64_t rotate(std::uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

    std::uint64_t state_[4]{};
};

} // namespace sieve::experiments
