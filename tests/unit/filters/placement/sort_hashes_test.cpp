// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/placement/sort_hashes.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/filters/placement/distinct_hashes.hpp"

namespace sieve {
namespace {

// Any number of hashes, whose values come from all of them or from a few, sorted as std::sort does.
TEST(SortHashes, SortsAsTheStandardLibraryDoes) {
    std::mt19937_64 random(1);
    for (const std::size_t count : {0U, 1U, 2U, 16U, 17U, 100U, 2'047U, 5'000U, 300'000U})
        for (const std::uint64_t values :
             {std::uint64_t{1}, std::uint64_t{5}, std::uint64_t{1000}, std::uint64_t{0}})
            for (const unsigned known : {0U, 10U, 13U, 60U, 64U}) {
                std::vector<sieve_hash> hashes;
                const std::uint64_t same = known == 0 ? 0 : ~std::uint64_t{0} << (64 - known);
                const std::uint64_t upper = random() & same;
                for (std::size_t i = 0; i < count; i++) {
                    std::uint64_t order = random();
                    if (values != 0) order = order % values * 0x9e3779b97f4a7c15;
                    order = upper | (order & ~same);
                    hashes.push_back({.locate = order << 32 | order >> 32, .test = random() % 3});
                }
                std::vector<sieve_hash> expected = hashes;
                std::sort(expected.begin(), expected.end(), hash_order);
                sort_hashes(hashes, known);
                ASSERT_TRUE(std::equal(hashes.begin(), hashes.end(), expected.begin(), expected.end(),
                                       [](const sieve_hash& a, const sieve_hash& b) {
                                           return a.locate == b.locate && a.test == b.test;
                                       }))
                    << count << " hashes, " << values << " values, known " << known;
            }
}

} // namespace
} // namespace sieve
