// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/dleft/dleft_plan.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "libsieve/filters/kinds/dleft/dleft_builder.hpp"

namespace sieve {
namespace {

constexpr DleftShape narrow{.kind = SIEVE_KIND_DLEFT64, .subtables = 2, .sorting = 1};
constexpr DleftShape wide{.kind = SIEVE_KIND_DLEFT128, .subtables = 2, .sorting = 2};

double built_rate(std::uint64_t keys, std::uint64_t lines, const DleftShape& shape, std::uint32_t rounds) {
    std::mt19937_64 random(77);
    std::vector<sieve_hash> hashes(keys);
    for (auto& hash : hashes) hash = {random(), random()};
    sieve_lookup lookup{};
    store_shape(shape, lookup);
    lookup.buckets = static_cast<__u32>(lines);
    std::vector<sieve_line> filter(lines * shape.subtables);
    EXPECT_TRUE(place_dleft(hashes, lookup, filter, {.rounds = rounds}, {}).has_value());
    return expected_dleft_fpr(lookup, filter);
}

TEST(DleftPlan, LinesForBits) {
    EXPECT_EQ(dleft_lines_for_bits(64000, 16, narrow), 1000U);
    EXPECT_EQ(dleft_lines_for_bits(64000, 20, wide), 1250U);
    EXPECT_EQ(dleft_lines_for_bits(1, 1, narrow), 1U);
}

TEST(DleftPlan, ModelIsThePapers) {
    const DleftShape three{.kind = SIEVE_KIND_DLEFT64, .subtables = 3, .sorting = 1};
    EXPECT_NEAR(model_dleft_fpr(16, three), 4.477e-4, 0.002 * 4.477e-4);
    const DleftShape plain{.kind = SIEVE_KIND_DLEFT64, .subtables = 3, .sorting = 0};
    EXPECT_NEAR(model_dleft_fpr(16, plain), 8.937e-4, 0.002 * 8.937e-4);
    const DleftShape big{.kind = SIEVE_KIND_DLEFT128, .subtables = 3, .sorting = 2};
    EXPECT_NEAR(model_dleft_fpr(20, big), 2.245e-5, 0.002 * 2.245e-5);
    const DleftShape grouped{.kind = SIEVE_KIND_DLEFT128, .subtables = 3, .sorting = 2, .grouped = true};
    EXPECT_NEAR(model_dleft_fpr(20, grouped), 2.042e-5, 0.002 * 2.042e-5);
    // Overfull filters, too: the model includes overflowed buckets.
    EXPECT_NEAR(model_dleft_fpr(9, narrow),
                built_rate(57600, dleft_lines_for_bits(57600, 9, narrow), narrow, 0),
                0.02 * model_dleft_fpr(9, narrow));
}

TEST(DleftPlan, PredictsWhatIsBuilt) {
    for (const DleftShape& shape : {narrow, wide})
        for (const double bits : {14.0, 16.0, 20.0, 24.0}) {
            const std::uint64_t lines = dleft_lines_for_bits(200'000, bits, shape);
            const double predicted = predict_dleft_fpr(200'000, lines, shape, 8);
            EXPECT_NEAR(built_rate(200'000, lines, shape, 8), predicted, 0.05 * predicted) << bits;
        }
}

TEST(DleftPlan, PredictsSmallSets) {
    // Nine keys in two lines: most buckets hold none or one.
    const double nine = predict_dleft_fpr(9, 1, narrow, 8);
    EXPECT_GT(nine, 0);
    EXPECT_LT(nine, 1e-4);
    EXPECT_EQ(predict_dleft_fpr(9, 1, narrow, 8), nine);   // deterministic
    EXPECT_EQ(predict_dleft_fpr(10'000, 1, narrow, 8), 1); // cannot be
}

TEST(DleftPlan, NarrowBucketsUpToSixteenBitsWideOnesBeyond) {
    constexpr std::uint64_t keys = 1U << 15;
    const auto rate = [](const DleftShape& shape, double bits) {
        return predict_dleft_fpr(keys, dleft_lines_for_bits(keys, bits, shape), shape, 8);
    };
    for (const double bits : {14.0, 16.0}) EXPECT_LT(rate(narrow, bits), rate(wide, bits)) << bits;
    for (const double bits : {20.0, 32.0}) EXPECT_GT(rate(narrow, bits), rate(wide, bits)) << bits;
}

TEST(DleftPlan, FindsTheFewestLinesForARate) {
    for (const double fpr : {1e-2, 1e-3, 1e-5}) {
        const auto lines = dleft_lines_for_fpr(40'000, fpr, narrow, 4);
        ASSERT_TRUE(lines.has_value());
        EXPECT_LE(predict_dleft_fpr(40'000, *lines, narrow, 4), fpr);
        EXPECT_GT(predict_dleft_fpr(40'000, *lines * 98 / 100, narrow, 4), fpr);
    }
    EXPECT_FALSE(dleft_lines_for_fpr(40'000, 0, narrow, 4).has_value());
    EXPECT_FALSE(dleft_lines_for_fpr(40'000, 1e-300, narrow, 4).has_value());
    EXPECT_FALSE(dleft_lines_for_fpr(40'000, 1e-3, DleftShape{.subtables = 1}, 4).has_value());
}

} // namespace
} // namespace sieve
