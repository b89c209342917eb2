// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kernel, with a ledger that is told how long it took to test a filter and to put a table in force. The
// daemon passes one to run_cycle().
#pragma once

#include "libsieve/control/real_kernel.hpp"
#include "libsieve/service/monitor/ledger.hpp"

namespace sieve::service::watching {

class TimedKernel final : public control::RealKernel {
  public:
    // The ledger must outlive the kernel.
    explicit TimedKernel(Ledger& ledger) : ledger_(&ledger) {}

    Result<std::unique_ptr<control::Trial>> start_trial(kernel::HookPoint point, bool frags,
                                                        const MakeSets& make) override;
    Status replace_table(const kernel::Hook& hook, const kernel::WantedTable& table) override;

  private:
    Ledger* ledger_;
};

} // namespace sieve::service::watching
