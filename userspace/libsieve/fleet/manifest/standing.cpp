// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/standing.hpp"

#include <chrono>
#include <cstdint>
#include <tuple>
#include <utility>

#include "libsieve/fleet/servers/sha256.hpp"

namespace sieve::fleet {

namespace {

using service::watching::FleetState;

std::pair<FleetState, std::string> state_of(const FollowerNews& news, const KeptManifests& kept) {
    if (!news.etcd_trouble.empty()) return {FleetState::etcd_away, news.etcd_trouble};
    if (news.published == Finding::unread) return {FleetState::etcd_away, "etcd has not answered yet"};
    if (news.published == Finding::nothing) return {FleetState::unpublished, news.refusal};
    if (news.published == Finding::wrong || !news.refusal.empty()) return {FleetState::refused, news.refusal};
    if (kept.state == NodeState::failed)
        return {kept.store_failed ? FleetState::store_away : FleetState::failed, kept.error};
    if (!kept.wanted_is_in_force) return {FleetState::behind, {}};
    if (news.rollout == RolloutState::halted || news.rollout == RolloutState::rolled_back)
        return {FleetState::halted, news.why};
    return {FleetState::followed, kept.left_over};
}

} // namespace

service::watching::FleetStanding standing_of(const FollowerNews& news, const KeptManifests& kept) {
    service::watching::FleetStanding standing;
    standing.fleet = news.fleet;
    std::tie(standing.state, standing.error) = state_of(news, kept);
    standing.failures = kept.failures;
    standing.in_force = kept.in_force_serial;
    standing.wanted = kept.wanted_serial;
    standing.manifest = kept.in_force.empty() ? std::string() : brief(kept.in_force);
    if (news.published != Finding::manifest) return standing;
    standing.published = news.serial;
    if (news.valid_until != 0)
        standing.valid_until = std::chrono::system_clock::time_point(
            std::chrono::seconds(static_cast<std::int64_t>(news.valid_until)));
    standing.stages = news.stages;
    standing.own_stage = news.own_stage + 1;
    if (!news.rollout) return standing;
    standing.rollout = rollout_state_name(*news.rollout);
    standing.stage = news.stage + 1;
    return standing;
}

} // namespace sieve::fleet
