// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/reports/unreadable.hpp"

#include <gtest/gtest.h>

#include "unit/messages.hpp"

namespace sieve::cli {
namespace {

kernel::Stats stats() {
    kernel::Stats stats;
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++) stats.outcome[i] = 1000 + i;
    return stats;
}

TEST(Unreadable, AddsUpTheReasonsAndNothingElse) {
    const nlohmann::json json = unreadable_json(SIEVE_ACTION_DROP, stats());
    EXPECT_EQ(json["action"], "drop");
    EXPECT_EQ(json["packets"], 1005 + 1006 + 1007 + 1008 + 1009 + 1010 + 1011);
    EXPECT_EQ(json["reasons"].size(), 7U);
    EXPECT_EQ(json["reasons"]["short"], 1005);
    EXPECT_EQ(json["reasons"]["deep_vlan"], 1010);
    EXPECT_EQ(json["reasons"]["source_route"], 1011);
    EXPECT_EQ(unreadable_json(SIEVE_ACTION_PASS, {})["action"], "pass");
}

TEST(Unreadable, IsDescribedIfThereIsAny) {
    kernel::Stats some;
    EXPECT_EQ(describe_unreadable(some), "");
    some.outcome[SIEVE_OUTCOME_NON_IP] = 7;
    EXPECT_EQ(describe_unreadable(some), "");
    some.outcome[SIEVE_OUTCOME_MALFORMED] = 1;
    EXPECT_EQ(describe_unreadable(some), "1 packet was unreadable: 1 malformed");
    some.outcome[SIEVE_OUTCOME_CUT_CHAIN] = 1200;
    EXPECT_EQ(describe_unreadable(some), "1,201 packets were unreadable: 1,200 cut_chain, 1 malformed");
}

TEST(Unreadable, ARowSaysWhetherThePacketWasRead) {
    EXPECT_EQ(outcome_row(SIEVE_OUTCOME_NON_IP), "parsed: non_ip");
    EXPECT_EQ(outcome_row(SIEVE_OUTCOME_SHORT), "unreadable: short");
}

} // namespace
} // namespace sieve::cli
