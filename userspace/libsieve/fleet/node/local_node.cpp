// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/node/local_node.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/service/live/live_set.hpp"
#include "libsieve/service/reconcile/together.hpp"

namespace sieve::fleet {

namespace {

// What the set does on this host: what its configuration names, or else what the interfaces that have it make
// of it. Two interfaces with different defaults give both names, which no manifest has.
std::string action_here(const service::Configuration& configuration, const service::SetConfiguration& set) {
    if (set.action) return control::action_name(set.action->action);
    std::string action;
    for (const service::InterfaceConfiguration& entry : configuration.interfaces) {
        if (std::ranges::find(entry.sets, set.name) == entry.sets.end()) continue;
        const std::string here = control::action_name(control::natural_action(entry.default_action).action);
        if (!action.empty() && action != here) return action + " and " + here;
        action = here;
    }
    return action;
}

} // namespace

std::map<std::string, LocalSet> HostNode::sets() const {
    const service::watching::StatisticsCopy record = statistics_.record();
    std::map<std::string, LocalSet> sets;
    for (const service::SetConfiguration& set : record.configuration.sets) {
        LocalSet& local = sets[set.name];
        local.action = action_here(record.configuration, set);
        local.follows = service::follows_fleet(set, record.configuration.state_directory);
        if (service::live::is_live(set)) local.in_place = service::live::why_live(set);
        const auto found = record.sets.find(set.name);
        if (found == record.sets.end()) continue;
        const service::watching::SetHistory& history = found->second;
        local.begun = history.begun;
        local.ended = history.ended;
        if (history.last) local.trouble = history.last->message;
        if (!history.last_good) continue;
        local.identity = history.last_good->identity;
        for (const service::SourceProvenance& source : history.last_good->sources)
            local.contents.push_back(source.digest);
    }
    return sets;
}

Result<FiltersInForce> HostNode::running() const {
    SIEVE_ASSIGN(const std::vector<control::Sample> samples, control::take_samples(kernel_, {}));
    const service::watching::StatisticsCopy record = statistics_.record();
    FiltersInForce running;
    for (const control::Sample& sample : samples) {
        const service::InterfaceConfiguration* entry =
            service::entry_for(record.configuration, sample.interface, sample.point);
        if (entry == nullptr) continue;
        for (const control::SetStatus& set : sample.table.sets)
            if (std::ranges::find(entry->sets, set.set.name) != entry->sets.end())
                running.identities[set.set.name].insert(set.identity());
    }
    for (const auto& [hook, error] : record.hook_errors) running.trouble = error;
    return running;
}

void HostNode::note(const service::watching::FleetStanding& standing) const {
    statistics_.note_fleet(standing);
}

void HostNode::depend_on(const std::vector<ServerAddress>& servers) const {
    if (host_ == nullptr) return;
    std::vector<control::HostAddress> all;
    for (const ServerAddress& server : servers)
        all.push_back(
            {.address = server.address,
             .what = fmt::format("etcd or the store of this host's fleet (TCP port {})", server.port),
             .role = control::HostRole::server,
             .their_port = server.port});
    host_->depend_on(std::move(all));
}

NodeTraffic HostNode::traffic() const {
    NodeTraffic traffic;
    const auto samples = statistics_.observe(kernel_);
    if (!samples) return traffic;
    for (const control::Sample& sample : *samples) {
        const service::watching::HookId hook{sample.interface, sample.point};
        const service::watching::HookTotals totals = statistics_.totals(hook);
        traffic.packets += totals.passed.packets + totals.dropped.packets + totals.redirected.packets;
        traffic.dropped += totals.dropped.packets;
        for (const control::SetStatus& set : sample.table.sets)
            traffic.matched += statistics_.totals(hook, set.set.name).matches.packets;
    }
    return traffic;
}

} // namespace sieve::fleet
