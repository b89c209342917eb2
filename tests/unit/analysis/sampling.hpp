// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reproducible random choices for the Monte Carlo oracles, and a measure of their noise.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace sieve::analysis::test {

/// A source with a fixed seed. It gives the same numbers with every standard library.
class Sampler {
  public:
    explicit Sampler(std::uint64_t seed) : engine_(seed) {}

    /// Uniform in 0..n-1 (bias below n / 2^64).
    std::uint64_t below(std::uint64_t n) { return engine_() % n; }

    /// True with probability p.
    bool chance(double p) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < p; }

  private:
    std::mt19937_64 engine_;
};

/// The mean of samples, and the standard error of that mean.
class Mean {
  public:
    void add(double x) {
        ++n_;
        sum_ += x;
        squares_ += x * x;
    }
    double value() const { return sum_ / n_; }
    double sigma() const { return std::sqrt((squares_ / n_ - value() * value()) / (n_ - 1)); }

  private:
    double n_ = 0;
    double sum_ = 0;
    double squares_ = 0;
};

} // namespace sieve::analysis::test
