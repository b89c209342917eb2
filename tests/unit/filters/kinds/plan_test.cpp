// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/plan.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libsieve/filters/kinds/registry.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

Candidate candidate(const char* kind, std::uint64_t bytes, double fpr, double lines) {
    Candidate c;
    c.kind = kind;
    c.bytes = bytes;
    c.fpr = fpr;
    c.lines_non_member = c.lines_member = lines;
    return c;
}

std::string recommended(std::vector<Candidate> candidates, const PlanRequest& request) {
    Plan plan{.candidates = std::move(candidates)};
    recommend(plan, request);
    EXPECT_FALSE(plan.reason.empty());
    return plan.recommended ? plan.candidates[*plan.recommended].kind : "none";
}

TEST(PlanRecommendation, IsTheSmallestOfTwoLinesForARate) {
    const PlanRequest request{.keys = 1000, .fpr = 1e-3};
    EXPECT_EQ(recommended({candidate("a", 1000, 1e-3, 2), candidate("b", 900, 9e-4, 2),
                           candidate("c", 500, 1e-3, 3)}, // small, but three lines
                          request),
              "b");
    // One line is worth a tenth of the memory, not more.
    EXPECT_EQ(recommended({candidate("a", 1000, 1e-3, 2), candidate("b", 1099, 1e-3, 1)}, request), "b");
    EXPECT_EQ(recommended({candidate("a", 1000, 1e-3, 2), candidate("b", 1101, 1e-3, 1)}, request), "a");
}

TEST(PlanRecommendation, IsTheMostAccurateOfTwoLinesForAMemory) {
    const PlanRequest request{.keys = 1000, .memory = 4096};
    EXPECT_EQ(recommended({candidate("a", 4000, 2e-3, 2), candidate("b", 4096, 1e-3, 2),
                           candidate("c", 4096, 1e-5, 5)},
                          request),
              "b");
}

TEST(PlanRecommendation, SkipsWhatCannotBe) {
    const PlanRequest request{.keys = 1000, .fpr = 1e-3};
    Candidate impossible = candidate("a", 1, 1e-9, 1);
    impossible.infeasible = "out of reach";
    EXPECT_EQ(recommended({impossible, candidate("b", 900, 1e-3, 2)}, request), "b");
    EXPECT_EQ(recommended({impossible}, request), "none");
    // If there is nothing else, more lines than desirable, but then the fewest.
    EXPECT_EQ(recommended({candidate("a", 900, 1e-3, 9), candidate("b", 1900, 1e-3, 4)}, request), "b");
}

// As a list without a kind (build/default_kind.hpp).
TEST(PlanRecommendation, IsExactForAddressesOfWhichNothingIsAsked) {
    Candidate exact = candidate("exact", 2'000'000, 0, 2);
    exact.exact = true;
    const std::vector<Candidate> all{candidate("a", 1'500'000, 1e-3, 2), exact,
                                     candidate("b", 1'500'000, 1e-5, 1)};
    Plan plan{.candidates = all};
    recommend(plan, {.keys = 1'000'000});
    ASSERT_EQ(plan.recommended, 1U);
    expect_says(plan.reason);
    EXPECT_EQ(plan.for_other_keys, 2U);
    EXPECT_FALSE(plan.reason_for_other_keys.empty());
    for (const PlanRequest& asked :
         {PlanRequest{.keys = 1'000'000, .fpr = 1e-2}, PlanRequest{.keys = 1'000'000, .memory = 1 << 22},
          PlanRequest{.keys = 300'000'000}}) {
        recommend(plan, asked);
        EXPECT_EQ(plan.recommended, 2U);
        EXPECT_EQ(plan.for_other_keys, std::nullopt);
    }
}

TEST(MakePlan, GivesEachKindItsOwnSize) {
    const auto plan = make_plan({.keys = 20'000, .calibrate = false}, {});
    ASSERT_TRUE(plan) << plan.error().message;
    for (const Candidate& c : plan->candidates) {
        ASSERT_EQ(c.infeasible, "") << c.kind;
        if (c.exact) continue;
        EXPECT_NEAR(c.bits_per_key, c.kind == "ddlcbf" ? 24 : 16, 1.5) << c.kind << " " << c.parameters;
    }
    ASSERT_TRUE(plan->recommended && plan->for_other_keys);
    EXPECT_EQ(plan->candidates[*plan->recommended].kind, "exact");
    EXPECT_EQ(plan->candidates[*plan->for_other_keys].kind, standard_kind().facts().name);
}

TEST(MakePlan, KeepsItsPromisesForARate) {
    const auto plan = make_plan({.keys = 20'000, .fpr = 1e-3, .calibrate = false}, {});
    ASSERT_TRUE(plan) << plan.error().message;
    std::set<std::string> kinds;
    for (const auto& c : plan->candidates) {
        ASSERT_EQ(c.infeasible, "") << c.kind;
        kinds.insert(c.kind);
        if (c.exact) {
            EXPECT_EQ(c.fpr, 0) << c.kind;
            if (c.kind == "ranges") {
                EXPECT_GT(c.bits_per_key, 64) << "two boundaries of 32 bits for each random address";
                EXPECT_LT(c.bits_per_key, 128);
            } else {
                EXPECT_NEAR(c.bits_per_key, 64 / (3 * .945), 0.2) << "three lanes to a word";
            }
            continue;
        }
        EXPECT_LE(c.fpr, 1e-3) << c.kind << " " << c.parameters;
        EXPECT_GT(c.fpr, 5e-4) << c.kind << " " << c.parameters; // and not by waste
        EXPECT_GT(c.bits_per_key, 9.9);                          // log2(1000)
        EXPECT_LT(c.bits_per_key, 18);
        EXPECT_GE(static_cast<double>(c.bytes) * 8, c.bits_per_key * 20'000);
        EXPECT_GE(c.lines_non_member, 1);
        EXPECT_EQ(c.build_ns, 0);
    }
    EXPECT_EQ(kinds.size(), filter_kinds().size());
    const auto with = [&](const std::string& options) {
        return *std::ranges::find(plan->candidates, options, &Candidate::options);
    };
    // More choices, fewer bits.
    EXPECT_LT(with("--kind blocked --choices 2").bits_per_key,
              with("--kind blocked --choices 1").bits_per_key);
    EXPECT_LT(with("--kind bloom --choices 3").bits_per_key, with("--kind bloom --choices 1").bits_per_key);
    // In a half-full filter, about two probes of a group reveal a non-member.
    EXPECT_NEAR(with("--kind bloom --choices 1").lines_non_member, 2, 0.5);
    ASSERT_TRUE(plan->recommended);
    // What `--kind auto` chooses without a plan (filters/kinds/choice.hpp).
    EXPECT_EQ(plan->candidates[*plan->recommended].kind, standard_kind().facts().name);
}

TEST(MakePlan, FitsAMemory) {
    const auto plan = make_plan({.keys = 20'000, .memory = 48 * 1024, .calibrate = false}, {});
    ASSERT_TRUE(plan) << plan.error().message;
    for (const auto& c : plan->candidates) {
        if (c.exact) {
            EXPECT_NE(c.infeasible, "") << "exact addresses take more";
            continue;
        }
        EXPECT_EQ(c.infeasible, "") << c.kind;
        EXPECT_LE(c.bytes, 48 * 1024U) << c.kind;
        EXPECT_GT(c.bytes, 47 * 1024U) << c.kind;
    }
    const auto tiny = make_plan({.keys = 20'000, .memory = 1024, .calibrate = false}, {});
    ASSERT_TRUE(tiny);
    EXPECT_FALSE(tiny->recommended);
    for (const auto& c : tiny->candidates) EXPECT_NE(c.infeasible, "");
}

// The header of an image counts lines in 32 bits. More of them were taken modulo 2^32, which may be none.
TEST(MakePlan, KnowsWhatAMapCannotHold) {
    for (const std::uint64_t keys : {std::uint64_t{300'000'000'000}, most_planned_keys})
        for (const PlanRequest& request : {PlanRequest{.keys = keys, .calibrate = false},
                                           PlanRequest{.keys = keys, .fpr = 1e-3, .calibrate = false},
                                           PlanRequest{.keys = keys, .memory = keys, .calibrate = false}}) {
            const auto plan = make_plan(request, {});
            ASSERT_TRUE(plan) << plan.error().message;
            for (const Candidate& c : plan->candidates)
                EXPECT_TRUE(!c.infeasible.empty() || c.bytes >> 38 == 0) << c.kind << " of " << c.bytes;
            if (keys != most_planned_keys || request.fpr || request.memory) continue;
            EXPECT_FALSE(plan->recommended);
            EXPECT_EQ(plan->candidates.front().infeasible,
                      "34359739398 lines of 64 bytes are more than a BPF map can hold");
        }
}

// Whole keys behind tags, beside filters. The bytes are those of docs/exact.md, which the builder's own test
// has.
TEST(MakePlan, ShowsWhatKeysOfSeveralFieldsTake) {
    for (const auto& [fields, bytes] : {std::pair<std::uint32_t, double>{SIEVE_FIELD_ALL, 43.8},
                                        {SIEVE_FIELD_SRC | SIEVE_FIELD_DST, 35.4},
                                        {SIEVE_FIELD_DST | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO, 27.1}}) {
        for (const std::uint64_t keys : {20'000, 3'000'000}) {
            const auto plan = make_plan({.keys = keys, .fields = fields, .calibrate = false}, {});
            ASSERT_TRUE(plan) << plan.error().message;
            const auto of_kind = [&](const char* kind) {
                return *std::ranges::find(plan->candidates, kind, &Candidate::kind);
            };
            const Candidate exact = of_kind("exact");
            EXPECT_EQ(exact.infeasible, "");
            EXPECT_EQ(exact.fpr, 0);
            EXPECT_NEAR(exact.bits_per_key / 8, bytes, 0.5) << keys;
            EXPECT_NE(of_kind("ranges").infeasible, "");
            ASSERT_TRUE(plan->recommended);
            EXPECT_EQ(plan->candidates[*plan->recommended].kind, standard_kind().facts().name);
            EXPECT_FALSE(plan->for_other_keys);
        }
    }
    const auto plan = make_plan({.keys = 20'000, .fields = SIEVE_FIELD_DST, .calibrate = false}, {});
    ASSERT_TRUE(plan && plan->recommended);
    EXPECT_EQ(plan->candidates[*plan->recommended].kind, "exact");
    EXPECT_FALSE(plan->for_other_keys) << "the keys are addresses";
}

TEST(MakePlan, RefusesWhatMakesNoSense) {
    EXPECT_FALSE(make_plan({.keys = 0, .fpr = 0.01}, {}));
    EXPECT_FALSE(make_plan({.keys = 10, .fpr = 0.01, .memory = 1000}, {}));
    for (const double fpr : {0.0, -1.0, 1.0, 2.0, 1e-30})
        EXPECT_FALSE(make_plan({.keys = 10, .fpr = fpr}, {}));
}

} // namespace
} // namespace sieve
