// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/sizing.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace sieve {
namespace {

struct Curve {
    const char* name;
    double (*rate)(std::uint64_t lines);
};

// Of these, none rises with the lines.
const std::vector<Curve> curves = {
    {"exponential", [](std::uint64_t lines) { return std::exp2(-0.001 * static_cast<double>(lines)); }},
    {"steep at the end", [](std::uint64_t lines) { return std::exp2(-std::pow(lines / 5000.0, 4)); }},
    {"flat at the end", [](std::uint64_t lines) { return std::exp2(-4 * std::log2(1 + lines / 300.0)); }},
    {"in steps", [](std::uint64_t lines) { return std::exp2(-2.0 * static_cast<double>(lines / 1500)); }},
    {"a cliff", [](std::uint64_t lines) { return lines < 7777 ? 1.0 : 0.0; }},
};

constexpr std::uint64_t most = 1'000'000;

std::uint64_t fewest_one_by_one(const Curve& curve, double fpr) {
    std::uint64_t lines = 1;
    while (curve.rate(lines) > fpr) lines++;
    return lines;
}

TEST(FewestLines, AreFoundToWithinThePrecision) {
    for (const Curve& curve : curves)
        for (const double fpr : {0.9, 0.1, 1e-3, 1e-6})
            for (const std::uint64_t least : {1, 100, 7000}) {
                const std::uint64_t exactly = fewest_one_by_one(curve, fpr);
                if (least > exactly) continue;
                const auto found = fewest_lines(fpr, {.least = least, .most = most}, curve.rate);
                ASSERT_TRUE(found) << curve.name;
                EXPECT_LE(curve.rate(*found), fpr) << curve.name;
                EXPECT_LE(static_cast<double>(*found), static_cast<double>(exactly) * 1.01 + 1)
                    << curve.name << ", " << fpr << " from " << least;
            }
}

// Each try may build a filter.
TEST(FewestLines, TakeFewTries) {
    int tries = 0;
    const auto found = fewest_lines(1e-6, {.least = 1000, .most = most}, [&](std::uint64_t lines) {
        tries++;
        return curves[0].rate(lines);
    });
    ASSERT_TRUE(found);
    EXPECT_LE(tries, 12);
}

TEST(FewestLines, AreNoneWhereNoSizeSuffices) {
    const auto half = [](std::uint64_t) { return 0.5; };
    for (const double fpr : {0.1, 0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
        EXPECT_FALSE(fewest_lines(fpr, {.least = 10, .most = most}, half)) << fpr;
    EXPECT_EQ(fewest_lines(0.5, {.least = 1, .most = most}, half), 1);
    EXPECT_EQ(fewest_lines(0.5, {.least = 10, .most = 3}, [](std::uint64_t lines) { return lines < 3; }), 3);
}

} // namespace
} // namespace sieve
