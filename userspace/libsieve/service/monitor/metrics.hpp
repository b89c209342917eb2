// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A snapshot as Prometheus's metrics. Names and units follow https://prometheus.io/docs/practices/naming.
// docs/watching.md lists every metric; a test compares that list with the catalogue.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/service/monitor/snapshot.hpp"
#include "libsieve/service/monitor/statistics.hpp"

namespace sieve::service::watching {

struct MetricDescription {
    const char* name;
    prometheus::MetricType type;
    const char* labels; // their names, separated by commas; those of process_* are empty
    const char* help;
};

// Every metric that metrics_of() can return, in its order.
[[nodiscard]] std::span<const MetricDescription> metric_catalogue();

// Families without a value are left out.
[[nodiscard]] std::vector<prometheus::MetricFamily> metrics_of(const Snapshot& snapshot);

// In Prometheus's text format.
[[nodiscard]] std::string metrics_text(const std::vector<prometheus::MetricFamily>& families);

// Reads the kernel anew each time it is asked.
class Metrics final : public prometheus::Collectable {
  public:
    // Both must outlive this object.
    Metrics(Statistics& statistics, control::Kernel& kernel) : statistics_(&statistics), kernel_(&kernel) {}
    [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

  private:
    Statistics* statistics_;
    control::Kernel* kernel_;
};

} // namespace sieve::service::watching
