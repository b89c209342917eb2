// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieved for a host of a fleet (front-end/with_fleet.hpp).
#include <memory>
#include <string>
#include <utility>

#include "libsieve/control/real_kernel.hpp"
#include "libsieve/fleet/node/fleet_node.hpp"
#include "libsieve/fleet/node/fleet_tasks.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "xdp-sieved/daemon_program.hpp"

namespace sieve::cli {
namespace {

class Follower final : public FleetFollower {
  public:
    explicit Follower(service::watching::Statistics& statistics) : node_(statistics, kernel_) {}

    Status start(const service::FleetConfiguration& configuration, const std::string& folder,
                 service::Log& log) {
        fleet::FleetNodeSettings settings;
        SIEVE_ASSIGN(settings.access, fleet::open_access(configuration));
        settings.labels = configuration.labels;
        settings.folder = folder;
        settings.report = configuration.report;
        SIEVE_ASSIGN(settings.sandbox, service::standard_sandbox());
        SIEVE_ASSIGN(fleet_, fleet::FleetNode::start(std::move(settings), node_, log));
        return {};
    }
    void look_again() override { fleet_->look_again(); }

  private:
    control::RealKernel kernel_;
    fleet::HostNode node_;
    std::unique_ptr<fleet::FleetNode> fleet_;
};

Result<std::unique_ptr<FleetFollower>> follow(const service::FleetConfiguration& configuration,
                                              const std::string& folder,
                                              service::watching::Statistics& statistics, service::Log& log) {
    auto follower = std::make_unique<Follower>(statistics);
    SIEVE_TRY(follower->start(configuration, folder, log));
    return follower;
}

} // namespace
} // namespace sieve::cli

int main(int argc, char** argv) {
    using namespace sieve;
    return cli::run_daemon_program(argc, argv, {.tasks = fleet::fleet_tasks(), .follow = cli::follow});
}
