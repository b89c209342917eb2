// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Whether the nodes that have a manifest are well. Every node can judge, and all judge alike; the transaction
// that follows is won by one of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libsieve/fleet/manifest/manifest.hpp"
#include "libsieve/fleet/manifest/node_report.hpp"
#include "libsieve/fleet/manifest/rollout.hpp"

namespace sieve::fleet {

// Shares of fewer packets mean nothing.
inline constexpr std::uint64_t fewest_packets = 1000;

// By how much the share of dropped packets has risen with the swap; nothing: too few packets to tell.
[[nodiscard]] std::optional<double> dropped_jump(const NodeReport& report);

// What is wrong with this node under the manifest; empty: nothing, or nothing yet.
[[nodiscard]] std::string fault_of(const SignedManifest& published, const NodeReport& report);

enum class Health : std::uint8_t {
    pending, // some node of these stages does not have it in force yet
    well,    // all have
    unwell,  // one has failed, or drops too much
};

struct StageHealth {
    Health health = Health::pending;
    std::string why{}; // of unwell; else what the record is to say, of a stage without a node
};

// Of the stages up to record.stage. A node that does not report is away, and holds nobody up.
[[nodiscard]] StageHealth stage_health(const SignedManifest& published, const RolloutRecord& record,
                                       const std::vector<NodeReport>& nodes);

// A report, and the revision at which etcd took it: it rises with each report.
struct TakenReport {
    NodeReport report{};
    std::int64_t revision = 0;
};

// What somebody who judges a manifest has seen of it. A list may cut a node off from etcd, and then what the
// node reported last says nothing.
class RolloutWatch {
  public:
    // stage_health(), and before the last stage:
    // - unwell once a node of these stages that has reported no longer does;
    // - pending for a label that no node has which reports. A share that no such node is in is well.
    [[nodiscard]] StageHealth look(const SignedManifest& published, const RolloutRecord& record,
                                   const std::vector<TakenReport>& nodes);
    // Whether each node has reported again since the first of the last looks in a row that found the stage
    // well.
    [[nodiscard]] bool all_reported_again() const { return silent_.empty(); }

  private:
    std::string manifest_;
    std::uint32_t stage_ = 0;
    std::set<std::string> seen_;
    std::optional<std::map<std::string, std::int64_t>> when_well_; // revisions
    std::set<std::string> silent_;
};

// The record after a healthy stage, and after an unhealthy one.
[[nodiscard]] RolloutRecord next_stage(const SignedManifest& published, RolloutRecord record);
[[nodiscard]] RolloutRecord stopped(const SignedManifest& published, RolloutRecord record, std::string why);

} // namespace sieve::fleet
