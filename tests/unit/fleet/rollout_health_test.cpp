// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/rollout_health.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/fleet/servers/sha256.hpp"
#include "unit/messages.hpp"

namespace sieve::fleet {
namespace {

class RolloutWatchTest : public testing::Test {
  protected:
    RolloutWatchTest() {
        published.manifest.fleet = "edge";
        published.manifest.rollout.stages = {{.label = "canary"}, {.permille = 1}, {}};
        published.digest = sha256_of("m");
        record.manifest = published.digest;
    }
    TakenReport report(const std::string& node, bool in_force, std::int64_t revision) const {
        TakenReport taken{.report = {.node = node, .wanted = published.digest}, .revision = revision};
        if (node[0] == 'c') taken.report.labels = {"canary"};
        taken.report.state = in_force ? NodeState::in_force : NodeState::fetching;
        if (in_force) taken.report.manifest = published.digest;
        return taken;
    }
    Health look(const std::vector<TakenReport>& nodes) {
        found = watch.look(published, record, nodes);
        return found.health;
    }

    SignedManifest published;
    RolloutRecord record;
    RolloutWatch watch;
    StageHealth found;
    const TakenReport other{.report = {.node = "a"}, .revision = 1};
};

TEST_F(RolloutWatchTest, ANodeThatVanishesWithTheManifestIsUnwell) {
    EXPECT_EQ(look({report("c1", false, 2), report("c2", true, 2), other}), Health::pending);
    EXPECT_EQ(look({report("c1", true, 3), report("c2", true, 2), other}), Health::well);
    EXPECT_EQ(look({report("c1", true, 4), other}), Health::unwell);
    expect_says(found.why);
    // Also before it has the manifest, and after its stage.
    watch = {};
    EXPECT_EQ(look({report("c1", false, 2), other}), Health::pending);
    EXPECT_EQ(look({other}), Health::unwell);
    watch = {};
    EXPECT_EQ(look({report("c1", true, 2), other}), Health::well);
    record.stage = 1;
    EXPECT_EQ(look({other}), Health::unwell);
    // At the last stage nothing follows, and a node may be switched off.
    record.stage = 2;
    EXPECT_EQ(look({report("b", true, 5)}), Health::well);
}

TEST_F(RolloutWatchTest, ANodeIsHeardOnceItHasReportedAgain) {
    EXPECT_EQ(look({report("c1", true, 2), report("c2", true, 2)}), Health::well);
    EXPECT_FALSE(watch.all_reported_again());
    EXPECT_EQ(look({report("c1", true, 3), report("c2", true, 2)}), Health::well);
    EXPECT_FALSE(watch.all_reported_again());
    EXPECT_EQ(look({report("c1", true, 3), report("c2", true, 4)}), Health::well);
    EXPECT_TRUE(watch.all_reported_again());
    EXPECT_EQ(look({report("c1", true, 3), report("c2", false, 5)}), Health::pending);
    EXPECT_EQ(look({report("c1", true, 3), report("c2", true, 6)}), Health::well);
    EXPECT_FALSE(watch.all_reported_again()) << "in a row";
}

TEST_F(RolloutWatchTest, AStageWithoutANodeIsNamed) {
    EXPECT_EQ(look({other}), Health::pending) << "nobody has the label: it may be mistyped";
    expect_says(found.why);
    record.why = found.why;
    EXPECT_EQ(look({report("c1", false, 2), other}), Health::pending);
    EXPECT_EQ(found.why, "") << "somebody has it now";
    EXPECT_EQ(look({report("c1", true, 3), other}), Health::well);
    EXPECT_EQ(found.why, "");
    // One of a thousand nodes, of a fleet of two.
    record.stage = 1;
    EXPECT_EQ(look({report("c1", true, 4), other}), Health::well);
    expect_says(found.why);
    record.why = found.why;
    record.stage = 2;
    EXPECT_EQ(look({report("c1", true, 5), other}), Health::pending);
    EXPECT_EQ(found.why, record.why) << "the record goes on to say it";
}

} // namespace
} // namespace sieve::fleet
