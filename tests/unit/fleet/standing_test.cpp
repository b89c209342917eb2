// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/standing.hpp"

#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace sieve::fleet {
namespace {

using service::watching::FleetStanding;
using service::watching::FleetState;

FollowerNews published() {
    FollowerNews news;
    news.fleet = "edge";
    news.published = Finding::manifest;
    news.serial = 7;
    news.stages = 3;
    news.own_stage = 2;
    news.rollout = RolloutState::running;
    news.stage = 1;
    return news;
}

TEST(Standing, OfAHostThatFollows) {
    const FleetStanding standing = standing_of(
        published(), {.in_force = std::string(64, 'a'), .in_force_serial = 6, .wanted_serial = 6});
    EXPECT_EQ(standing.state, FleetState::followed) << "its stage has not come";
    EXPECT_EQ(standing.fleet, "edge");
    EXPECT_EQ(standing.in_force, 6U);
    EXPECT_EQ(standing.wanted, 6U);
    EXPECT_EQ(standing.published, 7U);
    EXPECT_EQ(standing.rollout, "running");
    EXPECT_EQ(standing.stage, 2U);
    EXPECT_EQ(standing.stages, 3U);
    EXPECT_EQ(standing.own_stage, 3U);
}

TEST(Standing, NamesTheWorstThatIsKnown) {
    FollowerNews news = published();
    KeptManifests kept{.wanted_serial = 7, .wanted_is_in_force = false};
    EXPECT_EQ(standing_of(news, kept).state, FleetState::behind);
    news.rollout = RolloutState::halted;
    news.why = "n3 failed";
    EXPECT_EQ(standing_of(news, kept).state, FleetState::behind);
    kept.wanted_is_in_force = true;
    EXPECT_EQ(standing_of(news, kept).state, FleetState::halted);
    EXPECT_EQ(standing_of(news, kept).error, "n3 failed");
    kept.state = NodeState::failed;
    kept.error = "a guard refused it";
    EXPECT_EQ(standing_of(news, kept).state, FleetState::failed);
    EXPECT_EQ(standing_of(news, kept).error, "a guard refused it");
    kept.store_failed = true;
    EXPECT_EQ(standing_of(news, kept).state, FleetState::store_away);
    news.refusal = "the serial is lower";
    EXPECT_EQ(standing_of(news, kept).state, FleetState::refused);
    EXPECT_EQ(standing_of(news, kept).error, "the serial is lower");
    news.published = Finding::wrong;
    EXPECT_EQ(standing_of(news, kept).state, FleetState::refused);
    EXPECT_EQ(standing_of(news, kept).published, 0U);
    news.published = Finding::nothing;
    EXPECT_EQ(standing_of(news, kept).state, FleetState::unpublished);
    news.published = Finding::unread;
    EXPECT_EQ(standing_of(news, kept).state, FleetState::etcd_away);
    news.published = Finding::manifest;
    news.etcd_trouble = "Connection refused";
    EXPECT_EQ(standing_of(news, kept).state, FleetState::etcd_away);
    EXPECT_EQ(standing_of(news, kept).error, "Connection refused");
    EXPECT_EQ(standing_of(news, kept).published, 7U) << "as far as it is known";
}

// Metrics have a series for each state of a rollout.
TEST(Standing, KnowsEachStateOfARollout) {
    FollowerNews news = published();
    std::size_t i = 0;
    for (const RolloutState state : {RolloutState::running, RolloutState::paused, RolloutState::halted,
                                     RolloutState::rolled_back, RolloutState::complete}) {
        news.rollout = state;
        ASSERT_LT(i, std::size(service::watching::fleet_rollout_states));
        EXPECT_EQ(standing_of(news, {}).rollout, service::watching::fleet_rollout_states[i++]);
    }
    EXPECT_EQ(i, std::size(service::watching::fleet_rollout_states));
}

} // namespace
} // namespace sieve::fleet
