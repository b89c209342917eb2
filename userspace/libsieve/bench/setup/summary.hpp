// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Summarises many measurements of one thing.
#pragma once

#include <cstddef>
#include <vector>

namespace sieve::bench {

struct Summary {
    double median = 0;
    double low = 0;  // lower quartile
    double high = 0; // upper quartile
    std::size_t samples = 0;
};

[[nodiscard]] Summary summarise(std::vector<double> samples);

// One number for each round. Measurements of the same round saw the same disturbances, so take ratios round
// by round first and summarise them afterwards.
using Rounds = std::vector<double>;

[[nodiscard]] Rounds minus(const Rounds& left, const Rounds& right);
[[nodiscard]] Rounds ratio(const Rounds& left, const Rounds& right);

} // namespace sieve::bench
