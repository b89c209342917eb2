// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Nodes that follow a real etcd and a real nginx. The daemon beside each of them is a stand-in, which takes
// at once what is put before it, or refuses it; tests/selftests/fleet.sh has the real one.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fleet/servers.hpp"
#include "fleet/stand_in.hpp"
#include "libsieve/fleet/fleet_status.hpp"
#include "libsieve/fleet/node/follower.hpp"
#include "libsieve/fleet/node/node_keeper.hpp"
#include "libsieve/fleet/publish.hpp"
#include "libsieve/fleet/servers/delta.hpp"
#include "libsieve/fleet/servers/etcd_paths.hpp"
#include "libsieve/fleet/servers/object_store.hpp"

namespace sieve::fleet::test {

class FleetTest : public testing::Test {
  protected:
    struct Machine {
        Machine(const std::string& its_folder, FollowerSettings its_settings)
            : folder(its_folder), settings(std::move(its_settings)), stand_in(its_folder) {
            start();
        }
        void start() {
            KeeperSettings kept;
            kept.folder = folder;
            kept.fleet = settings.access.fleet;
            for (const PublicKey& key : settings.access.pinned) kept.trusted.push_back(key.id());
            kept.fetch = [this](const Blob& blob, const std::string& path, const std::string& before,
                                int cancel) {
                ObjectStore store(settings.access.store, cancel);
                const UniqueFd at_hand(
                    before.empty() ? -1
                                   : ::open((folder + "/blobs/" + before).c_str(), O_RDONLY | O_CLOEXEC));
                std::optional<BlobAtHand> known;
                if (at_hand) known = BlobAtHand{before, at_hand.get()};
                return keep_blob(blob, path, store.url_of(blob),
                                 [&](int file) { return bring_blob(store, blob, known, file); });
            };
            kept.poll_busy = std::chrono::milliseconds(5);
            kept.retry.most = std::chrono::seconds(4);
            auto keeping = NodeKeeper::start(std::move(kept), stand_in, log);
            if (!keeping) throw std::runtime_error(keeping.error().message);
            keeper = std::move(*keeping);
            auto started = Follower::start(settings, *keeper);
            if (!started) throw std::runtime_error(started.error().message);
            follower = std::move(*started);
        }
        void kill() {
            follower.reset();
            keeper.reset();
        }
        ~Machine() { kill(); }

        std::string folder;
        FollowerSettings settings;
        StandIn stand_in;
        Quiet log;
        std::unique_ptr<NodeKeeper> keeper;
        std::unique_ptr<Follower> follower;
    };

    FleetTest() : key_(std::move(*SigningKey::generate())) {
        access_.fleet = "edge";
        access_.etcd = etcd_.settings();
        access_.store = store_.settings();
        access_.pinned.push_back(public_key());
        folder_.shell("mkdir nodes");
    }

    [[nodiscard]] PublicKey public_key() const {
        return std::move(*PublicKey::from_pem(*key_.public_pem(), "test"));
    }
    [[nodiscard]] FleetAccess copy_of_access() const {
        FleetAccess access;
        access.fleet = access_.fleet;
        access.etcd = access_.etcd;
        access.store = access_.store;
        access.pinned.push_back(public_key());
        return access;
    }
    Machine& add_node(const std::string& name, std::vector<std::string> labels = {}) {
        FollowerSettings settings;
        settings.access = copy_of_access();
        settings.access.node = name;
        settings.labels = std::move(labels);
        settings.report = std::chrono::milliseconds(300);
        settings.poll_idle = std::chrono::milliseconds(50);
        settings.ask_again = std::chrono::milliseconds(100);
        settings.health_interval = std::chrono::milliseconds(100);
        settings.view.backoff = {.first = std::chrono::milliseconds(20),
                                 .most = std::chrono::milliseconds(100)};
        nodes_.push_back(std::make_unique<Machine>(folder_.path("nodes/" + name), settings));
        return *nodes_.back();
    }
    void add_nodes(int count) {
        for (int i = 0; i < count; i++) add_node("n" + std::to_string(i));
    }

    Result<Published> publish_text(const std::string& text, Rollout rollout = {}) {
        if (rollout == Rollout{}) rollout.soak_seconds = 0;
        control::SetSpec spec;
        spec.name = "bad";
        spec.sources = {folder_.write("bad.txt", text)};
        return publish(access_, key_, {.sets = {spec}, .rollout = rollout}, {});
    }
    // A list that holds this address, and a remark for the stand-in.
    static std::string list(const std::string& remark, int address = 1) {
        return "192.0.2." + std::to_string(address) + "\n# " + remark + "\n";
    }
    [[nodiscard]] bool all_have(const std::string& text) const {
        return std::all_of(nodes_.begin(), nodes_.end(),
                           [&](const auto& node) { return node->stand_in.in_force() == text; });
    }
    FleetStatus status() {
        EtcdClient client(access_.etcd);
        auto status = read_fleet_status(client, access_);
        return status ? std::move(*status) : FleetStatus{};
    }
    bool rollout_is(RolloutState state) {
        return await([&] {
            const FleetStatus now = status();
            return now.published.rollout && now.published.rollout->state == state;
        });
    }
    // Whether the node says that, with these words in its error.
    bool says(const std::string& node, NodeState state, const std::string& error) {
        return await([&] {
            for (const NodeReport& report : status().nodes)
                if (report.node == node && report.state == state &&
                    report.error.find(error) != std::string::npos)
                    return true;
            return false;
        });
    }

    Etcd etcd_;
    Store store_;
    Folder folder_;
    SigningKey key_;
    FleetAccess access_;
    std::vector<std::unique_ptr<Machine>> nodes_;
};

} // namespace sieve::fleet::test
