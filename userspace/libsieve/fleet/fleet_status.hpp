// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is published in a fleet, and what its nodes say.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/fleet/manifest/fleet_access.hpp"
#include "libsieve/fleet/manifest/node_report.hpp"
#include "libsieve/fleet/manifest/publication.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct FleetStatus {
    Publication published{};
    std::optional<Error> fault{};    // of what is published; then nothing is known of it
    std::vector<NodeReport> nodes{}; // by name
    std::map<NodeState, std::size_t> counts{};
    std::size_t current = 0;               // nodes that have the published manifest in force
    std::vector<std::string> unreadable{}; // nodes whose report cannot be understood
};

// Errors: etcd does not answer.
[[nodiscard]] Result<FleetStatus> read_fleet_status(EtcdClient& etcd, const FleetAccess& access);

} // namespace sieve::fleet
