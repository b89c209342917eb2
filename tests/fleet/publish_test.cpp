// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Publishing with real servers: what is stored, who wins, and what is refused.
#include "libsieve/fleet/publish.hpp"

#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "fleet/servers.hpp"
#include "libsieve/control/spec/build_options.hpp"
#include "libsieve/fleet/fleet_status.hpp"
#include "libsieve/fleet/manifest/publisher_serials.hpp"
#include "libsieve/fleet/servers/etcd_paths.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/image/image.hpp"

namespace sieve::fleet::test {
namespace {

class PublishTest : public testing::Test {
  protected:
    PublishTest() : key_(std::move(*SigningKey::generate())) {
        access_.fleet = "edge";
        access_.etcd = etcd_.settings();
        access_.store = store_.settings();
        access_.pinned.push_back(public_of(key_));
        folder_.write("bad.txt", "192.0.2.1\n192.0.2.2\n");
        folder_.write("worse.txt", "198.51.100.1\n");
    }

    static PublicKey public_of(const SigningKey& key) {
        return std::move(*PublicKey::from_pem(*key.public_pem(), "test"));
    }
    [[nodiscard]] control::SetSpec set(const std::string& name, const std::string& file) const {
        control::SetSpec spec;
        spec.name = name;
        spec.sources = {folder_.path(file)};
        return spec;
    }
    Result<Published> publish_sets(std::vector<control::SetSpec> sets, std::optional<BlobKind> as = {}) {
        return publish(access_, key_, {.sets = std::move(sets), .as = as}, {});
    }
    // As nodes, or an operator, leave it.
    void end_rollout(RolloutState state) {
        EtcdClient client(access_.etcd);
        const auto now = read_publication(client, "edge", access_.pinned);
        ASSERT_TRUE(now && now->rollout);
        RolloutRecord record = *now->rollout;
        record.state = state;
        const auto changed = change_rollout(client, *now, record);
        ASSERT_TRUE(changed && *changed);
    }
    // The manifest as etcdctl sees it.
    [[nodiscard]] nlohmann::json stored_manifest() const {
        const auto envelope =
            nlohmann::json::parse(etcd_.ctl("get --print-value-only " + EtcdPaths("edge").manifest()));
        return nlohmann::json::parse(envelope["manifest"].get<std::string>());
    }

    Etcd etcd_;
    Store store_;
    Folder folder_;
    SigningKey key_;
    FleetAccess access_;
};

TEST_F(PublishTest, StoresBlobsAndThenTheManifest) {
    const auto first = publish_sets({set("bad", "bad.txt")});
    ASSERT_TRUE(first) << first.error().message;
    const ManifestSet& bad = first->manifest.manifest.sets.at(0);
    EXPECT_EQ(bad.as, BlobKind::feed);
    EXPECT_EQ(bad.entries, 2U);
    EXPECT_EQ(store_.stored(bad.digest), "192.0.2.1\n192.0.2.2\n");
    EXPECT_EQ(first->sets.at(0).uploaded, Uploaded::sent);
    nlohmann::json stored = stored_manifest();
    EXPECT_EQ(stored["sets"][0]["digest"], sha256_of("192.0.2.1\n192.0.2.2\n"));
    EXPECT_EQ(stored["previous"], "");
    const auto rollout =
        nlohmann::json::parse(etcd_.ctl("get --print-value-only " + EtcdPaths("edge").rollout()));
    EXPECT_EQ(rollout["manifest"], first->manifest.digest);
    EXPECT_EQ(rollout["state"], "running");

    // Another set joins; the first one stays as it was, and its blob is not sent again.
    const auto second = publish_sets({set("worse", "worse.txt")}, BlobKind::image);
    ASSERT_TRUE(second) << second.error().message;
    stored = stored_manifest();
    ASSERT_EQ(stored["sets"].size(), 2U);
    EXPECT_EQ(stored["sets"][0]["digest"], bad.digest);
    EXPECT_EQ(stored["sets"][1]["as"], "image");
    EXPECT_EQ(stored["previous"], first->manifest.digest);
    EXPECT_GT(stored["serial"], first->manifest.manifest.serial);
    const ManifestSet& worse = second->manifest.manifest.sets.at(1);
    const auto image = Image::load(store_.folder().path("www/blobs/" + worse.digest));
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_EQ(image->file().keys, 1U);

    const auto third = publish(access_, key_, {.sets = {set("bad", "bad.txt")}, .only = true}, {});
    ASSERT_TRUE(third) << third.error().message;
    EXPECT_EQ(third->sets.at(0).uploaded, Uploaded::there_already);
    EXPECT_EQ(stored_manifest()["sets"].size(), 1U);
    EXPECT_EQ(
        etcd_.ctl("get --keys-only --prefix " + EtcdPaths("edge").history()).find(first->manifest.digest) ==
            std::string::npos,
        false);
}

TEST_F(PublishTest, OneOfTwoPublishersWins) {
    ASSERT_TRUE(publish_sets({set("bad", "bad.txt")}));
    EtcdClient one(access_.etcd);
    EtcdClient other(access_.etcd);
    const auto seen_by_one = read_publication(one, "edge", access_.pinned);
    const auto seen_by_other = read_publication(other, "edge", access_.pinned);
    ASSERT_TRUE(seen_by_one && seen_by_other);
    Manifest manifest = renewal_of(*seen_by_one->manifest);
    const auto won = publish_manifest(one, manifest, *seen_by_one, key_, milliseconds_now());
    ASSERT_TRUE(won) << won.error().message;
    // Two that publish the very same manifest have both published it.
    manifest.sets.at(0).digest = sha256_of("another");
    const auto lost = publish_manifest(other, manifest, *seen_by_other, key_, milliseconds_now());
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().kind, ErrorKind::changed_meanwhile);
    EXPECT_NE(lost.error().message.find("somebody else published"), std::string::npos);
    EXPECT_EQ(stored_manifest()["serial"], won->manifest.serial);
}

// Twenty at once: each either is told that it lost, or its manifest is one of a chain without gaps.
TEST_F(PublishTest, ManyPublishersMakeOneChain) {
    std::vector<std::thread> threads;
    std::vector<std::optional<SignedManifest>> won(20);
    std::atomic<int> told = 0;
    for (auto& mine : won)
        threads.emplace_back([&, number = &mine - won.data()] {
            EtcdClient client(access_.etcd);
            const auto before = read_publication(client, "edge", access_.pinned);
            if (!before) return;
            Manifest manifest;
            manifest.fleet = "edge";
            manifest.previous = base_of(*before);
            // Each has its own sets: two that publish the very same manifest have both published it.
            manifest.sets = {{.name = "bad", .digest = sha256_of(std::to_string(number)), .bytes = 1}};
            auto published = publish_manifest(client, manifest, *before, key_, milliseconds_now());
            if (published)
                mine = std::move(*published);
            else
                told += published.error().kind == ErrorKind::changed_meanwhile;
        });
    for (std::thread& thread : threads) thread.join();
    std::map<std::string, std::string> after; // by digest of the manifest before
    int winners = 0;
    for (const auto& one : won) {
        if (!one) continue;
        winners++;
        EXPECT_TRUE(after.emplace(one->manifest.previous, one->digest).second) << "two replaced the same one";
    }
    EXPECT_GE(winners, 1);
    EXPECT_EQ(winners + told, 20);
    std::string last;
    for (int i = 0; i < winners; i++) last = after.at(last);
    EXPECT_EQ(stored_manifest().dump().size() > 0 ? sha256_of(stored_manifest().dump()) : "", last);
}

TEST_F(PublishTest, RollsBackToWhatWasBefore) {
    const auto first = publish_sets({set("bad", "bad.txt")});
    ASSERT_TRUE(first);
    const auto none = roll_back(access_, key_, "");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind, ErrorKind::no);
    const auto second = publish_sets({set("bad", "worse.txt")});
    ASSERT_TRUE(second);
    const auto back = roll_back(access_, key_, "");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->manifest.sets, first->manifest.manifest.sets);
    EXPECT_EQ(back->manifest.rolls_back, second->manifest.digest);
    EXPECT_EQ(back->manifest.previous, first->manifest.digest);
    EXPECT_GT(back->manifest.serial, second->manifest.manifest.serial);
    const auto to = roll_back(access_, key_, second->manifest.digest.substr(0, 8));
    ASSERT_TRUE(to) << to.error().message;
    EXPECT_EQ(to->manifest.sets, second->manifest.manifest.sets);
    EXPECT_FALSE(roll_back(access_, key_, "000000"));
    EXPECT_FALSE(roll_back(access_, key_, "../now"));
}

// A renewal has the sets of the one before, and after a rollback nobody means what it took back.
TEST_F(PublishTest, RollsBackToOtherSets) {
    const auto first = publish_sets({set("bad", "bad.txt")});
    const auto second = publish_sets({set("bad", "worse.txt")});
    ASSERT_TRUE(first && second);
    end_rollout(RolloutState::complete);
    ASSERT_TRUE(renew(access_, key_));
    end_rollout(RolloutState::complete);
    const auto back = roll_back(access_, key_, "");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->manifest.sets, first->manifest.manifest.sets);
    end_rollout(RolloutState::complete);
    const auto none = roll_back(access_, key_, "");
    ASSERT_FALSE(none) << "back to what was taken back";
    EXPECT_EQ(none.error().kind, ErrorKind::no);
    const auto third = publish_sets({set("bad", "worse.txt"), set("worse", "worse.txt")});
    ASSERT_TRUE(third);
    EXPECT_EQ(roll_back(access_, key_, "")->manifest.sets, first->manifest.manifest.sets);
}

// What was stopped, or has come to some nodes only, is neither carried over nor gone back to.
TEST_F(PublishTest, BuildsOnWhatHasComeToAllNodes) {
    Rollout staged;
    staged.stages = {{.label = "canary"}, {}};
    staged.on_failure = OnRolloutFailure::rollback;
    std::vector<std::string> remarks;
    const control::Observer observer{.remark = [&](const std::string& text) { remarks.push_back(text); }};
    const auto publish_one = [&](const std::string& name, const std::string& text, const Rollout& rollout) {
        folder_.write("new.txt", text);
        remarks.clear();
        return publish(access_, key_, {.sets = {set(name, "new.txt")}, .rollout = rollout}, observer);
    };
    const auto good = publish_one("bad", "192.0.2.1\n", {});
    ASSERT_TRUE(good) << good.error().message;
    EXPECT_TRUE(remarks.empty());
    end_rollout(RolloutState::complete);
    const ManifestSet bad = good->manifest.manifest.sets.at(0);
    std::string base = good->manifest.digest;
    for (const RolloutState state :
         {RolloutState::halted, RolloutState::rolled_back, RolloutState::running, RolloutState::paused}) {
        ASSERT_TRUE(publish_one("bad", "198.51.100.1\n", staged));
        end_rollout(state);
        const auto next = publish_one("other", "192.0.2.9\n", staged);
        ASSERT_TRUE(next) << next.error().message;
        EXPECT_EQ(next->manifest.manifest.previous, base);
        EXPECT_EQ(next->manifest.manifest.sets.at(0), bad) << rollout_state_name(state);
        ASSERT_EQ(remarks.size(), 1U);
        EXPECT_NE(remarks[0].find(rollout_state_name(state)), std::string::npos) << remarks[0];
        // Nor is it for whoever goes back from there.
        const auto back = roll_back(access_, key_, "");
        ASSERT_TRUE(back) << back.error().message;
        EXPECT_EQ(back->manifest.sets, good->manifest.manifest.sets);
        base = back->digest;
        end_rollout(RolloutState::complete);
    }
    // However many are stopped, the one to build on is kept.
    for (std::size_t i = 0; i < kept_manifests + 2; i++) {
        ASSERT_TRUE(publish_one("bad", fmt::format("198.51.100.{}\n", i), staged));
        end_rollout(RolloutState::halted);
    }
    const auto last = publish_one("other", "192.0.2.9\n", {});
    ASSERT_TRUE(last) << last.error().message;
    EXPECT_EQ(last->manifest.manifest.sets.at(0), bad);
    // At the last stage, all nodes have it.
    const auto more = publish_one("more", "192.0.2.9\n", {});
    ASSERT_TRUE(more);
    EXPECT_EQ(more->manifest.manifest.previous, last->manifest.digest);
    EXPECT_EQ(more->manifest.manifest.sets.size(), 3U);
}

TEST_F(PublishTest, HoldsARolloutAndLetsItGoOn) {
    const auto nothing = hold_rollout(access_, Hold::pause);
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().kind, ErrorKind::no);
    ASSERT_TRUE(publish_sets({set("bad", "bad.txt")}));
    EXPECT_FALSE(hold_rollout(access_, Hold::resume));
    auto held = hold_rollout(access_, Hold::pause);
    ASSERT_TRUE(held) << held.error().message;
    EXPECT_EQ(held->state, RolloutState::paused);
    held = hold_rollout(access_, Hold::resume);
    ASSERT_TRUE(held) << held.error().message;
    EXPECT_EQ(held->state, RolloutState::running);
}

TEST_F(PublishTest, SaysWhatIsMissingOfThePublication) {
    ASSERT_TRUE(publish_sets({set("bad", "bad.txt")}));
    EtcdClient client(access_.etcd);
    ASSERT_TRUE(client.commit({.removals = {EtcdPaths("edge").rollout()}}));
    for (const auto& refused : {hold_rollout(access_, Hold::pause).error(), renew(access_, key_).error()}) {
        EXPECT_EQ(refused.kind, ErrorKind::no);
        EXPECT_NE(refused.message.find("the record of the rollout is missing"), std::string::npos);
    }
}

TEST_F(PublishTest, RefusesTooManySetsBeforeItSendsThem) {
    std::vector<control::SetSpec> sets;
    for (int i = 0; i < SIEVE_MAX_SETS; i++) sets.push_back(set(fmt::format("set{}", i), "bad.txt"));
    ASSERT_TRUE(publish_sets(sets));
    const auto refused = publish_sets({set("more", "worse.txt")});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
    EXPECT_NE(refused.error().message.find("1 set is named and 16 carried over"), std::string::npos)
        << refused.error().message;
    EXPECT_FALSE(std::filesystem::exists(store_.folder().path("www/blobs/" + sha256_of("198.51.100.1\n"))));
    EXPECT_TRUE(publish(access_, key_, {.sets = {set("more", "worse.txt")}, .only = true}, {}));
}

TEST_F(PublishTest, PublishesNothingThatIsWrong) {
    const auto refused = [&](std::vector<control::SetSpec> sets, std::optional<BlobKind> as, ErrorKind kind,
                             const std::string& why) {
        const auto published = publish_sets(std::move(sets), as);
        ASSERT_FALSE(published) << why;
        EXPECT_EQ(published.error().kind, kind) << published.error().message;
        EXPECT_NE(published.error().message.find(why), std::string::npos) << published.error().message;
        EXPECT_EQ(etcd_.ctl("get --keys-only --prefix /xdp-sieve/"), "") << why;
    };
    folder_.write("malformed.txt", "192.0.2.1\nno address\n");
    folder_.write("empty.txt", "# nothing\n");
    refused({set("bad", "malformed.txt")}, {}, ErrorKind::bad_input, "malformed.txt:2");
    refused({set("bad", "empty.txt")}, {}, ErrorKind::bad_input, "no keys in");
    refused({set("bad", "missing.txt")}, {}, ErrorKind::bad_input, "missing.txt");
    refused({set("bad", "bad.txt"), set("bad", "worse.txt")}, {}, ErrorKind::invalid_request, "bad");
    control::SetSpec verified = set("bad", "bad.txt");
    verified.verify.emplace();
    refused({verified}, {}, ErrorKind::invalid_request, "each node's configuration");
    control::SetSpec tuned = set("bad", "bad.txt");
    for (const control::BuildOption& option : control::build_options())
        if (option.name == std::string("fpr")) {
            ASSERT_TRUE(control::set_build_option(option, "1e-4", "fpr=1e-4", tuned.feed));
        }
    refused({tuned}, BlobKind::feed, ErrorKind::invalid_request, "how a feed is built");
    // Images carry secrets.
    for (const char* url : {"http://store.example/blobs", "HTTP://store.example/blobs", "http:/store.example",
                            "http://localhost.store.example/", "http://localhost@store.example/"}) {
        access_.store.url = url;
        refused({set("bad", "bad.txt")}, BlobKind::image, ErrorKind::invalid_request, "is not encrypted");
    }
    access_.store = store_.settings("/closed");
    refused({set("bad", "bad.txt")}, {}, ErrorKind::bad_input, "answered 503");
    // A key that no node trusts.
    access_.store = store_.settings();
    const auto stranger = SigningKey::generate();
    const auto published = publish(access_, *stranger, {.sets = {set("bad", "bad.txt")}}, {});
    ASSERT_FALSE(published);
    EXPECT_NE(published.error().message.find("not among the trusted-keys"), std::string::npos);
}

// Its nodes' own changes would be undone by each manifest.
TEST_F(PublishTest, PublishesNoFilterThatChangesInPlace) {
    control::SetSpec spec;
    spec.name = "bad";
    spec.sources = {folder_.write("bad.txt", "192.0.2.1\n")};
    spec.feed.build.kind.kind = SIEVE_KIND_DDLCBF;
    const auto refused = publish(access_, key_, {.sets = {spec}, .as = BlobKind::image}, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
    EXPECT_NE(refused.error().message.find("set bad: a filter of kind ddlcbf changes in place"),
              std::string::npos)
        << refused.error().message;
}

TEST_F(PublishTest, ReplacesAForgedManifestOnlyIfForced) {
    const auto stranger = SigningKey::generate();
    Manifest forged;
    forged.fleet = "edge";
    forged.serial = 1;
    forged.sets = {{.name = "bad", .digest = sha256_of("x"), .bytes = 1}};
    EtcdClient client(access_.etcd);
    ASSERT_TRUE(client.commit({.puts = {{EtcdPaths("edge").manifest(), *sign_manifest(forged, *stranger)}}}));
    const auto refused = publish_sets({set("bad", "bad.txt")});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("not pinned"), std::string::npos) << refused.error().message;
    const auto status = read_fleet_status(client, access_);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_TRUE(status->fault) << "a forged manifest is not seen";
    const auto forced = publish(access_, key_, {.sets = {set("bad", "bad.txt")}, .force = true}, {});
    ASSERT_TRUE(forced) << forced.error().message;
    EXPECT_EQ(stored_manifest()["serial"], forced->manifest.manifest.serial);
}

// Whoever may write to etcd can put an old manifest back, and nodes refuse it. Nobody is to sign it anew.
TEST_F(PublishTest, DoesNotBuildOnAManifestThatSomebodyPutBack) {
    EtcdClient client(access_.etcd);
    const EtcdPaths paths("edge");
    const std::string key_file = folder_.path("edge.key");
    ASSERT_TRUE(publish_sets({set("bad", "bad.txt")}));
    end_rollout(RolloutState::complete);
    const auto old = client.read_prefix(paths.now());
    ASSERT_TRUE(old);
    const auto second = publish_sets({set("bad", "worse.txt")});
    ASSERT_TRUE(second);
    EXPECT_EQ(last_serial(key_file, "edge").value(), 0U);
    ASSERT_TRUE(keep_serial(key_file, "other", 7));
    ASSERT_TRUE(keep_serial(key_file, "edge", second->manifest.manifest.serial));
    const std::uint64_t last = last_serial(key_file, "edge").value();
    EXPECT_EQ(last, second->manifest.manifest.serial);
    EXPECT_EQ(last_serial(key_file, "other").value(), 7U);
    const auto put_back = [&] {
        ASSERT_TRUE(client.commit({.puts = {{paths.manifest(), old->keys.at(paths.manifest()).value},
                                            {paths.rollout(), old->keys.at(paths.rollout()).value}}}));
    };
    const auto publish_other = [&](PublishRequest request) {
        put_back();
        request.last_serial = last;
        return publish(access_, key_, request, {});
    };
    const auto merged = publish_other({.sets = {set("worse", "worse.txt")}});
    ASSERT_FALSE(merged);
    EXPECT_EQ(merged.error().kind, ErrorKind::bad_input);
    EXPECT_NE(merged.error().message.find("has put back an old one"), std::string::npos);
    EXPECT_FALSE(renew(access_, key_, standard_validity, last));
    EXPECT_FALSE(roll_back(access_, key_, "", standard_validity, last));
    EXPECT_TRUE(publish_other({.sets = {set("bad", "bad.txt"), set("worse", "worse.txt")}}))
        << "nothing of it is carried over";
    EXPECT_TRUE(publish_other({.sets = {set("worse", "worse.txt")}, .only = true}));
    EXPECT_TRUE(publish_other({.sets = {set("worse", "worse.txt")}, .force = true}));
    put_back();
    EXPECT_TRUE(roll_back(access_, key_, second->manifest.digest, standard_validity, last));
}

// Nodes may write it, and it is nobody's signature: it neither holds up the next manifest nor costs the fleet
// its other sets.
TEST_F(PublishTest, ARecordOfTheRolloutThatIsNoneIsReplaced) {
    const EtcdPaths paths("edge");
    const auto spoil = [&] {
        EtcdClient client(access_.etcd);
        ASSERT_TRUE(client.commit({.puts = {{paths.rollout(), "{"}}}));
    };
    ASSERT_TRUE(publish_sets({set("bad", "bad.txt"), set("worse", "worse.txt")}));
    spoil();
    const auto held = hold_rollout(access_, Hold::pause);
    ASSERT_FALSE(held);
    EXPECT_NE(held.error().message.find("the next `xdp-sieve publish`"), std::string::npos)
        << held.error().message;
    folder_.write("bad.txt", "192.0.2.3\n");
    for (const bool force : {false, true}) {
        spoil();
        const auto published = publish(access_, key_, {.sets = {set("bad", "bad.txt")}, .force = force}, {});
        ASSERT_TRUE(published) << published.error().message;
        EXPECT_EQ(published->manifest.manifest.sets.size(), 2U);
    }
    spoil();
    const auto back = roll_back(access_, key_, "");
    EXPECT_TRUE(back) << back.error().message;
}

TEST_F(PublishTest, AReportIsOfTheNodeWhoseKeyItHas) {
    const EtcdPaths paths("edge");
    EtcdClient client(access_.etcd);
    const std::string report = report_text({.node = "n1"});
    ASSERT_TRUE(client.commit({.puts = {{paths.node("n1"), report}, {paths.node("n2"), report}}}));
    const auto status = read_fleet_status(client, access_);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(status->nodes.size(), 1U);
    EXPECT_EQ(status->unreadable, std::vector<std::string>{"n2"});
}

TEST_F(PublishTest, KeepsOnlySoManyManifests) {
    std::string oldest;
    for (std::size_t i = 0; i < kept_manifests + 3; i++) {
        EtcdClient client(access_.etcd);
        const auto before = read_publication(client, "edge", access_.pinned);
        ASSERT_TRUE(before);
        Manifest manifest;
        manifest.fleet = "edge";
        manifest.sets = {{.name = "bad", .digest = sha256_of(std::to_string(i)), .bytes = 1}};
        const auto published = publish_manifest(client, manifest, *before, key_, milliseconds_now());
        ASSERT_TRUE(published) << published.error().message;
        if (i == 0) oldest = published->digest;
    }
    EtcdClient client(access_.etcd);
    const auto kept = client.read_prefix(EtcdPaths("edge").history());
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->keys.size(), kept_manifests);
    EXPECT_FALSE(kept->keys.contains(EtcdPaths("edge").in_history(oldest)));
}

} // namespace
} // namespace sieve::fleet::test
