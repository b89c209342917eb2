// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace sieve {

/// A table of random numbers with a given distribution, indexed by random bits. Annealing adds these numbers
/// to costs; the table saves it a logarithm for each.
template <unsigned bits>
class NoiseTable {
  public:
    static constexpr unsigned index_bits = bits;

    /// The distribution is given by its quantile function.
    template <class Quantile>
    explicit NoiseTable(Quantile quantile) {
        for (std::size_t i = 0; i < table_.size(); i++)
            table_[i] = static_cast<float>(quantile((static_cast<double>(i) + 0.5) / table_.size()));
    }

    /// The lowest bits of `random` choose the element.
    [[nodiscard]] float operator()(std::uint64_t random) const { return table_[random % table_.size()]; }

    static NoiseTable exponential() {
        return NoiseTable([](double u) { return -std::log(u); });
    }
    /// argmin(cost - T Gumbel) draws from the Boltzmann distribution of temperature T.
    static NoiseTable gumbel() {
        return NoiseTable([](double u) { return -std::log(-std::log(u)); });
    }

  private:
    std::array<float, std::size_t{1} << bits> table_{};
};

} // namespace sieve
