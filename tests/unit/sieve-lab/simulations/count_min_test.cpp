// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/simulations/count_min.hpp"

#include <cmath>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "libsieve/analysis/less_hashing.hpp"

namespace sieve {
namespace {

// A skewed stream, like packets over flows: item i occurs about (items / (i + 1)) times.
std::map<std::uint64_t, std::uint64_t> skewed(std::uint64_t items, std::mt19937_64& random) {
    std::map<std::uint64_t, std::uint64_t> counts;
    for (std::uint64_t i = 0; i < items; i++) counts[random()] += items / (i + 1);
    return counts;
}

TEST(CountMin, IsNeverLow) {
    std::mt19937_64 random(1);
    for (const std::uint64_t width : {2U, 3U, 31U, 1009U})
        for (const std::uint32_t depth : {1U, 2U}) {
            auto sketch = CountMin::create(width, depth, random());
            ASSERT_TRUE(sketch);
            const auto counts = skewed(500, random);
            std::uint64_t total = 0;
            for (const auto& [item, count] : counts) {
                sketch->update(item, count - 1);
                sketch->update(item);
                total += count;
            }
            EXPECT_EQ(sketch->total(), total);
            for (const auto& [item, count] : counts) ASSERT_GE(sketch->estimate(item), count);
        }
}

TEST(CountMin, IsExactWhereNothingCollides) {
    auto sketch = CountMin::create(10'007, 4, 5);
    ASSERT_TRUE(sketch);
    for (std::uint64_t item = 1; item <= 50; item++) sketch->update(item << 32 | 7, item);
    for (std::uint64_t item = 1; item <= 50; item++) EXPECT_EQ(sketch->estimate(item << 32 | 7), item);
    EXPECT_EQ(sketch->estimate(12345), 0U);
}

// Theorem 9.1, over many draws of the hash functions and for several eps. The share of bad estimates stays
// below the bound. If all items occur equally often, the share comes close to what d rows must give: a
// non-member meets an item in a row with chance 1/w. A sketch with fewer rows would show.
TEST(CountMin, ErrsNoMoreOftenThanTheorem91Allows) {
    std::mt19937_64 random(2);
    struct Case {
        std::uint64_t width;
        std::uint32_t depth;
        double epsilon;
    };
    for (const Case& c :
         {Case{31, 2, 0.1}, Case{31, 3, 0.1}, Case{53, 4, 0.06}, Case{101, 5, 0.03}, Case{101, 2, 0.05}}) {
        const double bound = analysis::less_hashing::count_min_overestimate_bound(
            static_cast<double>(c.width), c.depth, c.epsilon);
        ASSERT_LT(bound, 0.5) << "an empty promise";
        int high = 0;
        int asked = 0;
        for (int draw = 0; draw < 400; draw++) {
            auto sketch = CountMin::create(c.width, c.depth, random());
            ASSERT_TRUE(sketch);
            const auto counts = skewed(100, random);
            for (const auto& [item, count] : counts) sketch->update(item, count);
            const double most = c.epsilon * static_cast<double>(sketch->total());
            for (const auto& [item, count] : counts) {
                high +=
                    static_cast<double>(sketch->estimate(item)) > static_cast<double>(count) + most ? 1 : 0;
                asked++;
            }
        }
        EXPECT_LE(high, bound * asked) << c.width << " x " << c.depth << ", eps " << c.epsilon;
    }
}

// One heavy item in an otherwise empty sketch. A non-member sees it only if both meet in all rows: h1 and h2
// agree, with chance 1/w^2 (w prime), or d = 1 and h1 agrees, with chance 1/w. Five sigma.
TEST(CountMin, RowsAreIndependentAsFarAsTwoHashesCan) {
    constexpr std::uint64_t width = 13;
    for (const std::uint32_t depth : {1U, 2U, 7U, 13U}) {
        int met = 0;
        constexpr int draws = 30'000;
        for (int draw = 0; draw < draws; draw++) {
            auto sketch = CountMin::create(width, depth, static_cast<std::uint64_t>(draw));
            sketch->update(77, 1000);
            met += sketch->estimate(1ULL << 40) != 0 ? 1 : 0;
        }
        const double expected = draws / (depth == 1 ? 13.0 : 169.0);
        EXPECT_NEAR(met, expected, 5 * std::sqrt(expected)) << depth;
    }
}

TEST(CountMin, TakesTheAdvisedShape) {
    for (const double epsilon : {0.2, 0.01, 1e-4}) {
        const auto shape = analysis::less_hashing::count_min_shape(epsilon);
        const auto sketch = CountMin::create(shape.width, shape.depth, 1);
        ASSERT_TRUE(sketch);
        EXPECT_LE(analysis::less_hashing::count_min_overestimate_bound(static_cast<double>(sketch->width()),
                                                                       sketch->depth(), epsilon),
                  epsilon);
    }
}

TEST(CountMin, RefusesShapesThatCannotBe) {
    const auto refused = [](const Result<CountMin>& made) {
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().kind, ErrorKind::invalid_request);
    };
    refused(CountMin::create(0, 1, 1));
    refused(CountMin::create(1, 1, 1));
    refused(CountMin::create(100, 2, 1));
    refused(CountMin::create(4294967311, 1, 1)); // a prime, too large
    refused(CountMin::create(31, 0, 1));
    refused(CountMin::create(31, 32, 1));
    EXPECT_TRUE(CountMin::create(31, 31, 1));
}

} // namespace
} // namespace sieve
