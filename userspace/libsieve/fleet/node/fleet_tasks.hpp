// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the daemon has children without privileges do for the fleet: following what etcd says, and bringing
// one blob. A program that starts them hands fleet_tasks() to run_as_child().
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "libsieve/fleet/manifest/fleet_access.hpp"
#include "libsieve/fleet/servers/blob_file.hpp"
#include "libsieve/service/sandbox/child_main.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

[[nodiscard]] std::span<const service::ChildTask> fleet_tasks();

// The first descriptor is the socket of a RemoteNode. Never ends by itself.
inline constexpr const char* follow_task = "fleet-follow";
struct FollowOrder {
    FleetAccess access{}; // without its store
    std::vector<std::string> labels{};
    std::chrono::milliseconds report{0};
    std::vector<std::string> servers{}; // URLs, of etcd and the store
};

// The first descriptor is the file that has a part of the blob, or nothing of it; the second one, if `before`
// names it, a blob that is at hand.
inline constexpr const char* fetch_task = "fleet-fetch";
struct BlobOrder {
    StoreSettings store{};
    Blob blob{};
    std::string before{}; // digest; empty: none is
};

// As the message of a TaskOrder.
[[nodiscard]] Result<std::string> message_of(const FollowOrder& order);
[[nodiscard]] std::string message_of(const BlobOrder& order);

} // namespace sieve::fleet
