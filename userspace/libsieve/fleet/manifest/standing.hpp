// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// From what the follower knows of servers and the keeper of its machine to how this host stands in its fleet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/fleet/manifest/node_report.hpp"
#include "libsieve/fleet/manifest/rollout.hpp"
#include "libsieve/keys/address_range.hpp"
#include "libsieve/service/monitor/fleet_standing.hpp"

namespace sieve::fleet {

// What a follower has read at `now/`.
enum class Finding : std::uint8_t {
    unread,   // etcd has not answered yet
    nothing,  // there is no manifest
    wrong,    // there is something else
    manifest, // one with a right signature
};

struct ServerAddress {
    uint128 address = 0;
    std::uint16_t port = 0;

    [[nodiscard]] friend bool operator==(const ServerAddress&, const ServerAddress&) = default;
};
inline constexpr std::size_t most_servers = 32;

// What a follower tells its node about the servers. For people to see; lists must not hold `servers`.
struct FollowerNews {
    std::vector<ServerAddress> servers{}; // etcd's, and the store's

    std::string fleet{};
    Finding published = Finding::unread;
    std::uint64_t serial = 0;              // of the manifest
    std::uint64_t valid_until = 0;         // likewise, in seconds since 1970; 0: not said
    std::uint32_t stages = 0;              // likewise
    std::uint32_t own_stage = 0;           // from 0 on
    std::optional<RolloutState> rollout{}; // of the manifest
    std::uint32_t stage = 0;               // from 0 on
    std::string why{};                     // of the rollout
    std::string refusal{};                 // why what is published is not followed; empty: it is
    std::string etcd_trouble{};            // empty: etcd answers
    std::uint64_t contact = 0; // when etcd answered last, in milliseconds of the steady clock; 0: never

    [[nodiscard]] friend bool operator==(const FollowerNews&, const FollowerNews&) = default;
};

// What the keeper adds.
struct KeptManifests {
    std::string in_force{};               // digest
    std::uint64_t in_force_serial = 0;    // 0: unknown
    std::uint64_t wanted_serial = 0;      // 0: none
    bool wanted_is_in_force = true;       // also if none is wanted
    NodeState state = NodeState::waiting; // of the wanted one
    bool store_failed = false;            // the reason of NodeState::failed
    std::string error{};                  // likewise
    std::string left_over{};              // in force of sets that the manifest does not have; empty: nothing
    std::uint64_t failures = 0;
};

// Without last_error, last_error_at and contact. What is worst comes first: without etcd, nothing else is
// sure; what is refused is not brought in; and so on.
[[nodiscard]] service::watching::FleetStanding standing_of(const FollowerNews& news,
                                                           const KeptManifests& kept);

} // namespace sieve::fleet
