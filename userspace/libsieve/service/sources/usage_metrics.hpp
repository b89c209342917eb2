// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What became of a CrowdSec local API's decisions, as the API takes it from version 1.6.3 on: `POST
// /v1/usage-metrics`. `cscli metrics show bouncers` and the console show it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/service/config/values/source_spec.hpp"
#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

struct UsageItem {
    std::string name{}; // "processed", "dropped" or "active_decisions"
    std::string unit{}; // "packet", "byte" or "ip"
    std::uint64_t value = 0;
    std::string origin{}; // of the decisions; empty: of all, or nobody knows
    std::string family{}; // "ipv4" or "ipv6"; empty: of both
};

struct UsageReport {
    Time started{}; // this service
    Time from{};    // what was counted between
    Time until{};
    std::string system{}; // such as "debian"
    std::string system_version{};
    std::vector<UsageItem> items{};
};

// The body of the request.
[[nodiscard]] std::string usage_metrics_json(const UsageReport& report);

// Sends it. Blocks for two minutes at most.
[[nodiscard]] Status send_usage_metrics(const CrowdsecSpec& source, const UsageReport& report,
                                        const SandboxSettings& settings);

} // namespace sieve::service::live
