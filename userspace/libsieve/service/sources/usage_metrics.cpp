// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/usage_metrics.hpp"

#include <chrono>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/service/sources/crowdsec_api.hpp"
#include "libsieve/util/system/memory_file.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/version.hpp"

namespace sieve::service::live {

namespace {

using nlohmann::json;

std::int64_t seconds_of(std::chrono::milliseconds time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

json item_of(const UsageItem& item) {
    json labels = json::object();
    if (!item.origin.empty()) labels["origin"] = item.origin;
    if (!item.family.empty()) labels["ip_type"] = item.family;
    return {{"name", item.name}, {"unit", item.unit}, {"value", item.value}, {"labels", std::move(labels)}};
}

} // namespace

std::string usage_metrics_json(const UsageReport& report) {
    json items = json::array();
    for (const UsageItem& item : report.items) items.push_back(item_of(item));
    json metrics = {{"meta",
                     {{"window_size_seconds", seconds_of(report.until - report.from)},
                      {"utc_now_timestamp", seconds_of(report.until.time_since_epoch())}}},
                    {"items", std::move(items)}};
    json component = {{"type", "xdp-sieve"},
                      {"version", version},
                      {"os", {{"name", report.system}, {"version", report.system_version}}},
                      {"feature_flags", json::array()},
                      {"utc_startup_timestamp", seconds_of(report.started.time_since_epoch())},
                      {"metrics", json::array({std::move(metrics)})}};
    return json_text(json{{"remediation_components", json::array({std::move(component)})}}, json_one_line);
}

Status send_usage_metrics(const CrowdsecSpec& source, const UsageReport& report,
                          const SandboxSettings& settings) {
    SIEVE_ASSIGN(const UniqueFd answer, make_memory_file("sieve-answer"));
    FetchOrder order;
    order.request.url = api_url(source, "/v1/usage-metrics");
    order.request.post = usage_metrics_json(report);
    auto sent = ask_api(source, std::move(order), {answer.get()}, settings);
    if (!sent) return tl::unexpected(std::move(sent.error().error));
    return {};
}

} // namespace sieve::service::live
