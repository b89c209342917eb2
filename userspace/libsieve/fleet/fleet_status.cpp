// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/fleet_status.hpp"

#include <utility>

#include "libsieve/fleet/servers/etcd_paths.hpp"

namespace sieve::fleet {

Result<FleetStatus> read_fleet_status(EtcdClient& etcd, const FleetAccess& access) {
    const EtcdPaths paths(access.fleet);
    FleetStatus status;
    SIEVE_ASSIGN(const EtcdKeys now, etcd.read_prefix(paths.now()));
    Result<Publication> published = publication_in(now, access.fleet, access.pinned);
    if (published)
        status.published = std::move(*published);
    else
        status.fault = std::move(published.error());
    SIEVE_ASSIGN(const EtcdKeys nodes, etcd.read_prefix(paths.nodes()));
    for (const auto& [key, value] : nodes.keys) {
        const std::string node = key.substr(paths.nodes().size());
        Result<NodeReport> report = parse_report(value.value, node);
        if (!report) {
            status.unreadable.push_back(node);
            continue;
        }
        status.counts[report->state]++;
        if (status.published.manifest && report->manifest == status.published.manifest->digest)
            status.current++;
        status.nodes.push_back(std::move(*report));
    }
    return status;
}

} // namespace sieve::fleet
