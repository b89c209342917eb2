// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The Markov chain on the number of ones in a small Bloom filter, one probe at a time.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sieve::analysis {

/// Distribution of the number of ones X in a filter of m bits. Each call of probe() adds one probe.
///
/// Every step adds two non-negative products, so all entries keep their relative precision. Entries below
/// 1e-290 at the edges are dropped, which keeps the arithmetic out of the denormal range.
class OnesChain {
  public:
    /// An empty filter: X = 0 with certainty.
    explicit OnesChain(std::uint64_t m) : pmf_(m + 1, 0.0), high_(0) { pmf_[0] = 1.0; }

    /// Adds one more probe of a key that has already made `drawn` distinct probes. The probe is uniform over
    /// the other m - drawn bits. All bits that the key drew earlier are ones, so the probe meets a one with
    /// probability (x - drawn) / (m - drawn). With drawn = 0 throughout, probes are drawn with replacement.
    void probe(std::uint64_t drawn = 0) {
        const std::size_t m = pmf_.size() - 1;
        assert(drawn < m);
        const double per_bit = 1.0 / static_cast<double>(m - drawn);
        if (high_ < m) ++high_;
        for (std::size_t x = high_; x > low_; --x) {
            const double stay = x > drawn ? static_cast<double>(x - drawn) * per_bit : 0.0;
            const double rise = static_cast<double>(m - (x - 1)) * per_bit;
            pmf_[x] = pmf_[x] * stay + pmf_[x - 1] * rise;
        }
        pmf_[low_] *= low_ > drawn ? static_cast<double>(low_ - drawn) * per_bit : 0.0;
        while (low_ < high_ && pmf_[low_] < negligible) pmf_[low_++] = 0.0;
        while (high_ > low_ && pmf_[high_] < negligible) pmf_[high_--] = 0.0;
    }

    /// Pr(X = x), x = 0..m.
    const std::vector<double>& pmf() const { return pmf_; }

    /// E[g(X)] for g given by its values at 0..m.
    double mean_of(const std::vector<double>& g) const {
        assert(g.size() == pmf_.size());
        double sum = 0;
        for (std::size_t x = low_; x <= high_; ++x) sum += pmf_[x] * g[x];
        return sum;
    }

  private:
    static constexpr double negligible = 1e-290;
    std::vector<double> pmf_;
    std::size_t low_ = 0;
    std::size_t high_;
};

} // namespace sieve::analysis
