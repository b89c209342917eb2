// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/safety/allowlist.hpp"

#include <gtest/gtest.h>

#include "libsieve/control/table/apply.hpp"
#include "libsieve/control/table/swap.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

using test::FakeKernel;
using test::Files;

class Allowlist : public testing::Test {
  protected:
    Files files;
    FakeKernel kernel;
    sieve_kind kind = SIEVE_KIND_BLOCKED;

    SetSpec friends(const std::vector<std::string>& entries) {
        SetSpec set = Files::set("friends", files.feed("friends", entries));
        set.feed.build.kind.kind = kind;
        return set;
    }

    // The warnings for a table with one set.
    std::vector<Warning> warnings(const std::vector<std::string>& entries, sieve_action default_action,
                                  std::optional<sieve_action> action = {}, bool verified = false) {
        TableSpec spec;
        spec.interface = "eth0";
        spec.default_action = default_action;
        spec.replies = SIEVE_ACTION_PASS; // said, so that nothing need be said about it
        spec.force = true;                // one table after another, some of which would need it
        spec.sets = {friends(entries)};
        if (action) spec.sets[0].action = WantedAction{*action, {}};
        if (verified) spec.sets[0].verify = Verification{};
        const auto applied = apply(kernel, spec, {});
        EXPECT_TRUE(applied) << applied.error().message;
        return applied ? applied->warnings : std::vector<Warning>{};
    }
};

const std::vector<std::string> prefixes{"192.0.2.0/24", "198.51.100.0/24"};
const std::vector<std::string> addresses{"192.0.2.1", "198.51.100.7"};

TEST_F(Allowlist, OfPrefixesWithoutVerification) {
    const std::vector<Warning> found = warnings(prefixes, SIEVE_ACTION_DROP);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].kind, WarningKind::prefix_allowlist);
    EXPECT_EQ(found[0].facts.set, "friends");
    EXPECT_EQ(warnings(prefixes, SIEVE_ACTION_DROP, SIEVE_ACTION_PASS).size(), 1U);
}

TEST_F(Allowlist, WhatLetsNobodyInByMistake) {
    EXPECT_TRUE(warnings(prefixes, SIEVE_ACTION_DROP, {}, true).empty()) << "verified";
    EXPECT_TRUE(warnings(addresses, SIEVE_ACTION_DROP).empty()) << "the promised rate is about addresses";
    EXPECT_TRUE(warnings(prefixes, SIEVE_ACTION_PASS).empty()) << "a blocklist";
    EXPECT_TRUE(warnings(prefixes, SIEVE_ACTION_DROP, SIEVE_ACTION_COUNT).empty());
    EXPECT_TRUE(warnings(prefixes, SIEVE_ACTION_PASS, SIEVE_ACTION_PASS).empty()) << "all else passes, too";
}

TEST_F(Allowlist, OfAnExactKindHasNoFalsePositives) {
    kind = SIEVE_KIND_RANGES;
    EXPECT_TRUE(warnings(prefixes, SIEVE_ACTION_DROP).empty());
}

TEST_F(Allowlist, ASwapIsAsGoodAsALoad) {
    kernel.put("friends", SIEVE_ACTION_PASS);
    kernel.running.table.default_action = SIEVE_ACTION_DROP;
    const auto swapped = swap(kernel, {.interface = "eth0"}, friends(prefixes), {});
    ASSERT_TRUE(swapped) << swapped.error().message;
    ASSERT_EQ(swapped->warnings.size(), 1U);
    EXPECT_EQ(swapped->warnings[0].kind, WarningKind::prefix_allowlist);
    const auto back = swap(kernel, {.interface = "eth0"}, friends(addresses), {});
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_TRUE(back->warnings.empty());
}

} // namespace
} // namespace sieve::control
