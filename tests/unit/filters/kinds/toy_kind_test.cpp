// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A kind of filter that no other file knows. User space works with it where the kinds that it gets have it.
// docs/adding-a-kind.md says what a kind needs.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/kinds/plan.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/sizing.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

constexpr auto toy_number = static_cast<sieve_kind>(200);

/// The bit of a table that a key sets: a Bloom filter with one hash function.
std::uint64_t bit_of(const sieve_lookup& lookup, const sieve_hash& hash) {
    return hash.test % (std::uint64_t{lookup.buckets} * SIEVE_LINE_BITS);
}

class ToyBuilder final : public KindBuilder {
  public:
    [[nodiscard]] std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) const override {
        return sieve::lines_for_bits(keys, bits_per_key);
    }
    [[nodiscard]] Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr) const override {
        return sieve::lines_for_bits(keys, -1 / std::log1p(-fpr));
    }
    [[nodiscard]] std::uint64_t usable_lines(std::uint64_t lines) const override { return lines; }
    [[nodiscard]] Status describe(std::uint64_t, std::uint64_t lines, sieve_lookup& lookup) const override {
        lookup.kind = toy_number;
        lookup.choices = 1;
        lookup.buckets = static_cast<std::uint32_t>(lines);
        return {};
    }
    [[nodiscard]] std::optional<double> model_fpr(std::uint64_t keys,
                                                  const sieve_lookup& lookup) const override {
        return predict_fpr(keys, lookup);
    }
    [[nodiscard]] double predict_fpr(std::uint64_t keys, const sieve_lookup& lookup) const override {
        return -std::expm1(-1 / bits_per_key_of(keys, lookup.buckets));
    }
    [[nodiscard]] Result<std::uint32_t> fill(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                             std::span<sieve_line> lines, std::uint64_t,
                                             const Progress&) const override {
        for (const sieve_hash& hash : keys) {
            const std::uint64_t bit = bit_of(lookup, hash);
            lines[bit / SIEVE_LINE_BITS].word[bit / 64 % SIEVE_LINE_WORDS] |= std::uint64_t{1} << bit % 64;
        }
        return 0U;
    }
};

class ToyKind final : public FilterKind {
  public:
    constexpr ToyKind()
        : FilterKind({.number = toy_number,
                      .name = "toy",
                      .summary = "the smallest kind that there can be",
                      .choices = {.one = "bit", .many = "bits", .least = 1, .most = 1, .standard = 1},
                      .bits_per_key = 40,
                      .model = "what everybody knows"}) {}

    [[nodiscard]] std::string geometry_fault(const sieve_lookup& lookup) const override {
        return lookup.hashes == 0 ? "" : "a toy with hashes";
    }
    [[nodiscard]] std::uint64_t lines(const sieve_lookup& lookup) const override { return lookup.buckets; }
    [[nodiscard]] bool holds(const sieve_lookup& lookup, const sieve_hash& hash,
                             const sieve_line* filter) const override {
        const std::uint64_t bit = bit_of(lookup, hash);
        return (filter[bit / SIEVE_LINE_BITS].word[bit / 64 % SIEVE_LINE_WORDS] >> bit % 64 & 1) != 0;
    }
    [[nodiscard]] double expected_rate(const sieve_lookup&, std::span<const sieve_line> filter,
                                       std::uint64_t) const override {
        double ones = 0;
        for (const sieve_line& line : filter)
            for (const auto word : line.word) ones += std::popcount(word);
        return ones / static_cast<double>(filter.size() * SIEVE_LINE_BITS);
    }
    [[nodiscard]] std::string geometry(const sieve_lookup&) const override { return "one bit a key"; }
    [[nodiscard]] std::string parameters(const sieve_lookup&, std::uint64_t) const override {
        return "one bit";
    }
    [[nodiscard]] LinesTouched lines_touched(const sieve_lookup&, double) const override { return {1, 1}; }
    [[nodiscard]] std::uint32_t rounds(Effort, std::uint32_t) const override { return 0; }
    [[nodiscard]] Result<std::unique_ptr<KindBuilder>> builder(const KindOptions&) const override {
        return std::make_unique<ToyBuilder>();
    }
};

const ToyKind toy;

const Kinds& kinds_with_toy() {
    static const Kinds kinds = built_in_kinds().with(toy);
    return kinds;
}

KeySet random_keys(std::size_t count) {
    std::mt19937_64 random(count);
    KeySet keys(SIEVE_FIELD_SRC);
    for (std::size_t i = 0; i < count; i++) {
        sieve_key key{};
        key.word[0] = random();
        key.word[1] = random();
        keys.add(key);
    }
    return keys;
}

TEST(ToyKind, IsBuiltSavedLoadedAndAsked) {
    BuildOptions options;
    options.kinds = &kinds_with_toy();
    options.seed = 1;
    options.kind.kind = kinds_with_toy().parse("toy").value_or(SIEVE_KIND_NONE);
    ASSERT_EQ(options.kind.kind, toy_number);
    const KeySet keys = random_keys(5'000);
    auto built = build_set(keys, options, {});
    ASSERT_TRUE(built) << built.error().message;
    EXPECT_NEAR(built->report.bits_per_key, 40, 0.2) << "the kind's own standard";
    EXPECT_NEAR(built->report.expected_fpr, built->report.predicted_fpr, 0.05 * built->report.predicted_fpr);

    const auto path = std::filesystem::temp_directory_path() / ("sieve-toy-" + std::to_string(::getpid()));
    ASSERT_TRUE(built->image.save(path));
    const auto image = Image::load(path, kinds_with_toy());
    const auto foreign = Image::load(path);
    std::filesystem::remove(path);
    expect_error(foreign, ErrorKind::bad_input);
    EXPECT_FALSE(parse_kind("toy"));
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_STREQ(image->kind().facts().name, "toy");
    for (std::size_t i = 0; i < keys.size(); i++) ASSERT_TRUE(image->contains(keys.at(i)));
    const KeySet non_members = random_keys(5'001);
    std::size_t found = 0;
    for (std::size_t i = 0; i < non_members.size(); i++) found += image->contains(non_members.at(i)) ? 1 : 0;
    EXPECT_LT(found, 5'001U / 20);
}

TEST(ToyKind, IsPlannedBesideTheOthers) {
    PlanRequest request{.keys = 5'000, .memory = 40'000, .calibrate = false};
    const std::size_t others = make_plan(request, {})->candidates.size();
    request.kinds = &kinds_with_toy();
    const auto plan = make_plan(request, {});
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->candidates.size(), others + 1);
    const auto found = std::ranges::find(plan->candidates, "toy", &Candidate::kind);
    ASSERT_NE(found, plan->candidates.end());
    EXPECT_EQ(found->infeasible, "");
    EXPECT_EQ(found->parameters, "one bit");
    EXPECT_LE(found->bytes, 40'000U);
    EXPECT_NEAR(found->fpr, 1 / found->bits_per_key, 0.001);
}

TEST(ToyKind, RefusesWhatItDoesNotTake) {
    BuildOptions options;
    options.kinds = &kinds_with_toy();
    options.kind.kind = toy_number;
    options.kind.alpha = 0.5;
    EXPECT_FALSE(build_set(random_keys(10), options, {}));
    options.kind = {.kind = toy_number, .choices = 2};
    EXPECT_FALSE(build_set(random_keys(10), options, {}));
}

} // namespace
} // namespace sieve
