// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/choice.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "libsieve/filters/kinds/plan.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve {
namespace {

constexpr std::uint64_t keys = 20'000;

Plan make_plan_of_bits(double bits_per_key) {
    const auto bytes = static_cast<std::uint64_t>(bits_per_key * keys / 8);
    auto plan = make_plan({.keys = keys, .fpr = {}, .memory = bytes, .calibrate = false}, {});
    EXPECT_TRUE(plan) << plan.error().message;
    return std::move(*plan);
}

// A plan takes seconds of the processor, so the tests share two.
const Plan& plan_of_bits(double bits_per_key) {
    static std::map<double, Plan> plans;
    const auto found = plans.find(bits_per_key);
    return found != plans.end() ? found->second
                                : plans.emplace(bits_per_key, make_plan_of_bits(bits_per_key)).first->second;
}

std::string chosen(const KindOptions& options, const SizeWish& size = {}) {
    return choose_kind(options, size).facts().name;
}

// A plan whose figures differ from the recorded ones would recommend another kind than the choice.
TEST(KindFigures, AreThoseOfPlans) {
    const Plan &small = plan_of_bits(16), &large = plan_of_bits(24);
    for (const FilterKind* kind : hashing_kinds()) {
        const KindFacts& facts = kind->facts();
        const std::string form = fmt::format("--kind {} --choices {}", facts.name, facts.choices.standard);
        const Plan& plan = facts.bits_per_key > 16 ? large : small;
        const auto candidate = std::ranges::find(plan.candidates, form, &Candidate::options);
        ASSERT_NE(candidate, plan.candidates.end()) << form;
        ASSERT_EQ(candidate->infeasible, "") << form;
        EXPECT_NEAR(candidate->bits_per_key + std::log2(candidate->fpr), facts.figures.excess_bits, 0.6)
            << form;
        const double lines = std::max(candidate->lines_non_member, candidate->lines_member);
        EXPECT_NEAR(lines, facts.figures.lines, 0.2 * facts.figures.lines) << form;
    }
}

// MakePlan.KeepsItsPromisesForARate compares the choice with a plan for a rate.
TEST(KindChoice, IsWhatPlansRecommend) {
    for (const double bits : {16.0, 24.0}) {
        const Plan& plan = plan_of_bits(bits);
        ASSERT_TRUE(plan.recommended);
        EXPECT_EQ(plan.candidates[*plan.recommended].kind, chosen({}));
    }
    EXPECT_EQ(standard_kind().facts().name, chosen({}));
}

TEST(KindChoice, TakesWhatWasAskedFor) {
    EXPECT_EQ(chosen({}), "xorsat");
    EXPECT_EQ(chosen({.choices = 1}), "xorsat");
    EXPECT_EQ(chosen({.alpha = 0.5}), "blocked");
    EXPECT_EQ(chosen({.hashes = 10}), "blocked");
    EXPECT_EQ(chosen({.choices = 3}), "dleft64");
    EXPECT_EQ(chosen({.choices = 3, .hashes = 10}), "blocked");
    // What no kind takes is refused by the kind of the most options.
    EXPECT_EQ(chosen({.choices = 9}), "blocked");
}

// A XORSAT filter compares 32 bits at most. Where that is not enough, the kind is another one.
TEST(KindChoice, ReachesTheRate) {
    EXPECT_EQ(chosen({}, {.fpr = 1e-9}), "xorsat");
    EXPECT_EQ(chosen({}, {.fpr = 1e-10}), "blocked");
    EXPECT_EQ(chosen({}, {.fpr = 1e-15}), "blocked");
    EXPECT_EQ(chosen({.choices = 3}, {.fpr = 1e-3}), "dleft64");
    EXPECT_EQ(chosen({.choices = 3}, {.fpr = 1e-10}), "blocked");
    for (const FilterKind* kind : filter_kinds()) {
        if (kind->exact() != nullptr || kind->facts().name != chosen({}, {.fpr = 1e-15})) continue;
        const auto builder = kind->builder({});
        ASSERT_TRUE(builder);
        EXPECT_TRUE((*builder)->lines_for_fpr(keys, 1e-15));
    }
    // What a filter compares depends neither on its keys nor on the effort, so few keys and the least effort
    // do.
    constexpr std::uint64_t few = 2'000;
    const auto xorsat = kind_of(SIEVE_KIND_XORSAT).builder({.effort = Effort::fast});
    EXPECT_TRUE((*xorsat)->lines_for_fpr(few, 2.7e-10));
    EXPECT_FALSE((*xorsat)->lines_for_fpr(few, 2.6e-10));
}

// The plan's figures for this size, in the kind's standard form.
double rate_in(const Plan& plan, const std::string& kind) {
    const std::uint32_t choices = kind_of(parse_kind(kind).value()).facts().choices.standard;
    const std::string form = fmt::format("--kind {} --choices {}", kind, choices);
    const auto candidate = std::ranges::find(plan.candidates, form, &Candidate::options);
    return candidate != plan.candidates.end() ? candidate->fpr : 1;
}

TEST(KindChoice, IsMoreAccurateThanXorsatWhereThatIsAtItsEnd) {
    EXPECT_EQ(chosen({}, {.bits_per_key = 40}), "xorsat");
    EXPECT_LT(rate_in(plan_of_bits(40), "xorsat"), rate_in(plan_of_bits(40), "blocked"));
    EXPECT_EQ(chosen({}, {.bits_per_key = 64}), "blocked");
    EXPECT_GT(rate_in(plan_of_bits(64), "xorsat"), rate_in(plan_of_bits(64), "blocked"));
}

} // namespace
} // namespace sieve
