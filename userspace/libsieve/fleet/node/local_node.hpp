// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a keeper has to know of the daemon beside it: what became of the files that it put in place.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/safety/host_addresses.hpp"
#include "libsieve/fleet/manifest/node_report.hpp"
#include "libsieve/fleet/manifest/standing.hpp"
#include "libsieve/service/monitor/statistics.hpp"

namespace sieve::fleet {

struct LocalSet {
    bool follows = false;   // the fleet's file is among its sources
    std::string action{};   // "drop", "pass", "count"; empty: no interface has it, nothing is said
    std::string in_place{}; // why it changes in place (live::why_live()); empty: images of it are swapped
    std::vector<std::string> contents{}; // digests (digest.hpp) of what the last good image was made of
    std::string identity{};              // of the last good image; empty: none
    // Visits to its sources are numbered: the last one that has begun, and the last one that has ended.
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    std::string trouble{}; // why that one failed; empty: it did not
};

// What the kernel says.
struct FiltersInForce {
    std::map<std::string, std::set<std::string>> identities{}; // of the filters in force, by set
    std::string trouble{}; // of hooks of the configuration in the last cycle; empty: none
};

class LocalNode {
  public:
    virtual ~LocalNode() = default;
    // The sets of the configuration, by name, as the daemon remembers them. The kernel may have something
    // else for a moment: a daemon that died had not written down what it had just swapped in.
    [[nodiscard]] virtual std::map<std::string, LocalSet> sets() const = 0;
    [[nodiscard]] virtual Result<FiltersInForce> running() const = 0;
    // Of all hooks, since the daemon began to count.
    [[nodiscard]] virtual NodeTraffic traffic() const = 0;
    // For metrics and the status page.
    virtual void note(const service::watching::FleetStanding&) const {}
    // What guards are to keep lists from.
    virtual void depend_on(const std::vector<ServerAddress>&) const {}
};

// From the daemon's statistics, and from the kernel.
class HostNode final : public LocalNode {
  public:
    // `host` may be null.
    HostNode(service::watching::Statistics& statistics, control::Kernel& kernel,
             control::RealHostAddresses* host = nullptr)
        : statistics_(statistics), kernel_(kernel), host_(host) {}
    [[nodiscard]] std::map<std::string, LocalSet> sets() const override;
    [[nodiscard]] Result<FiltersInForce> running() const override;
    [[nodiscard]] NodeTraffic traffic() const override;
    void note(const service::watching::FleetStanding& standing) const override;
    void depend_on(const std::vector<ServerAddress>& servers) const override;

  private:
    service::watching::Statistics& statistics_;
    control::Kernel& kernel_;
    control::RealHostAddresses* host_;
};

} // namespace sieve::fleet
