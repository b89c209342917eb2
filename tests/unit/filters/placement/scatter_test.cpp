// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/placement/scatter.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace sieve {
namespace {

// Each number once; and after any number of steps, each of eight equal parts has its share of those visited.
TEST(ScatteredOrder, IsEvenAtEveryMoment) {
    for (const std::size_t n : {1U, 2U, 3U, 5U, 64U, 65U, 1000U, 99'840U, 100'160U, 131'072U}) {
        ScatteredOrder order(n);
        std::vector<int> seen(n);
        std::vector<double> parts(8);
        for (std::size_t i = 1; i <= n; i++) {
            const std::size_t at = order.next();
            ASSERT_LT(at, n);
            ASSERT_EQ(seen[at]++, 0) << n;
            parts[at * 8 / n]++;
            if (n < 1000) continue;
            // The discrepancy of the sequence is below (log2 i + 3) / 2 for each end of a part.
            for (const double count : parts)
                ASSERT_NEAR(count, static_cast<double>(i) / 8, 20) << n << " after " << i;
        }
        EXPECT_EQ(order.next(), 0U) << "it begins anew";
    }
}

} // namespace
} // namespace sieve
