// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieved for a host of a fleet (front-end/with_fleet.hpp).
#include <memory>
#include <string>
#include <utility>

#include "libsieve/control/real_kernel.hpp"
#include "libsieve/fleet/node/fleet_node.hpp"
#include "libsieve/fleet/node/fleet_tasks.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "xdp-sieved/daemon_program.hpp"

namespace sieve::cli {
namespace {

// What the files that the configuration names hold, as a digest.
Result<std::string> digest_of(const fleet::FleetAccess& access) {
    SIEVE_ASSIGN(const std::string followed, fleet::message_of(fleet::FollowOrder{.access = access}));
    return fleet::sha256_of(followed + '\n' + fleet::message_of(fleet::BlobOrder{.store = access.store}));
}

class Follower final : public FleetFollower {
  public:
    Follower(service::RealHostAddresses& host, service::watching::Statistics& statistics)
        : node_(statistics, kernel_, &host) {}

    Status start(const service::FleetConfiguration& configuration, const std::string& folder,
                 service::Log& log) {
        fleet::FleetNodeSettings settings;
        configuration_ = configuration;
        SIEVE_ASSIGN(settings.access, fleet::open_access(configuration));
        SIEVE_ASSIGN(digest_, digest_of(settings.access));
        settings.labels = configuration.labels;
        settings.folder = folder;
        settings.report = configuration.report;
        SIEVE_ASSIGN(settings.sandbox, service::standard_sandbox());
        SIEVE_ASSIGN(fleet_, fleet::FleetNode::start(std::move(settings), node_, log));
        return {};
    }
    void look_again() override { fleet_->look_again(); }
    [[nodiscard]] bool is_outdated() const override {
        const Result<fleet::FleetAccess> now = fleet::open_access(configuration_);
        return !now || digest_of(*now) != digest_;
    }

  private:
    control::RealKernel kernel_;
    fleet::HostNode node_;
    service::FleetConfiguration configuration_;
    std::string digest_;
    std::unique_ptr<fleet::FleetNode> fleet_;
};

Result<std::unique_ptr<FleetFollower>> follow(const service::FleetConfiguration& configuration,
                                              const std::string& folder, service::RealHostAddresses& host,
                                              service::watching::Statistics& statistics, service::Log& log) {
    auto follower = std::make_unique<Follower>(host, statistics);
    SIEVE_TRY(follower->start(configuration, folder, log));
    return follower;
}

} // namespace
} // namespace sieve::cli

int main(int argc, char** argv) {
    using namespace sieve;
    return cli::run_daemon_program(argc, argv, {.tasks = fleet::fleet_tasks(), .follow = cli::follow});
}
