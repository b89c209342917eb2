// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Follows what a fleet publishes: watches etcd, says which manifest is this node's turn, reports what came of
// it, and takes the rollout further where that is due. Needs no privileges; what has an effect on this
// machine is its Node's.
//
//     etcd --watch--> watcher thread --mailbox--> worker thread --accept, bring_in--> Node
//       ^                                            |    ^------------view------------|
//       +----------- report, next stage -------------+
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "libsieve/fleet/manifest/fleet_access.hpp"
#include "libsieve/fleet/node/node.hpp"
#include "libsieve/fleet/servers/etcd_view.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct FollowerSettings {
    FleetAccess access{}; // without its store
    std::vector<std::string> labels{};
    std::vector<std::string> servers{}; // URLs of what this host depends on: etcd, the store
    std::chrono::milliseconds report{std::chrono::seconds(60)}; // how often at the latest
    // How often the node is looked at while it brings a manifest in, and otherwise.
    std::chrono::milliseconds poll_busy{20};
    std::chrono::milliseconds poll_idle{1000};
    // Until what could not be done about what is published is tried again.
    std::chrono::milliseconds ask_again{std::chrono::seconds(5)};
    // How often one of a few nodes looks whether a stage is healthy.
    std::chrono::milliseconds health_interval{1000};
    ViewOptions view{};
};

class Follower {
  public:
    // Starts the threads. `node` outlives the follower.
    [[nodiscard]] static Result<std::unique_ptr<Follower>> start(FollowerSettings settings, Node& node);
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;
    // Ends the threads at once.
    ~Follower();

  private:
    Follower() = default;
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace sieve::fleet
