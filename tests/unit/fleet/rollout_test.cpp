// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/rollout.hpp"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "libsieve/fleet/manifest/node_report.hpp"
#include "libsieve/fleet/servers/sha256.hpp"

namespace sieve::fleet {
namespace {

Manifest staged() {
    Manifest manifest;
    manifest.fleet = "edge";
    manifest.serial = 1;
    manifest.sets = {{.name = "bad", .digest = sha256_of("x"), .bytes = 1}};
    manifest.rollout.stages = {{.label = "canary"}, {.permille = 10}, {.permille = 100}, {}};
    return manifest;
}

TEST(Rollout, SharesAreDrawnOverNodesAndManifests) {
    const Manifest manifest = staged();
    constexpr int nodes = 20'000;
    for (const char* digest : {"one", "two"}) {
        int counts[4] = {};
        for (int i = 0; i < nodes; i++)
            counts[stage_of(manifest, sha256_of(digest), "node-" + std::to_string(i), {})]++;
        EXPECT_EQ(counts[0], 0);
        // Within six sigma of a binomial draw.
        EXPECT_NEAR(counts[1], nodes * 0.01, 6 * std::sqrt(nodes * 0.01 * 0.99));
        EXPECT_NEAR(counts[2], nodes * 0.09, 6 * std::sqrt(nodes * 0.09 * 0.91));
        EXPECT_EQ(counts[1] + counts[2] + counts[3], nodes);
    }
    int same = 0;
    for (int i = 0; i < nodes; i++) {
        const std::string node = "node-" + std::to_string(i);
        same += stage_of(manifest, sha256_of("one"), node, {}) <= 2 &&
                stage_of(manifest, sha256_of("two"), node, {}) <= 2;
    }
    EXPECT_NEAR(same, nodes * 0.01, 6 * std::sqrt(nodes * 0.01 * 0.99)) << "always the same nodes go first";
    EXPECT_EQ(stage_of(manifest, sha256_of("one"), "node-1", {"site-a", "canary"}), 0U);
}

TEST(Rollout, TurnsFollowStageAndState) {
    SignedManifest published{staged(), sha256_of("m"), {}};
    RolloutRecord record{.manifest = sha256_of("m"), .stage = 1};
    for (const RolloutState state : {RolloutState::running, RolloutState::paused, RolloutState::complete}) {
        record.state = state;
        EXPECT_EQ(turn_of(published, record, 0, false), Turn::now);
        EXPECT_EQ(turn_of(published, record, 1, false), Turn::now);
        EXPECT_EQ(turn_of(published, record, 2, false), Turn::before);
    }
    // Its publisher did not sign that nodes may go back. Nodes that were away do not begin.
    for (const RolloutState state : {RolloutState::halted, RolloutState::rolled_back}) {
        record.state = state;
        EXPECT_EQ(turn_of(published, record, 1, true), Turn::now);
        EXPECT_EQ(turn_of(published, record, 1, false), Turn::before);
        EXPECT_EQ(turn_of(published, record, 2, true), Turn::before);
    }
    published.manifest.rollout.on_failure = OnRolloutFailure::rollback;
    EXPECT_EQ(turn_of(published, record, 1, true), Turn::before);
    record.manifest = sha256_of("other");
    EXPECT_FALSE(turn_of(published, record, 1, true));
}

TEST(Rollout, HasComeToAllAtItsLastStage) {
    const SignedManifest published{staged(), sha256_of("m"), {}};
    const auto has_come = [&](RolloutState state, std::uint32_t stage) {
        return has_come_to_all(published, {.manifest = sha256_of("m"), .stage = stage, .state = state});
    };
    EXPECT_TRUE(has_come(RolloutState::complete, 3));
    EXPECT_TRUE(has_come(RolloutState::running, 3));
    EXPECT_FALSE(has_come(RolloutState::running, 2));
    EXPECT_FALSE(has_come(RolloutState::paused, 2));
    EXPECT_FALSE(has_come(RolloutState::halted, 3));
    EXPECT_FALSE(has_come(RolloutState::rolled_back, 3));
}

TEST(Rollout, StagesAreReadAndWritten) {
    const auto stages = parse_stages("canary,0.7%,10%");
    ASSERT_TRUE(stages) << stages.error().message;
    EXPECT_EQ(*stages, (std::vector<Stage>{{.label = "canary"}, {.permille = 7}, {.permille = 100}, {}}));
    EXPECT_EQ(stages_text(*stages), "canary,0.7%,10%,100%");
    EXPECT_EQ(parse_stages("100%")->size(), 1U);
    for (const char* wrong : {"", ",", "1%,", "0%", "101%", "0.05%", "x y", "-1%", "%", "nan%"}) {
        const auto refused = parse_stages(wrong);
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
    }
    // Whoever types such a stage means another one.
    for (const char* without_nodes : {"10%,5%", "5%,canary,5%", "canary,1%,canary", "100%,canary"}) {
        const auto refused = parse_stages(without_nodes);
        ASSERT_FALSE(refused) << without_nodes;
        EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
        EXPECT_NE(refused.error().message.find("have all of its nodes"), std::string::npos);
    }
}

TEST(Rollout, RecordsReadBack) {
    const RolloutRecord record{.manifest = sha256_of("m"),
                               .stage = 2,
                               .state = RolloutState::halted,
                               .since = 1'700'000'000'000,
                               .by = "node-7",
                               .why = "\"quoted\"\n"};
    const auto read = parse_rollout(rollout_text(record));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, record);
    for (const char* wrong :
         {"", "{}", "[]", R"({"by":"","manifest":"x","since":1,"stage":1,"state":"running","why":""})"})
        EXPECT_FALSE(parse_rollout(wrong)) << wrong;
    EXPECT_FALSE(parse_rollout(rollout_text({.manifest = record.manifest, .stage = most_stages})));
    std::string text = rollout_text(record);
    text.replace(text.find("halted"), 6, "haltet");
    EXPECT_FALSE(parse_rollout(text));
}

TEST(NodeReportTest, ReadsBack) {
    const NodeReport report{.node = "n1",
                            .labels = {"canary"},
                            .wanted = sha256_of("a"),
                            .manifest = sha256_of("b"),
                            .stage = 1,
                            .state = NodeState::failed,
                            .error = "no",
                            .sets = {{"bad", "0123"}},
                            .before = {10, 5, 1},
                            .after = {20, 6, 2},
                            .since = 5};
    const auto read = parse_report(report_text(report), "n1");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, report);
    for (const char* wrong : {"", "{}", "[1]", R"({"node":1})"})
        EXPECT_FALSE(parse_report(wrong, "n1")) << wrong;
    EXPECT_FALSE(parse_report(report_text(report), "n2")) << "of another node";
}

} // namespace
} // namespace sieve::fleet
