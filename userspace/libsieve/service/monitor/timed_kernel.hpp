// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kernel, with a statistics that is told how long it took to test a filter and to put a table in force.
// The daemon passes one to run_cycle().
#pragma once

#include "libsieve/control/real_kernel.hpp"
#include "libsieve/service/monitor/statistics.hpp"

namespace sieve::service::watching {

class TimedKernel final : public control::RealKernel {
  public:
    // The statistics must outlive the kernel.
    explicit TimedKernel(Statistics& statistics) : statistics_(&statistics) {}

    Result<std::unique_ptr<control::Trial>> start_trial(kernel::HookPoint point, bool frags,
                                                        const MakeSets& make) override;
    Status replace_table(const kernel::Hook& hook, const kernel::WantedTable& table) override;

  private:
    Statistics* statistics_;
};

} // namespace sieve::service::watching
