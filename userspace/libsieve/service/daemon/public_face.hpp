// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What others see of the daemon: its note, which names the manager of this network namespace, and the server
// of metrics and status page.
#pragma once

#include <optional>
#include <string>

#include "libsieve/control/real_kernel.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/contact/manager.hpp"
#include "libsieve/service/monitor/exposer.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/service/monitor/statistics.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

class PublicFace {
  public:
    // Claims this network namespace for the configuration at that path. Error: busy, naming the daemon that
    // manages it.
    [[nodiscard]] Status claim(const std::string& path, const Configuration& configuration, Log& log);
    // Serves where the configuration says. A server that cannot be had is logged: filtering goes on without
    // it.
    void follow(const Configuration& configuration, watching::Statistics& statistics, Log& log);
    // Writes how things stand into the manager's note, and the note again if somebody has removed it.
    void tell(const std::string& standing, Log& log);

    // Why nothing is served although the configuration says where; empty: all is well.
    [[nodiscard]] const std::string& trouble() const { return trouble_; }

  private:
    [[nodiscard]] Status leave_note(Log& log);

    std::string trouble_;
    std::string listen_;        // as it was configured; empty: nothing is served
    watching::Manager manager_; // as the note has it
    std::optional<watching::NamespaceClaim> claim_;
    std::optional<watching::ManagerNote> note_;
    control::RealKernel kernel_; // the exposer's own
    std::optional<watching::Exposer> exposer_;
};

} // namespace sieve::service
