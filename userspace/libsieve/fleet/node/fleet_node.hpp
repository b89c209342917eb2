// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A node of a fleet, for a daemon with privileges: a NodeKeeper in this process, and children without
// privileges for all that talks to servers or reads what they say.
//
//     child fleet-follow: etcd, manifests, rollout --socket--> NodeKeeper --files--> the daemon's cycles
//     child fleet-fetch:  one blob from the store  --file----^
//
// A child that dies is started again, later each time.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "libsieve/fleet/manifest/fleet_access.hpp"
#include "libsieve/fleet/node/local_node.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct FleetNodeSettings {
    FleetAccess access{};
    std::vector<std::string> labels{};
    std::string folder{};                // NodeStore's
    std::chrono::milliseconds report{0}; // how often at the latest
    service::SandboxSettings sandbox{};
};

class FleetNode {
  public:
    // `node` and `log` outlive it. Errors: the folder cannot be had.
    [[nodiscard]] static Result<std::unique_ptr<FleetNode>> start(FleetNodeSettings settings,
                                                                  const LocalNode& node, service::Log& log);
    FleetNode(const FleetNode&) = delete;
    FleetNode& operator=(const FleetNode&) = delete;
    // Ends the children at once. What is in force stays.
    ~FleetNode();

    // The configuration may have other sets now, or a person has accepted a list that was refused.
    void look_again();

  private:
    FleetNode() = default;
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace sieve::fleet
