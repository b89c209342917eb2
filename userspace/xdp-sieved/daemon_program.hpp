// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The daemon as a program: what main() does. Whoever links a fleet hands it over.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "libsieve/service/config/values/fleet_configuration.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/service/monitor/statistics.hpp"
#include "libsieve/service/safety/host_addresses.hpp"
#include "libsieve/service/sandbox/child_main.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::cli {

// Follows a fleet until it is destroyed.
class FleetFollower {
  public:
    virtual ~FleetFollower() = default;
    // The configuration may have other sets now, or a person has accepted a list that was refused.
    virtual void look_again() = 0;
    // Whether a file that [fleet] names, of a key or a certificate, say, holds something else by now.
    [[nodiscard]] virtual bool is_outdated() const = 0;
};

struct FleetSupport {
    std::span<const service::ChildTask> tasks{};
    // `folder` is the fleet's; `host`, which learns of the fleet's servers, `statistics` and `log` outlive
    // the follower. Null: this program has no fleet.
    Result<std::unique_ptr<FleetFollower>> (*follow)(const service::FleetConfiguration& configuration,
                                                     const std::string& folder,
                                                     service::RealHostAddresses& host,
                                                     service::watching::Statistics& statistics,
                                                     service::Log& log) = nullptr;
};

// Returns the exit code.
[[nodiscard]] int run_daemon_program(int argc, char** argv, const FleetSupport& support);

} // namespace sieve::cli
