// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What somebody can do who may write to etcd, or who has stolen a key: replay old manifests to nodes that
// know no newer one, and spend the serials.
#include <chrono>
#include <limits>

#include "fleet/fleet_test.hpp"
#include "fleet/wrong_clock.hpp"
#include "libsieve/fleet/manifest/publication.hpp"
#include "libsieve/fleet/manifest/rollout.hpp"

namespace sieve::fleet::test {
namespace {

constexpr std::chrono::hours day{24};
constexpr std::uint64_t last_serial = std::numeric_limits<std::uint64_t>::max();

class ReplayTest : public FleetTest {
  protected:
    // What anybody can do who may write to etcd.
    void put(const SignedManifest& manifest, const SigningKey& key) {
        EtcdClient client(access_.etcd);
        const EtcdPaths paths("edge");
        ASSERT_TRUE(client.commit(
            {.puts = {{paths.manifest(), *sign_manifest(manifest.manifest, key)},
                      {paths.rollout(), rollout_text({.manifest = manifest_digest(manifest.manifest)})}}}));
    }
    [[nodiscard]] SignedManifest published() {
        EtcdClient client(access_.etcd);
        return *read_publication(client, "edge", access_.pinned)->manifest;
    }
    void expect_all(const std::string& text) {
        EXPECT_TRUE(await([&] { return all_have(text) && status().current == nodes_.size(); })) << text;
    }
};

TEST_F(ReplayTest, AnOldManifestComesIntoForceOnNoNewNode) {
    const WrongClock clock;
    add_node("n");
    ASSERT_TRUE(publish_text(list("old")));
    expect_all(list("old"));
    const SignedManifest old = published();
    ASSERT_TRUE(publish_text(list("now")));
    expect_all(list("now"));
    WrongClock::set(40 * day);
    put(old, key_);
    Machine& fresh = add_node("fresh");
    EXPECT_TRUE(says("fresh", NodeState::waiting, "valid until"));
    EXPECT_EQ(fresh.stand_in.in_force(), "");
    // A node that has newer state keeps it, by the serial.
    EXPECT_TRUE(says("n", NodeState::refused, "serial"));
    EXPECT_EQ(nodes_[0]->stand_in.in_force(), list("now"));
    ASSERT_TRUE(publish_text(list("next")));
    expect_all(list("next"));
}

// Nobody has published for long: what nodes have stays, over a restart, too. A new node waits until somebody
// signs the manifest anew.
TEST_F(ReplayTest, AnExpiredManifestStaysWhereItIsInForce) {
    const WrongClock clock;
    Machine& node = add_node("n");
    ASSERT_TRUE(publish_text(list("one")));
    expect_all(list("one"));
    ASSERT_TRUE(rollout_is(RolloutState::complete));
    WrongClock::set(365 * day);
    node.kill();
    node.start();
    expect_all(list("one"));
    add_node("fresh");
    EXPECT_TRUE(says("fresh", NodeState::waiting, "valid until"));
    EXPECT_EQ(nodes_[0]->stand_in.in_force(), list("one"));
    EXPECT_TRUE(rollout_is(RolloutState::complete)) << "a new node stops no rollout";
    const auto renewed = renew(access_, key_);
    ASSERT_TRUE(renewed) << renewed.error().message;
    expect_all(list("one"));
    EXPECT_GT(renewed->manifest.valid_until, milliseconds_now() / 1000);
}

// A node whose clock has not been set takes nothing that was made in its future, until the clock is set.
TEST_F(ReplayTest, ANewNodeWaitsForItsClock) {
    const WrongClock clock;
    ASSERT_TRUE(publish_text(list("one")));
    WrongClock::set(-365 * day);
    add_node("fresh");
    EXPECT_TRUE(says("fresh", NodeState::waiting, "in the future by this node's clock"));
    WrongClock::set(std::chrono::seconds(0));
    expect_all(list("one"));
}

// Whoever stole the key has signed the highest serial. With another key, the fleet goes on.
TEST_F(ReplayTest, AStolenKeySpendsNoSerialsOfTheNextKey) {
    Machine& node = add_node("n");
    ASSERT_TRUE(publish_text(list("one")));
    expect_all(list("one"));
    SignedManifest forged = published();
    forged.manifest.serial = last_serial;
    put(forged, key_);
    ASSERT_TRUE(await([&] { return status().current == 1; })) << "it is in force: the key is trusted";
    const auto overflows = publish_text(list("two"));
    ASSERT_FALSE(overflows) << "no serial is higher";
    EXPECT_NE(overflows.error().message.find("fleet repair"), std::string::npos) << overflows.error().message;

    // Operators trust another key alone, on the nodes and where they publish.
    key_ = std::move(*SigningKey::generate());
    access_.pinned = {public_key()};
    node.kill();
    node.settings.access.pinned = {public_key()};
    node.start();
    EXPECT_TRUE(says("n", NodeState::refused, "not pinned"));
    EXPECT_EQ(node.stand_in.in_force(), list("one"));
    EXPECT_FALSE(publish_text(list("two"))) << "etcd still has what the thief signed";
    const auto removed = repair(access_);
    ASSERT_TRUE(removed) << removed.error().message;
    EXPECT_EQ(*removed, 2U) << "the forged manifest, and the first one of the history";
    EXPECT_EQ(*repair(access_), 0U);
    EXPECT_TRUE(says("n", NodeState::refused, "nothing is published any more"));
    EXPECT_EQ(node.stand_in.in_force(), list("one"));
    ASSERT_TRUE(publish_text(list("two")));
    expect_all(list("two"));
    // The serials of this key count from here on.
    ASSERT_TRUE(publish_text(list("three")));
    expect_all(list("three"));
}

} // namespace
} // namespace sieve::fleet::test
