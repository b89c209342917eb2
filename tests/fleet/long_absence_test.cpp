// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What weeks bring about: nodes that were off, histories that were thrown away, clocks that are wrong,
// servers that come back with less than they had.
#include <chrono>

#include "fleet/fleet_test.hpp"
#include "fleet/wrong_clock.hpp"
#include "libsieve/fleet/manifest/publication.hpp"
#include "libsieve/fleet/node/node_store.hpp"
#include "libsieve/fleet/servers/sha256.hpp"

namespace sieve::fleet::test {
namespace {

constexpr std::chrono::hours month{24 * 30};

class LongAbsenceTest : public FleetTest {
  protected:
    [[nodiscard]] bool accepted(const Machine& node, std::uint64_t serial) const {
        return await([&] {
            const auto store = NodeStore::open(node.folder);
            if (!store) return false;
            const auto known = store->accepted();
            return known && *known && (*known)->serial == serial;
        });
    }
    [[nodiscard]] std::uint64_t serial() { return status().published.manifest->manifest.serial; }
    void expect_all(const std::string& text) {
        EXPECT_TRUE(await([&] { return all_have(text) && status().current == nodes_.size(); })) << text;
    }
};

// The node was off for a month. Meanwhile there were more publications than etcd keeps, its history was
// compacted, the node's lease has ended, and the store has nothing old any more.
TEST_F(LongAbsenceTest, ANodeThatWasOffComesToWhatIsPublished) {
    Machine& node = add_node("n");
    ASSERT_TRUE(publish_text(list("long ago")));
    expect_all(list("long ago"));
    node.kill();
    for (std::size_t i = 0; i < kept_manifests + 4; i++)
        ASSERT_TRUE(publish_text(list("round " + std::to_string(i))));
    store_.remove_all();
    ASSERT_TRUE(publish_text(list("now")));
    EtcdClient client(access_.etcd);
    const auto keys = client.read_prefix("/");
    ASSERT_TRUE(keys);
    etcd_.ctl("compaction " + std::to_string(keys->revision));
    ASSERT_TRUE(await([&] { return status().nodes.empty(); })) << "its lease has ended";
    EXPECT_EQ(node.stand_in.in_force(), list("long ago"));
    node.start();
    expect_all(list("now"));
}

// A stage that has not come to the node leaves it what it has, however old that is.
TEST_F(LongAbsenceTest, ANodeWhoseStageHasNotComeKeepsWhatItHas) {
    Machine& node = add_node("n");
    ASSERT_TRUE(publish_text(list("long ago")));
    expect_all(list("long ago"));
    node.kill();
    for (std::size_t i = 0; i < kept_manifests + 1; i++)
        ASSERT_TRUE(publish_text(list("round " + std::to_string(i))));
    Rollout rollout;
    rollout.stages = {{.label = "canary"}, {}};
    rollout.soak_seconds = 3600;
    ASSERT_TRUE(publish_text(list("now"), rollout));
    ASSERT_TRUE(hold_rollout(access_, Hold::pause));
    node.start();
    EXPECT_TRUE(says("n", NodeState::waiting, ""));
    EXPECT_EQ(node.stand_in.in_force(), list("long ago"));
    ASSERT_TRUE(publish_text(list("then")));
    expect_all(list("then"));
}

// etcd has taken the node's lease away, as after a partition that lasted longer than it.
TEST_F(LongAbsenceTest, ANodeWhoseLeaseHasEndedReportsAnew) {
    add_node("n");
    ASSERT_TRUE(publish_text(list("one")));
    expect_all(list("one"));
    EtcdClient client(access_.etcd);
    const auto reports = client.read_prefix(EtcdPaths("edge").nodes());
    ASSERT_TRUE(reports);
    ASSERT_EQ(reports->keys.size(), 1U);
    const std::int64_t lease = reports->keys.begin()->second.lease;
    ASSERT_TRUE(client.revoke_lease(lease));
    EXPECT_TRUE(await([&] {
        const auto now = client.read_prefix(EtcdPaths("edge").nodes());
        return now && now->keys.size() == 1 && now->keys.begin()->second.lease != lease;
    }));
    ASSERT_TRUE(publish_text(list("two")));
    expect_all(list("two"));
}

// Clocks of nodes and publishers that are wrong by a month, one way and the other. No decision of a node
// depends on the time of day, and serials rise whatever a publisher's clock says.
TEST_F(LongAbsenceTest, ClocksMayBeWrong) {
    const WrongClock clock;
    Machine& node = add_node("n");
    ASSERT_TRUE(publish_text(list("one")));
    expect_all(list("one"));
    const std::uint64_t first = serial();
    WrongClock::set(month);
    ASSERT_TRUE(publish_text(list("two")));
    expect_all(list("two"));
    const std::uint64_t ahead = serial();
    EXPECT_GE(ahead, first + 29ULL * 24 * 3600 * 1000) << "the serial has jumped";
    WrongClock::set(-month);
    ASSERT_TRUE(publish_text(list("three")));
    expect_all(list("three"));
    EXPECT_EQ(serial(), ahead + 1);
    node.kill();
    node.start();
    expect_all(list("three"));
    WrongClock::set(std::chrono::seconds(0));
    ASSERT_TRUE(roll_back(access_, key_, ""));
    expect_all(list("two"));
    EXPECT_TRUE(accepted(node, ahead + 2));
}

// etcd comes back with an old backup: an older serial is refused, what is in force stays, and the fleet goes
// on with the next manifest. A rollback is one, too.
TEST_F(LongAbsenceTest, AnOldBackupOfEtcdIsAReplay) {
    Machine& node = add_node("n");
    ASSERT_TRUE(publish_text(list("one")));
    ASSERT_TRUE(publish_text(list("two")));
    expect_all(list("two"));
    etcd_.back_up();
    ASSERT_TRUE(publish_text(list("three")));
    expect_all(list("three"));
    const std::uint64_t third = serial();
    etcd_.restore();
    ASSERT_LT(serial(), third);
    EXPECT_TRUE(says("n", NodeState::refused, "serial"));
    EXPECT_EQ(node.stand_in.in_force(), list("three"));
    node.kill();
    node.start();
    EXPECT_TRUE(says("n", NodeState::refused, "serial"));
    EXPECT_EQ(node.stand_in.in_force(), list("three"));
    ASSERT_TRUE(roll_back(access_, key_, "")) << "of what the backup has";
    expect_all(list("one"));
    EXPECT_GT(serial(), third);
    ASSERT_TRUE(publish_text(list("four")));
    expect_all(list("four"));
}

// etcd comes back with nothing, and the next manifest goes on from there; no older one comes in.
TEST_F(LongAbsenceTest, AnEmptyEtcdForgetsNoSerial) {
    Machine& node = add_node("n");
    ASSERT_TRUE(publish_text(list("one")));
    const auto old = read_publication(*std::make_unique<EtcdClient>(access_.etcd), "edge", access_.pinned);
    ASSERT_TRUE(old);
    ASSERT_TRUE(publish_text(list("two")));
    expect_all(list("two"));
    etcd_.lose_data();
    etcd_.start();
    EXPECT_TRUE(says("n", NodeState::refused, "nothing is published any more"));
    // Somebody who kept the old envelope puts it there.
    EtcdClient client(access_.etcd);
    const EtcdPaths paths("edge");
    ASSERT_TRUE(
        client.commit({.puts = {{paths.manifest(), *sign_manifest(old->manifest->manifest, key_)},
                                {paths.rollout(), rollout_text({.manifest = old->manifest->digest})}}}));
    EXPECT_TRUE(says("n", NodeState::refused, "serial"));
    EXPECT_EQ(node.stand_in.in_force(), list("two"));
    ASSERT_TRUE(publish_text(list("three")));
    expect_all(list("three"));
}

// The store has lost what is in force: nodes that have it do not need it, not even to go back. A new node
// says what is missing, and heals once it is there.
TEST_F(LongAbsenceTest, BlobsMayBeDeleted) {
    add_node("n");
    ASSERT_TRUE(publish_text(list("one")));
    expect_all(list("one"));
    ASSERT_TRUE(publish_text(list("two")));
    expect_all(list("two"));
    store_.remove_all();
    ASSERT_TRUE(roll_back(access_, key_, ""));
    expect_all(list("one"));
    add_node("m");
    EXPECT_TRUE(says("m", NodeState::failed, "404"));
    EXPECT_EQ(nodes_[0]->stand_in.in_force(), list("one"));
    store_.put(sha256_of(list("one")), list("one"));
    expect_all(list("one"));
}

} // namespace
} // namespace sieve::fleet::test
