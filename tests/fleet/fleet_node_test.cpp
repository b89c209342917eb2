// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A node whose children without privileges follow a real etcd and bring blobs from a real nginx.
#include "libsieve/fleet/node/fleet_node.hpp"

#include <sys/types.h>

#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

#include "fleet/servers.hpp"
#include "fleet/stand_in.hpp"
#include "libsieve/fleet/fleet_status.hpp"
#include "libsieve/fleet/manifest/publication.hpp"
#include "libsieve/fleet/publish.hpp"
#include "libsieve/fleet/servers/delta.hpp"
#include "libsieve/fleet/servers/sha256.hpp"

namespace sieve::fleet::test {
namespace {

using service::test::status_of;

class FleetNodeTest : public testing::Test {
  protected:
    FleetNodeTest() : stand_in_(folder_.path("node")), key_(std::move(*SigningKey::generate())) {}

    [[nodiscard]] FleetAccess access() const {
        FleetAccess access;
        access.fleet = "edge";
        access.node = "n";
        access.etcd = etcd_.settings();
        access.store = store_.settings();
        access.pinned.push_back(std::move(*PublicKey::from_pem(*key_.public_pem(), "test")));
        return access;
    }
    void start() {
        FleetNodeSettings settings;
        settings.access = access();
        settings.folder = folder_.path("node");
        settings.report = std::chrono::milliseconds(500);
        settings.sandbox = std::move(*service::standard_sandbox());
        settings.sandbox.started = [this](service::ChildRole, pid_t pid) {
            const std::lock_guard lock(mutex_);
            children_.push_back(pid);
        };
        auto started = FleetNode::start(std::move(settings), stand_in_, log_);
        ASSERT_TRUE(started) << started.error().message;
        node_ = std::move(*started);
    }
    void publish_text(const std::string& text) {
        control::SetSpec spec;
        spec.name = "bad";
        spec.sources = {folder_.write("bad.txt", text)};
        const auto published = publish(access(), key_, {.sets = {spec}}, {});
        ASSERT_TRUE(published) << published.error().message;
    }
    [[nodiscard]] bool is_current() {
        EtcdClient client(access().etcd);
        const auto status = read_fleet_status(client, access());
        return status && status->current == 1;
    }
    [[nodiscard]] std::vector<pid_t> children() const {
        const std::lock_guard lock(mutex_);
        return children_;
    }

    Etcd etcd_;
    Store store_;
    Folder folder_;
    StandIn stand_in_;
    Quiet log_;
    SigningKey key_;
    mutable std::mutex mutex_;
    std::vector<pid_t> children_;
    std::unique_ptr<FleetNode> node_;
};

TEST_F(FleetNodeTest, ServersAreAChildsBusiness) {
    start();
    ASSERT_TRUE(await([&] { return children().size() == 1; }));
    const pid_t follower = children()[0];
    // Before it says a word to etcd.
    ASSERT_TRUE(await([&] { return status_of(follower, "Seccomp") == "2"; }));
    EXPECT_EQ(status_of(follower, "CapEff"), "0000000000000000");
    EXPECT_EQ(status_of(follower, "CapBnd"), "0000000000000000");
    EXPECT_EQ(status_of(follower, "NoNewPrivs"), "1");
    EXPECT_EQ(status_of(follower, "Uid").substr(0, 2) == "0\t", false);
    publish_text("192.0.2.1\n");
    ASSERT_TRUE(await([&] { return stand_in_.in_force() == "192.0.2.1\n"; }));
    EXPECT_TRUE(await([&] { return is_current(); }));
    EXPECT_EQ(children().size(), 2U) << "one for etcd, one for the blob";
}

TEST_F(FleetNodeTest, AChildThatDiesIsStartedAgain) {
    start();
    publish_text("192.0.2.1\n");
    ASSERT_TRUE(await([&] { return is_current(); }));
    ASSERT_EQ(::kill(children()[0], SIGKILL), 0);
    publish_text("192.0.2.2\n");
    ASSERT_TRUE(await([&] { return stand_in_.in_force() == "192.0.2.2\n"; })) << log_.text();
    EXPECT_TRUE(await([&] { return is_current(); }));
    EXPECT_NE(log_.text().find("is started again: it was ended by signal 9"), std::string::npos)
        << log_.text();
}

// Any node may write the record of the rollout, and no message to the daemon is so long.
TEST_F(FleetNodeTest, ALongReasonEndsNoFollower) {
    publish_text("192.0.2.1\n");
    EtcdClient client(access().etcd);
    const auto published = read_publication(client, "edge", access().pinned);
    ASSERT_TRUE(published) << published.error().message;
    RolloutRecord record = *published->rollout;
    record.state = RolloutState::paused;
    record.why = std::string(std::size_t{1100} << 10, '!');
    ASSERT_TRUE(*change_rollout(client, *published, record));
    start();
    EXPECT_TRUE(await([&] { return is_current(); }));
    EXPECT_EQ(log_.text().find("has ended"), std::string::npos) << log_.text();
}

// The child without privileges can read the feed before, and nothing else beside it.
TEST_F(FleetNodeTest, AFeedComesAsItsDifference) {
    std::string one;
    for (int i = 0; i < 250; i++) one += "192.0.2." + std::to_string(i * 37 % 251) + "\n";
    const std::string two = one + "198.51.100.7\n";
    start();
    publish_text(one);
    ASSERT_TRUE(await([&] { return is_current(); }));
    publish_text(two);
    ASSERT_TRUE(await([&] { return stand_in_.in_force() == two; })) << log_.text();
    ASSERT_TRUE(await([&] { return is_current(); }));
    // nginx writes its log after it has answered.
    const std::string asked = "GET /blobs/" + delta_name(sha256_of(one), sha256_of(two)) + " 200";
    ASSERT_TRUE(await([&] { return store_.log().find(asked) != std::string::npos; })) << store_.log();
    const std::string log = store_.log();
    EXPECT_EQ(log.find("GET /blobs/" + sha256_of(two) + " "), std::string::npos) << log;
}

TEST_F(FleetNodeTest, ABlobThatIsNoneIsNamed) {
    start();
    publish_text("192.0.2.1\n");
    ASSERT_TRUE(await([&] { return is_current(); }));
    store_.kill();
    store_.put(sha256_of("192.0.2.2\n"), "192.0.2.3\n");
    store_.start();
    publish_text("192.0.2.2\n"); // it is there already, as far as a publisher sees
    ASSERT_TRUE(
        await([&] { return log_.text().find("expected " + sha256_of("192.0.2.2\n")) != std::string::npos; }));
    EXPECT_EQ(stand_in_.in_force(), "192.0.2.1\n");
    store_.put(sha256_of("192.0.2.2\n"), "192.0.2.2\n");
    EXPECT_TRUE(await([&] { return stand_in_.in_force() == "192.0.2.2\n"; }));
}

} // namespace
} // namespace sieve::fleet::test
