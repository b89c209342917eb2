// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/usage_metrics.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libsieve/util/text/version.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service::live {
namespace {

using nlohmann::json;
using test::at_second;

// The members that CrowdSec's specification (LAPI 1.7) asks for.
TEST(UsageMetrics, AreWhatTheApiTakes) {
    const UsageReport report{
        .started = at_second(1000),
        .from = at_second(5000),
        .until = at_second(5900),
        .system = "debian",
        .system_version = "12",
        .items = {{"processed", "packet", 9},
                  {"dropped", "byte", 420, "CAPI"},
                  {"active_decisions", "ip", 3, "lists:tor", "ipv6"}},
    };
    EXPECT_EQ(json::parse(usage_metrics_json(report)), json::parse(R"({"remediation_components": [{
        "type": "xdp-sieve",
        "version": ")" + std::string(version) + R"(",
        "os": {"name": "debian", "version": "12"},
        "feature_flags": [],
        "utc_startup_timestamp": 1000,
        "metrics": [{
            "meta": {"window_size_seconds": 900, "utc_now_timestamp": 5900},
            "items": [
                {"name": "processed", "unit": "packet", "value": 9, "labels": {}},
                {"name": "dropped", "unit": "byte", "value": 420, "labels": {"origin": "CAPI"}},
                {"name": "active_decisions", "unit": "ip", "value": 3,
                 "labels": {"origin": "lists:tor", "ip_type": "ipv6"}}]}]}]})"));
}

} // namespace
} // namespace sieve::service::live
