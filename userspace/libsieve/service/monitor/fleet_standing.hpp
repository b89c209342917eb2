// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How this host stands in its fleet, for metrics and the status page. The fleet tells the statistics
// (libsieve/fleet/manifest/standing.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace sieve::service::watching {

enum class FleetState : std::uint8_t {
    followed,    // what this host is to have is in force
    behind,      // it is being brought in
    failed,      // a guard, a build or the kernel refused it; what was before stays
    refused,     // what is published is not right: signature, serial, form
    halted,      // the rollout has stopped, and this host has what it is to have
    unpublished, // etcd has no manifest of the fleet
    store_away,  // the store does not give a blob, or gives something else
    etcd_away,   // etcd does not answer
};
inline constexpr FleetState all_fleet_states[] = {
    FleetState::followed, FleetState::behind,      FleetState::failed,     FleetState::refused,
    FleetState::halted,   FleetState::unpublished, FleetState::store_away, FleetState::etcd_away};

// The word for it, such as "store_away".
[[nodiscard]] constexpr const char* fleet_state_name(FleetState state) {
    switch (state) {
    case FleetState::followed:
        return "followed";
    case FleetState::behind:
        return "behind";
    case FleetState::failed:
        return "failed";
    case FleetState::refused:
        return "refused";
    case FleetState::halted:
        return "halted";
    case FleetState::unpublished:
        return "unpublished";
    case FleetState::store_away:
        return "store_away";
    case FleetState::etcd_away:
        return "etcd_away";
    }
    return "";
}

// Of rollouts, as fleet::rollout_state_name() says them.
inline constexpr const char* fleet_rollout_states[] = {"running", "paused", "halted", "rolled_back",
                                                       "complete"};

struct FleetStanding {
    using Time = std::chrono::system_clock::time_point;

    std::string fleet{};
    std::string node{}; // this host's name in it
    FleetState state = FleetState::etcd_away;
    // Why, in one sentence; of `followed` what else is in force. Empty: nothing is wrong.
    std::string error{};
    std::string last_error{}; // the last one since the start; empty: there was none
    std::optional<Time> last_error_at{};
    std::uint64_t failures = 0;        // attempts to bring a manifest in
    std::optional<Time> contact{};     // when etcd answered last
    std::uint64_t in_force = 0;        // serial of the manifest in force; 0: unknown, or none
    std::uint64_t wanted = 0;          // of the one that this host is to have; 0 likewise
    std::uint64_t published = 0;       // of the published one; 0 likewise
    std::optional<Time> valid_until{}; // of the published one: until then, new nodes take it
    std::string manifest{};            // the first digits of the digest of the one in force
    std::string rollout{};             // its state, such as "running"; empty: there is none
    std::uint32_t stage = 0;           // that the rollout has come to, from 1 on
    std::uint32_t stages = 0;          // of the published manifest
    std::uint32_t own_stage = 0;       // of this host, from 1 on
};

} // namespace sieve::service::watching
