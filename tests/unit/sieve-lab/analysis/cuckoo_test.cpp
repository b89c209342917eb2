// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/analysis/cuckoo.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "libsieve/filters/kinds/exact/exact_geometry.hpp"

namespace sieve::analysis {
namespace {

/// The literature gives the average degree at the threshold, which is 2 * lanes * load.
TEST(CuckooThreshold, IsThatOfThePaper) {
    EXPECT_NEAR(cuckoo_threshold(2), 3.588 / 4, 2e-4);
    EXPECT_NEAR(cuckoo_threshold(3), 5.755 / 6, 2e-4);
    EXPECT_NEAR(cuckoo_threshold(4), 7.843 / 8, 2e-4);
    EXPECT_NEAR(cuckoo_threshold(5), 9.896 / 10, 2e-4);
}

TEST(CuckooThreshold, IsAboveEveryLoadThatIsAimedAt) {
    for (const exact::Shape& shape : exact::shapes())
        EXPECT_LT(shape.load, cuckoo_threshold(static_cast<int>(shape.lanes)) - 0.004) << shape.lanes;
}

TEST(LeastExactBits, CountSets) {
    // Differences of logarithms of large factorials: five digits are left.
    EXPECT_NEAR(least_exact_bits(1), 32, 1e-4);
    EXPECT_NEAR(least_exact_bits(2), (32 + std::log2(4294967295.0) - 1) / 2, 1e-4);
    EXPECT_NEAR(least_exact_bits(1'000'000), 13.511, 1e-3); // log2(2^32 e / n), nearly
    EXPECT_NEAR(least_exact_bits(1'000'000), std::log2(4294967296.0 * std::exp(1) / 1e6), 1e-2);
}

} // namespace
} // namespace sieve::analysis
