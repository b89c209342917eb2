// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// When a manifest counts as in force, with a daemon and a kernel whose every step the test makes.
#include "libsieve/fleet/node/node_keeper.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "libsieve/fleet/manifest/publication.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/util/files/digest.hpp"
#include "unit/messages.hpp"

namespace sieve::fleet {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> one_key = {"a"};

class Daemon final : public LocalNode {
  public:
    [[nodiscard]] std::map<std::string, LocalSet> sets() const override {
        const std::lock_guard lock(mutex_);
        looks_++;
        return sets_;
    }
    [[nodiscard]] Result<FiltersInForce> running() const override {
        const std::lock_guard lock(mutex_);
        return running_;
    }
    [[nodiscard]] NodeTraffic traffic() const override { return {}; }
    void note(const service::watching::FleetStanding& standing) const override {
        const std::lock_guard lock(mutex_);
        told_ = standing;
    }
    [[nodiscard]] service::watching::FleetStanding told() const {
        const std::lock_guard lock(mutex_);
        return told_;
    }

    // A step of the daemon's.
    template <class Step>
    void step(Step step) {
        const std::lock_guard lock(mutex_);
        step(sets_, running_);
    }
    [[nodiscard]] unsigned looks() const {
        const std::lock_guard lock(mutex_);
        return looks_;
    }

  private:
    mutable std::mutex mutex_;
    mutable unsigned looks_ = 0;
    mutable service::watching::FleetStanding told_;
    std::map<std::string, LocalSet> sets_;
    FiltersInForce running_;
};

class Silent final : public service::Log {
  public:
    void write(service::LogLevel, const std::string&, const service::LogFields&) override {}
};

bool await(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!holds()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

class NodeKeeperTest : public testing::Test {
  protected:
    NodeKeeperTest() {
        std::string pattern = (fs::temp_directory_path() / "sieve-keeper-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
        folder_ = pattern;
        daemon_.step([](auto& sets, FiltersInForce&) { sets["bad"] = {}; });
        start();
    }
    ~NodeKeeperTest() override {
        keeper_.reset();
        fs::remove_all(folder_);
    }
    void start(const std::string& fleet = "edge") {
        keeper_.reset();
        KeeperSettings settings;
        settings.folder = folder_;
        settings.fleet = fleet;
        settings.trusted = one_key;
        settings.poll_busy = std::chrono::milliseconds(1);
        settings.retry = {.first = std::chrono::milliseconds(2), .most = std::chrono::milliseconds(4)};
        settings.fetch = [this](const Blob& blob, const std::string& path, const std::string&,
                                int) -> Status {
            if (blob.digest == sha256_of("missing")) return bad_input("the store has none");
            std::ofstream(path) << content_.at(blob.digest);
            return {};
        };
        auto started = NodeKeeper::start(std::move(settings), daemon_, log_);
        if (!started) throw std::runtime_error(started.error().message);
        keeper_ = std::move(*started);
    }
    // A manifest of one set with this content, which the keeper is told to bring in.
    std::string publish(const std::string& content) {
        content_[sha256_of(content)] = content;
        SignedManifest manifest;
        manifest.manifest.fleet = "edge";
        manifest.manifest.serial = ++serial_;
        manifest.manifest.published_at = milliseconds_now() / 1000;
        manifest.manifest.valid_until = manifest.manifest.published_at + standard_validity;
        manifest.signers = one_key;
        manifest.manifest.previous = previous_;
        manifest.manifest.sets = {{.name = "bad", .digest = sha256_of(content), .bytes = content.size()}};
        manifest.digest = previous_ = manifest_digest(manifest.manifest);
        EXPECT_TRUE(keeper_->accept(manifest));
        EXPECT_TRUE(keeper_->bring_in(manifest));
        last_ = manifest;
        return manifest.digest;
    }
    // A visit to the sources begins.
    void begin() {
        daemon_.step([](auto& sets, FiltersInForce&) { sets["bad"].begun++; });
    }
    // The visit that has begun ends: this content was found, and the image of it has this identity.
    void end(const std::string& content, const std::string& identity) {
        daemon_.step([&](auto& sets, FiltersInForce&) {
            LocalSet& set = sets["bad"];
            set.ended = set.begun;
            set.contents = {digest_of(content)};
            set.identity = identity;
            set.trouble.clear();
        });
    }
    void refuse(const std::string& why) {
        daemon_.step([&](auto& sets, FiltersInForce&) {
            sets["bad"].ended = sets["bad"].begun;
            sets["bad"].trouble = why;
        });
    }
    void run(const std::set<std::string>& identities) {
        daemon_.step([&](auto&, FiltersInForce& running) { running.identities["bad"] = identities; });
    }
    // The keeper has looked at the daemon often enough to have seen its last step.
    void let_look() {
        const unsigned before = daemon_.looks();
        ASSERT_TRUE(await([&] { return daemon_.looks() >= before + 6; }));
    }
    [[nodiscard]] bool comes(const std::string& digest) {
        return await([&] { return keeper_->view().in_force == digest; });
    }
    [[nodiscard]] std::string source() const {
        std::ifstream file(folder_ + "/current/bad");
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void switched_to(const std::string& content) {
        ASSERT_TRUE(await([&] { return source() == content; }));
    }
    // Brings it in without any trouble.
    std::string bring(const std::string& content, const std::string& identity) {
        const std::string digest = publish(content);
        switched_to(content);
        let_look();
        begin();
        run({identity});
        end(content, identity);
        EXPECT_TRUE(comes(digest));
        return digest;
    }

    Daemon daemon_;
    Silent log_;
    std::string folder_;
    std::map<std::string, std::string> content_;
    std::string previous_;
    std::uint64_t serial_ = 0;
    SignedManifest last_;
    std::unique_ptr<NodeKeeper> keeper_;
};

TEST_F(NodeKeeperTest, InForceIsWhatTheKernelRuns) {
    const std::string digest = publish("one");
    switched_to("one");
    let_look();
    EXPECT_EQ(keeper_->view().in_force, "");
    begin();
    let_look();
    EXPECT_EQ(keeper_->view().in_force, "");
    run({"B"});      // first, since a set that runs nowhere would be in force
    end("one", "A"); // remembered, but not swapped in
    let_look();
    EXPECT_EQ(keeper_->view().in_force, "");
    EXPECT_EQ(keeper_->view().state, NodeState::fetching);
    run({"A", "B"}); // on one of two interfaces
    let_look();
    EXPECT_EQ(keeper_->view().in_force, "");
    run({"A"});
    EXPECT_TRUE(comes(digest));
    EXPECT_EQ(keeper_->view().state, NodeState::in_force);
}

// The daemon died after a swap and before it wrote down what it had swapped in: it remembers the list of
// before, and the kernel runs the new one.
TEST_F(NodeKeeperTest, ARecordThatIsOlderThanTheKernelProvesNothing) {
    const std::string one = bring("one", "A");
    keeper_.reset();
    daemon_.step([](auto& sets, FiltersInForce& running) {
        sets["bad"].begun = sets["bad"].ended = 0; // a new process has visited nothing
        running.identities["bad"] = {"B"};
    });
    start();
    let_look();
    EXPECT_EQ(keeper_->view().in_force, "") << "on the word of the record alone";
    ASSERT_TRUE(keeper_->bring_in(last_));
    let_look();
    EXPECT_EQ(keeper_->view().in_force, "");
    begin();
    end("one", "A"); // the same list as the record's; the swap follows
    let_look();
    EXPECT_EQ(keeper_->view().in_force, "");
    run({"A"});
    EXPECT_TRUE(comes(one));
}

// Back to a list that is in force still, while the daemon is about to bring in the one between.
TEST_F(NodeKeeperTest, AVisitThatBeganBeforeTheSwitchMustEndFirst) {
    bring("one", "A");
    publish("two");
    switched_to("two");
    let_look();
    begin(); // reads "two"
    const std::string back = publish("one");
    switched_to("one");
    let_look();
    EXPECT_NE(keeper_->view().in_force, back) << "\"two\" comes in yet";
    run({"B"});
    end("two", "B");
    let_look();
    EXPECT_NE(keeper_->view().in_force, back);
    begin();
    run({"C"});
    end("one", "C");
    EXPECT_TRUE(comes(back));
}

TEST_F(NodeKeeperTest, ARefusedListLeavesWhatWasBefore) {
    const std::string one = bring("one", "A");
    publish("two");
    switched_to("two");
    let_look();
    begin();
    refuse("a guard refused it");
    ASSERT_TRUE(await([&] { return source() == "one"; }));
    let_look();
    EXPECT_EQ(keeper_->view().in_force, "") << "the visit after the way back has not ended";
    begin();
    end("one", "A");
    ASSERT_TRUE(await([&] { return keeper_->view().state == NodeState::failed; }));
    EXPECT_EQ(keeper_->view().error, "a guard refused it");
    EXPECT_EQ(keeper_->view().held, one);
}

// A reload has it look again. The visit that is to judge the manifest has not ended, and none has failed.
TEST_F(NodeKeeperTest, AnInterruptionAfterTheSwitchJudgesNothing) {
    bring("one", "A");
    const std::string two = publish("two");
    switched_to("two");
    let_look();
    keeper_->look_again();
    let_look();
    EXPECT_EQ(source(), "two");
    EXPECT_EQ(keeper_->view().error, "");
    begin();
    run({"B"});
    end("two", "B");
    EXPECT_TRUE(comes(two));
    // The next visit is under way already when the keeper looks again.
    publish("three");
    switched_to("three");
    let_look();
    begin();
    daemon_.step([](auto& sets, FiltersInForce&) {
        sets["bad"].ended = sets["bad"].begun++;
        sets["bad"].contents = {digest_of("three")};
    });
    keeper_->look_again();
    let_look();
    EXPECT_EQ(keeper_->view().error, "");
    run({"C"});
    end("three", "C");
    EXPECT_TRUE(comes(last_.digest));
    // What the visit finds after an interruption counts all the same.
    publish("four");
    switched_to("four");
    let_look();
    begin();
    keeper_->look_again();
    let_look();
    refuse("a guard refused it");
    ASSERT_TRUE(await([&] { return source() == "three"; }));
    begin();
    end("three", "C");
    ASSERT_TRUE(await([&] { return keeper_->view().state == NodeState::failed; }));
    EXPECT_EQ(keeper_->view().error, "a guard refused it");
}

// Guards need not compare their sizes with that of the list in force.
TEST_F(NodeKeeperTest, ListsThatWereInForceOrThatItGoesBackToAreKnown) {
    const auto knows = [&](const std::string& content) {
        return fs::is_symlink(folder_ + "/known/" + sha256_of(content));
    };
    bring("one", "A");
    EXPECT_TRUE(knows("one"));
    publish("two");
    switched_to("two");
    EXPECT_FALSE(knows("two"));
    let_look();
    begin();
    refuse("a guard refused it");
    ASSERT_TRUE(await([&] { return source() == "one"; }));
    EXPECT_FALSE(knows("two"));
    SignedManifest back = last_;
    back.manifest.serial = ++serial_;
    back.manifest.rolls_back = last_.digest;
    back.manifest.sets[0].digest = sha256_of("three");
    content_[sha256_of("three")] = "three";
    back.digest = manifest_digest(back.manifest);
    ASSERT_TRUE(keeper_->accept(back));
    ASSERT_TRUE(keeper_->bring_in(back));
    switched_to("three");
    EXPECT_TRUE(knows("three")) << "before anybody reads it";
    keeper_.reset();
    fs::remove_all(folder_ + "/known");
    start();
    EXPECT_TRUE(await([&] { return knows("one"); })) << "an older version has noted nothing";
}

// Until another manifest is wanted, a person may accept a list of the one that was refused.
TEST_F(NodeKeeperTest, NotesWhichManifestWasRefused) {
    const auto refused = [&] {
        std::error_code error;
        return fs::read_symlink(folder_ + "/refused", error).filename().string();
    };
    bring("one", "A");
    const std::string two = publish("two");
    switched_to("two");
    let_look();
    begin();
    refuse("a guard refused it");
    ASSERT_TRUE(await([&] { return source() == "one"; }));
    EXPECT_EQ(refused(), two);
    begin();
    end("one", "A");
    ASSERT_TRUE(await([&] { return source() == "two"; })) << "it tries again";
    EXPECT_EQ(refused(), two);
    bring("three", "C");
    EXPECT_EQ(refused(), "");
}

// Somebody may publish for weeks what this host refuses.
TEST_F(NodeKeeperTest, RefusedListsDoNotAddUp) {
    const auto files = [&](const char* part) {
        return std::distance(fs::directory_iterator(folder_ + part), fs::directory_iterator());
    };
    bring("one", "A");
    for (int i = 0; i < 10; i++) {
        const std::string content = "refused " + std::to_string(i);
        publish(content);
        switched_to(content);
        let_look();
        begin();
        refuse("a guard refused it");
        ASSERT_TRUE(await([&] { return source() == "one"; }));
        let_look();
        begin();
        end("one", "A");
        ASSERT_TRUE(await([&] { return keeper_->view().state == NodeState::failed; }));
    }
    // What is in force, what is wanted, and what was wanted before.
    EXPECT_LE(files("/blobs"), 3);
    EXPECT_LE(files("/manifests"), 3);
    EXPECT_LE(files("/serials"), 3);
}

// Without the record, an older manifest could pass for a newer one.
TEST_F(NodeKeeperTest, ARecordThatCannotBeReadIsNotForgotten) {
    publish("v1");
    const SignedManifest first = last_;
    publish("v2");
    const std::string path = folder_ + "/accepted.json";
    fs::remove(path);
    fs::create_directory(path);
    for (const SignedManifest& any : {first, last_}) {
        expect_error(keeper_->accept(any), ErrorKind::bad_input);
        EXPECT_FALSE(keeper_->bring_in(any));
    }
}

// A host that moves to another fleet of the same publisher knows no serial there.
TEST_F(NodeKeeperTest, SerialsAreThoseOfOneFleet) {
    bring("one", "A");
    const SignedManifest first = last_;
    bring("two", "B");
    SignedManifest other = first;
    other.manifest.fleet = "core";
    other.digest = manifest_digest(other.manifest);
    start("core");
    EXPECT_FALSE(keeper_->view().has_accepted);
    EXPECT_TRUE(keeper_->accept(other));
    EXPECT_TRUE(keeper_->bring_in(other));
    EXPECT_TRUE(keeper_->view().has_accepted);
    other.manifest.serial--;
    other.digest = manifest_digest(other.manifest);
    EXPECT_FALSE(keeper_->accept(other)) << "serials count from here on";
}

// As a file system may leave it after a crash. The host is then a new node, whose folder nobody tidies up.
TEST_F(NodeKeeperTest, ARecordThatIsDamagedIsReplaced) {
    bring("one", "A");
    for (const std::string& damaged : {std::string(20, '\0'), std::string("{"), std::string("x")}) {
        std::ofstream(folder_ + "/accepted.json") << damaged;
        publish("after " + damaged);
    }
}

TEST_F(NodeKeeperTest, NothingElseComesIn) {
    const std::string one = bring("one", "A");
    const SignedManifest first = last_;
    bring("two", "B");
    EXPECT_FALSE(keeper_->accept(first)) << "an older manifest";
    EXPECT_FALSE(keeper_->bring_in(first)) << "no signature says that this node may go back";
    SignedManifest failing = last_;
    failing.manifest.serial = ++serial_;
    failing.manifest.previous = last_.digest;
    failing.manifest.sets[0].digest = sha256_of("missing");
    failing.manifest.rollout.on_failure = OnRolloutFailure::rollback;
    failing.digest = manifest_digest(failing.manifest);
    EXPECT_FALSE(keeper_->bring_in(failing)) << "it was not accepted";
    ASSERT_TRUE(keeper_->accept(failing));
    ASSERT_TRUE(keeper_->bring_in(failing));
    ASSERT_TRUE(await([&] { return keeper_->view().error == "the store has none"; }));
    EXPECT_EQ(source(), "two");
    EXPECT_EQ(keeper_->view().in_force, last_.digest);
    EXPECT_TRUE(keeper_->bring_in(last_));
    EXPECT_TRUE(await([&] { return keeper_->view().state == NodeState::in_force; }));
    // What was accepted outlives the process.
    start();
    EXPECT_FALSE(keeper_->accept(last_));
}

TEST_F(NodeKeeperTest, ASetThatChangesInPlaceFollowsNoFleet) {
    const std::string one = bring("one", "A");
    daemon_.step([](auto& sets, FiltersInForce&) { sets["bad"].in_place = "is of kind ddlcbf"; });
    publish("two");
    ASSERT_TRUE(await([&] { return keeper_->view().state == NodeState::failed; }));
    expect_says(keeper_->view().error);
    EXPECT_EQ(source(), "one");
    EXPECT_EQ(keeper_->view().in_force, one);
}

// What metrics and the status page show, from the follower's news and what the keeper sees.
TEST_F(NodeKeeperTest, TellsHowTheHostStands) {
    using service::watching::FleetState;
    EXPECT_TRUE(daemon_.told().fleet.empty()) << "the follower has said nothing yet";
    FollowerNews news;
    news.fleet = "edge";
    keeper_->tell(news);
    EXPECT_EQ(daemon_.told().state, FleetState::etcd_away);
    EXPECT_FALSE(daemon_.told().contact);
    news.published = Finding::manifest;
    news.serial = 1;
    news.contact = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                  std::chrono::steady_clock::now().time_since_epoch())
                                                  .count()) -
                   60'000;
    bring("one", "A");
    keeper_->tell(news);
    const auto told = daemon_.told();
    EXPECT_EQ(told.state, FleetState::followed);
    EXPECT_EQ(told.in_force, 1U);
    EXPECT_EQ(told.wanted, 1U);
    EXPECT_EQ(told.manifest, brief(last_.digest));
    const auto age = std::chrono::system_clock::now() - told.contact.value();
    EXPECT_GE(age, std::chrono::seconds(59));
    EXPECT_LT(age, std::chrono::minutes(30));

    // A new process knows the serial of what it finds in force.
    start();
    begin();
    end("one", "A");
    keeper_->tell(news);
    EXPECT_TRUE(await([&] { return daemon_.told().in_force == 1; }));

    publish("two");
    EXPECT_TRUE(await([&] { return daemon_.told().state == FleetState::behind; }));
    EXPECT_EQ(daemon_.told().wanted, 2U);
    switched_to("two");
    let_look();
    begin();
    refuse("a guard refused it");
    ASSERT_TRUE(await([&] { return source() == "one"; }));
    begin();
    end("one", "A");
    ASSERT_TRUE(await([&] { return daemon_.told().state == FleetState::failed; }));
    EXPECT_EQ(daemon_.told().error, "a guard refused it");
    EXPECT_GE(daemon_.told().failures, 1U);
    // The store does not give the next one.
    publish("missing");
    ASSERT_TRUE(await([&] { return daemon_.told().state == FleetState::store_away; }));
}

// What somebody has taken out of the manifest stays in force, and the node says so.
TEST_F(NodeKeeperTest, NamesASetThatTheManifestDoesNotHave) {
    daemon_.step([](auto& sets, FiltersInForce&) {
        sets["own"].identity = "X";
        sets["new"].follows = true;
    });
    bring("one", "A");
    EXPECT_EQ(keeper_->view().error, "");
    daemon_.step([](auto& sets, FiltersInForce&) {
        sets["old"].follows = true;
        sets["old"].identity = "Y";
    });
    bring("two", "B");
    EXPECT_EQ(keeper_->view().state, NodeState::in_force);
    expect_says(keeper_->view().error);
    FollowerNews news;
    news.fleet = "edge";
    news.published = Finding::manifest;
    keeper_->tell(news);
    EXPECT_EQ(daemon_.told().state, service::watching::FleetState::followed);
    EXPECT_EQ(daemon_.told().error, keeper_->view().error);
}

TEST_F(NodeKeeperTest, NamesASetThatReadsSomethingElse) {
    publish("one");
    switched_to("one");
    let_look();
    begin();
    end("another file", "A");
    run({"A"});
    ASSERT_TRUE(await([&] { return keeper_->view().state == NodeState::failed; }));
    expect_says(keeper_->view().error);
}

} // namespace
} // namespace sieve::fleet
