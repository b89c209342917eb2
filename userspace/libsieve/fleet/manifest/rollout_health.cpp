// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/rollout_health.hpp"

#include <utility>

#include <fmt/core.h>

namespace sieve::fleet {

std::optional<double> dropped_jump(const NodeReport& report) {
    if (report.before.packets < fewest_packets || report.after.packets < fewest_packets) return std::nullopt;
    const auto share = [](const NodeTraffic& traffic) {
        return static_cast<double>(traffic.dropped) / static_cast<double>(traffic.packets);
    };
    return share(report.after) - share(report.before);
}

std::string fault_of(const SignedManifest& published, const NodeReport& report) {
    if (report.wanted != published.digest) return {};
    if (report.state == NodeState::failed || report.state == NodeState::refused)
        return fmt::format("{}: {}", report.node, report.error);
    if (report.manifest != published.digest) return {};
    const std::optional<double> jump = dropped_jump(report);
    const double most = published.manifest.rollout.most_jump_permille / 1000.0;
    if (!jump || *jump <= most) return {};
    return fmt::format("{}: the share of dropped packets rose by {:.1f}%, expected at most {:.1f}%",
                       report.node, 100 * *jump, 100 * most);
}

StageHealth stage_health(const SignedManifest& published, const RolloutRecord& record,
                         const std::vector<NodeReport>& nodes) {
    bool all = true;
    for (const NodeReport& node : nodes) {
        if (stage_of(published.manifest, published.digest, node.node, node.labels) > record.stage) continue;
        if (std::string fault = fault_of(published, node); !fault.empty())
            return {Health::unwell, std::move(fault)};
        all = all && node.manifest == published.digest && node.state == NodeState::in_force;
    }
    return {all ? Health::well : Health::pending, {}};
}

RolloutRecord next_stage(const SignedManifest& published, RolloutRecord record) {
    record.why.clear();
    if (record.stage + 1 >= published.manifest.rollout.stages.size())
        record.state = RolloutState::complete;
    else
        record.stage++;
    return record;
}

RolloutRecord stopped(const SignedManifest& published, RolloutRecord record, std::string why) {
    record.state = published.manifest.rollout.on_failure == OnRolloutFailure::rollback
                       ? RolloutState::rolled_back
                       : RolloutState::halted;
    record.why = std::move(why);
    return record;
}

} // namespace sieve::fleet
