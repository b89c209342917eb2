// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a node says of itself under its key in etcd. Its lease makes the report vanish when the node is away.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

enum class NodeState : std::uint8_t {
    waiting,  // for its stage; what was in force before is
    fetching, // downloads, or brings in
    in_force, // the wanted manifest is
    failed,   // a download, a guard or the kernel refused it; what was in force before is
    refused,  // what is published is not right: signature, serial, form
};

// "waiting", "fetching", "in_force", "failed" or "refused".
[[nodiscard]] const char* node_state_name(NodeState state);

// Of all hooks together, since they were counted.
struct NodeTraffic {
    std::uint64_t packets = 0;
    std::uint64_t matched = 0;
    std::uint64_t dropped = 0;

    [[nodiscard]] friend bool operator==(const NodeTraffic&, const NodeTraffic&) = default;
};

struct NodeReport {
    std::string node{};
    std::vector<std::string> labels{};
    std::string wanted{};   // digest of the manifest that it is to have in force
    std::string manifest{}; // digest of the manifest whose sets are in force; empty: none
    std::uint32_t stage = 0;
    NodeState state = NodeState::waiting;
    std::string error{};                       // one sentence; empty: none
    std::map<std::string, std::string> sets{}; // identity in force of each of the fleet's sets
    NodeTraffic before{};                      // in the minutes before the last swap
    NodeTraffic after{};                       // since then
    std::uint64_t since = 0;                   // when it came into this state, milliseconds since 1970

    [[nodiscard]] friend bool operator==(const NodeReport&, const NodeReport&) = default;
};

[[nodiscard]] std::string report_text(const NodeReport& report);
// bad_input for a text that is none of this node.
[[nodiscard]] Result<NodeReport> parse_report(const std::string& text, const std::string& node);

} // namespace sieve::fleet
