// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/node/follower.hpp"

#include <random>

#include "fleet/fleet_test.hpp"
#include "libsieve/fleet/servers/sha256.hpp"

namespace sieve::fleet::test {
namespace {

TEST_F(FleetTest, NodesFollowAndReport) {
    Machine& early = add_node("early");
    const auto first = publish_text(list("one"));
    ASSERT_TRUE(first) << first.error().message;
    Machine& late = add_node("late");
    ASSERT_TRUE(await([&] { return all_have(list("one")); }));
    EXPECT_TRUE(says("early", NodeState::in_force, ""));
    EXPECT_TRUE(says("late", NodeState::in_force, ""));
    const FleetStatus now = status();
    EXPECT_EQ(now.current, 2U);
    EXPECT_EQ(now.nodes.at(0).sets.at("bad"), early.stand_in.sets()["bad"].identity);
    EXPECT_TRUE(rollout_is(RolloutState::complete));
    // A node that ends is away as soon as its lease has ended; its manifest stays.
    late.kill();
    ASSERT_TRUE(publish_text(list("two")));
    ASSERT_TRUE(await([&] { return early.stand_in.in_force() == list("two"); }));
    EXPECT_EQ(late.stand_in.in_force(), list("one"));
    EXPECT_TRUE(await([&] { return status().nodes.size() == 1; }));
    // Off for as long as it likes.
    ASSERT_TRUE(publish_text(list("three")));
    late.start();
    EXPECT_TRUE(await([&] { return all_have(list("three")); }));
}

// A machine that was cloned with its name.
TEST_F(FleetTest, TwoHostsWithOneNameAreTold) {
    Machine& first = add_node("n");
    ASSERT_TRUE(publish_text(list("one")));
    ASSERT_TRUE(await([&] { return all_have(list("one")); }));
    const auto is_told = [&] {
        return first.log.text().find("fleet: somebody else reports as node n, too") != std::string::npos;
    };
    first.kill();
    first.start();
    ASSERT_TRUE(publish_text(list("two")));
    ASSERT_TRUE(await([&] { return all_have(list("two")); }));
    EXPECT_FALSE(is_told()) << "it was here before";
    EtcdClient client(access_.etcd);
    const std::string key = EtcdPaths("edge").node("n");
    ASSERT_TRUE(client.commit({.puts = {{key, client.read(key)->keys.at(key).value}}}));
    ASSERT_TRUE(publish_text(list("three")));
    EXPECT_TRUE(await(is_told));
    EXPECT_TRUE(says("n", NodeState::in_force, ""));
}

TEST_F(FleetTest, StagesFollowOneAnother) {
    Machine& canary = add_node("c", {"canary"});
    add_node("a");
    add_node("b");
    ASSERT_TRUE(publish_text(list("one")));
    ASSERT_TRUE(await([&] { return all_have(list("one")); }));
    Rollout rollout;
    rollout.stages = {{.label = "canary"}, {}};
    rollout.soak_seconds = 1;
    ASSERT_TRUE(rollout_is(RolloutState::complete));
    // What is held at its first stage goes no further.
    canary.kill();
    ASSERT_TRUE(publish_text(list("two"), rollout));
    ASSERT_TRUE(hold_rollout(access_, Hold::pause));
    canary.start();
    ASSERT_TRUE(await([&] { return canary.stand_in.in_force() == list("two"); }));
    EXPECT_TRUE(says("a", NodeState::waiting, ""));
    EXPECT_EQ(nodes_[1]->stand_in.in_force(), list("one"));
    ASSERT_TRUE(hold_rollout(access_, Hold::resume));
    EXPECT_TRUE(await([&] { return all_have(list("two")); }));
    EXPECT_TRUE(rollout_is(RolloutState::complete));
}

TEST_F(FleetTest, ACanaryThatDropsTooMuchHaltsTheRollout) {
    Machine& canary = add_node("c", {"canary"});
    Machine& other = add_node("a");
    ASSERT_TRUE(publish_text(list("one")));
    ASSERT_TRUE(await([&] { return all_have(list("one")); }));
    Rollout rollout;
    rollout.stages = {{.label = "canary"}, {}};
    rollout.soak_seconds = 3600;
    ASSERT_TRUE(publish_text(list("everything"), rollout));
    ASSERT_TRUE(rollout_is(RolloutState::halted));
    EXPECT_NE(status().published.rollout->why.find("c: the share of dropped packets rose"), std::string::npos)
        << status().published.rollout->why;
    EXPECT_EQ(canary.stand_in.in_force(), list("everything")) << "it was not told to go back";
    EXPECT_EQ(other.stand_in.in_force(), list("one"));
    // Told so beforehand, it goes back by itself.
    ASSERT_TRUE(publish_text(list("two")));
    ASSERT_TRUE(await([&] { return all_have(list("two")); }));
    rollout.on_failure = OnRolloutFailure::rollback;
    ASSERT_TRUE(publish_text(list("everything", 2), rollout));
    ASSERT_TRUE(rollout_is(RolloutState::rolled_back));
    EXPECT_TRUE(await([&] { return all_have(list("two")); }));
}

TEST_F(FleetTest, ARefusedListHaltsTheRollout) {
    Machine& canary = add_node("c", {"canary"});
    add_node("a");
    ASSERT_TRUE(publish_text(list("one")));
    ASSERT_TRUE(await([&] { return all_have(list("one")); }));
    Rollout rollout;
    rollout.stages = {{.label = "canary"}, {}};
    ASSERT_TRUE(publish_text(list("refused"), rollout));
    ASSERT_TRUE(rollout_is(RolloutState::halted));
    EXPECT_TRUE(says("c", NodeState::failed, "a guard refused it"));
    EXPECT_TRUE(all_have(list("one")));
    EXPECT_NE(canary.log.text().find("is not in force, and what was before stays"), std::string::npos);
}

TEST_F(FleetTest, RefusesWhatIsNotRight) {
    add_node("n");
    ASSERT_TRUE(publish_text(list("one")));
    EtcdClient client(access_.etcd);
    const EtcdPaths paths("edge");
    const auto old = client.read_prefix(paths.now());
    ASSERT_TRUE(old);
    ASSERT_TRUE(publish_text(list("two")));
    ASSERT_TRUE(await([&] { return all_have(list("two")); }));
    const auto right = client.read_prefix(paths.now());
    ASSERT_TRUE(right);
    const auto put = [&](const std::string& envelope, const std::string& rollout) {
        ASSERT_TRUE(client.commit({.puts = {{paths.manifest(), envelope}, {paths.rollout(), rollout}}}));
    };
    const std::string old_envelope = old->keys.at(paths.manifest()).value;
    const std::string old_rollout = old->keys.at(paths.rollout()).value;
    put(old_envelope, old_rollout);
    EXPECT_TRUE(says("n", NodeState::refused, "serial")) << "a replayed manifest";
    const auto stranger = SigningKey::generate();
    Manifest forged;
    forged.fleet = "edge";
    forged.serial = milliseconds_now() + 1000;
    forged.sets = {{.name = "bad", .digest = sha256_of(list("one")), .bytes = list("one").size()}};
    const std::string envelope = *sign_manifest(forged, *stranger);
    put(envelope, old_rollout);
    EXPECT_TRUE(says("n", NodeState::refused, "not pinned")) << "a forged manifest";
    put("nonsense", old_rollout);
    EXPECT_TRUE(says("n", NodeState::refused, "no manifest with signatures"));
    const std::string right_envelope = right->keys.at(paths.manifest()).value;
    put(right_envelope, "nonsense");
    EXPECT_TRUE(says("n", NodeState::refused, "record of the rollout"));
    put(right_envelope, old_rollout);
    EXPECT_TRUE(says("n", NodeState::refused, "about another manifest"));
    // Whoever may only write to etcd cannot have the fleet go back to what is older.
    RolloutRecord back = *parse_rollout(right->keys.at(paths.rollout()).value);
    back.state = RolloutState::rolled_back;
    put(right_envelope, rollout_text(back));
    EXPECT_TRUE(says("n", NodeState::in_force, ""));
    EXPECT_TRUE(all_have(list("two")));
}

// As if the list had cut it off from etcd.
TEST_F(FleetTest, ACanaryThatVanishesHaltsTheRollout) {
    Machine& canary = add_node("c", {"canary"});
    Machine& other = add_node("a");
    ASSERT_TRUE(publish_text(list("one")));
    ASSERT_TRUE(await([&] { return all_have(list("one")); }));
    Rollout rollout;
    rollout.stages = {{.label = "canary"}, {}};
    rollout.soak_seconds = 1;
    ASSERT_TRUE(rollout_is(RolloutState::complete));
    // It has no time for a second report.
    canary.kill();
    canary.settings.report = std::chrono::seconds(2);
    canary.start();
    ASSERT_TRUE(publish_text(list("two"), rollout));
    ASSERT_TRUE(says("c", NodeState::in_force, ""));
    canary.kill();
    ASSERT_TRUE(rollout_is(RolloutState::halted));
    EXPECT_EQ(status().published.rollout->why, "c: no longer reports, since the manifest came to it");
    EXPECT_EQ(other.stand_in.in_force(), list("one"));
}

TEST_F(FleetTest, ALabelThatNoNodeHasIsWaitedFor) {
    add_node("a");
    Rollout rollout;
    rollout.stages = {{.label = "canary"}, {}};
    rollout.soak_seconds = 0;
    ASSERT_TRUE(publish_text(list("one"), rollout));
    const auto waits = [&] {
        const auto now = status().published.rollout;
        return now && now->why == "no node that reports has the label canary";
    };
    ASSERT_TRUE(await(waits));
    EXPECT_EQ(status().published.rollout->state, RolloutState::running);
    EXPECT_EQ(nodes_[0]->stand_in.in_force(), "");
    add_node("c", {"canary"});
    EXPECT_TRUE(await([&] { return all_have(list("one")); }));
    EXPECT_TRUE(rollout_is(RolloutState::complete));
    EXPECT_EQ(status().published.rollout->why, "");
}

// Nodes that were away when a rollout was stopped, and new ones, have what was before.
TEST_F(FleetTest, AStoppedRolloutComesToNoOtherNode) {
    Machine& canary = add_node("c", {"canary"});
    Machine& away = add_node("d", {"canary"});
    ASSERT_TRUE(publish_text(list("one")));
    ASSERT_TRUE(await([&] { return all_have(list("one")); }));
    ASSERT_TRUE(rollout_is(RolloutState::complete));
    away.kill();
    Rollout rollout;
    rollout.stages = {{.label = "canary"}, {}};
    rollout.soak_seconds = 3600;
    ASSERT_TRUE(publish_text(list("everything"), rollout));
    ASSERT_TRUE(rollout_is(RolloutState::halted));
    away.start();
    Machine& fresh = add_node("e", {"canary"});
    ASSERT_TRUE(says("d", NodeState::waiting, ""));
    EXPECT_TRUE(says("e", NodeState::in_force, ""));
    EXPECT_EQ(away.stand_in.in_force(), list("one"));
    EXPECT_EQ(fresh.stand_in.in_force(), list("one"));
    EXPECT_EQ(canary.stand_in.in_force(), list("everything"));
    // What follows builds on what all had, also for nodes whose turn has not come.
    Machine& other = add_node("f");
    ASSERT_TRUE(publish_text(list("two"), rollout));
    ASSERT_TRUE(await([&] { return canary.stand_in.in_force() == list("two"); }));
    EXPECT_TRUE(await([&] { return other.stand_in.in_force() == list("one"); }));
}

// Such as a disk that is full: nobody publishes again for it.
TEST_F(FleetTest, WhatTheHostCannotWriteDownIsTriedAgain) {
    const std::string record = "nodes/n/accepted.json";
    folder_.shell("mkdir -p " + record);
    add_node("n");
    ASSERT_TRUE(publish_text(list("one")));
    ASSERT_TRUE(says("n", NodeState::refused, "accepted.json"));
    folder_.shell("rmdir " + record);
    EXPECT_TRUE(await([&] { return all_have(list("one")); }));
}

TEST_F(FleetTest, AwayIsHarmless) {
    Machine& node = add_node("n");
    ASSERT_TRUE(publish_text(list("one")));
    ASSERT_TRUE(await([&] { return all_have(list("one")); }));
    // The store is away: the manifest waits.
    store_.kill();
    const std::string two = list("two");
    store_.put(sha256_of(two), two);
    store_.start();
    const auto published = publish_text(two);
    ASSERT_TRUE(published) << published.error().message;
    ASSERT_TRUE(await([&] { return all_have(two); }));
    // A corrupt blob is refused; when it is right again, the node heals without being told.
    const std::string three = list("three");
    ASSERT_TRUE(publish_text(three));
    ASSERT_TRUE(await([&] { return all_have(three); }));
    const std::string four = list("four");
    std::string corrupt = four;
    corrupt[3] = '3';
    store_.put(sha256_of(four), corrupt);
    ASSERT_TRUE(publish_text(four));
    EXPECT_TRUE(says("n", NodeState::failed, "expected " + sha256_of(four)));
    EXPECT_TRUE(all_have(three));
    store_.put(sha256_of(four), four);
    EXPECT_TRUE(await([&] { return all_have(four); }));
    // etcd stands still, is killed, and comes back without its data.
    etcd_.kill();
    EXPECT_TRUE(await([&] { return node.log.text().find("etcd does not answer") != std::string::npos; }));
    EXPECT_TRUE(all_have(four));
    etcd_.lose_data();
    etcd_.start();
    EXPECT_TRUE(says("n", NodeState::refused, "nothing is published any more"));
    EXPECT_TRUE(all_have(four));
    node.kill();
    node.start();
    EXPECT_TRUE(says("n", NodeState::refused, "nothing is published any more"))
        << "it forgot what it accepted";
    ASSERT_TRUE(publish_text(list("five")));
    EXPECT_TRUE(await([&] { return all_have(list("five")); })) << "the fleet does not go on";
}

// Servers and nodes are killed in the middle of rollouts. In the end, every node has what etcd says.
TEST_F(FleetTest, KillsEndInWhatEtcdSays) {
    add_nodes(4);
    std::mt19937 dice(20261122);
    const char* rounds = std::getenv("FLEET_KILLS");
    const int kills = rounds == nullptr ? 8 : std::atoi(rounds);
    for (int i = 0; i < kills; i++) {
        const std::string text = list("round " + std::to_string(i));
        const auto published = publish_text(text);
        ASSERT_TRUE(published) << published.error().message;
        std::this_thread::sleep_for(std::chrono::milliseconds(dice() % 60));
        const unsigned victim = dice() % 3;
        if (victim == 0) {
            etcd_.kill();
            etcd_.start();
        } else if (victim == 1) {
            store_.kill();
            store_.start();
        } else {
            Machine& node = *nodes_[dice() % nodes_.size()];
            node.kill();
            node.start();
        }
        ASSERT_TRUE(await([&] { return all_have(text); })) << "kill " << i << " of " << victim;
        ASSERT_TRUE(await([&] { return status().current == nodes_.size(); })) << i;
    }
}

TEST_F(FleetTest, TwentyNodesFollowAndGoBack) {
    add_nodes(20);
    ASSERT_TRUE(publish_text(list("one")));
    ASSERT_TRUE(await([&] { return all_have(list("one")); }));
    auto began = std::chrono::steady_clock::now();
    const auto passed = [&] {
        return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                     began);
    };
    ASSERT_TRUE(publish_text(list("two")));
    ASSERT_TRUE(await([&] { return all_have(list("two")); }));
    RecordProperty("publish_milliseconds", std::to_string(passed().count()));
    began = std::chrono::steady_clock::now();
    const auto back = roll_back(access_, key_, "");
    ASSERT_TRUE(back) << back.error().message;
    ASSERT_TRUE(await([&] { return all_have(list("one")); }));
    RecordProperty("rollback_milliseconds", std::to_string(passed().count()));
    EXPECT_TRUE(await([&] { return status().current == 20; }));
}

} // namespace
} // namespace sieve::fleet::test
