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

StageHealth RolloutWatch::look(const SignedManifest& published, const RolloutRecord& record,
                               const std::vector<TakenReport>& nodes) {
    if (std::exchange(manifest_, published.digest) != published.digest) seen_.clear();
    if (std::exchange(stage_, record.stage) != record.stage || seen_.empty()) when_well_.reset();
    silent_.clear();
    std::vector<NodeReport> reports;
    for (const TakenReport& one : nodes) reports.push_back(one.report);
    StageHealth found = stage_health(published, record, reports);
    if (found.health == Health::unwell) return found;
    if (found.health == Health::pending) found.why = record.why;
    if (record.stage + 1 >= published.manifest.rollout.stages.size()) return found;
    std::map<std::string, std::int64_t> here;
    bool has_a_node = false;
    for (const auto& [node, revision] : nodes) {
        const std::uint32_t stage = stage_of(published.manifest, published.digest, node.node, node.labels);
        if (stage <= record.stage) here[node.node] = revision;
        has_a_node = has_a_node || stage == record.stage;
    }
    for (const std::string& node : seen_)
        if (!here.contains(node))
            return {Health::unwell,
                    fmt::format("{}: no longer reports, since the manifest came to it", node)};
    for (const auto& [node, revision] : here) seen_.insert(node);
    const std::string& label = published.manifest.rollout.stages[record.stage].label;
    const std::string waits = fmt::format("no node that reports has the label {}", label);
    if (has_a_node && found.why == waits) found.why.clear();
    if (!has_a_node && !label.empty()) found = {Health::pending, waits};
    if (!has_a_node && label.empty() && found.health == Health::well)
        found.why = fmt::format("no node that reports is in stage {}", record.stage + 1);
    if (found.health != Health::well) {
        when_well_.reset();
        return found;
    }
    if (!when_well_) when_well_ = here;
    for (const auto& [node, revision] : here)
        if (const auto then = when_well_->find(node); then != when_well_->end() && then->second == revision)
            silent_.insert(node);
    return found;
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
