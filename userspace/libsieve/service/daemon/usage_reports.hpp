// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tells CrowdSec's local APIs, each a quarter of an hour, what became of their decisions: how many packets
// met the hooks where they are in force, how many were dropped, and how many decisions of each origin there
// are.
//
//     statistics, live sets --> what was counted since the last report --> one request to each API
//
// On a thread of its own: an API that hangs delays nothing else.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/live/live_updater.hpp"
#include "libsieve/service/monitor/log.hpp"
#include "libsieve/service/monitor/statistics.hpp"
#include "libsieve/service/sources/usage_metrics.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service {

class UsageReports {
  public:
    using OriginCount = live::LiveUpdater::OriginCount;
    struct Settings {
        std::chrono::milliseconds interval = std::chrono::minutes(15); // as CrowdSec's own bouncers do
        std::function<Status(const CrowdsecSpec& source, const live::UsageReport& report,
                             const SandboxSettings& sandbox)>
            send = &live::send_usage_metrics;
        // The decisions that a set holds now.
        std::function<std::vector<OriginCount>(const std::string& set)> decisions{};
    };

    UsageReports(control::Kernel& kernel, watching::Statistics& statistics, Log& log, Settings settings);
    UsageReports(const UsageReports&) = delete;
    UsageReports& operator=(const UsageReports&) = delete;
    ~UsageReports(); // calls off what it sends

    // From now on, reports are for the sets of this configuration (as with_range_sets() made it). What cannot
    // be told is logged.
    void follow(std::shared_ptr<const Configuration> configuration, const SandboxSettings& sandbox);

  private:
    // One API, as one key knows it, and the sets that follow it.
    struct Api {
        CrowdsecSpec source{};
        std::vector<std::string> sets{};
        // What had been counted when the last report was told; nothing: the next report begins where it is.
        std::optional<watching::Totals> told{};
        // Where its sets were in force since then, and which of them dropped. A hook that has left is told of
        // once more.
        std::map<watching::HookId, std::set<std::string>> hooks{};
        live::Time told_at{};
        std::string last_error{};
    };

    void close();
    void work();
    void begin();
    void report(Api& api);
    static void note_hooks(Api& api, const std::vector<control::Sample>& samples);
    [[nodiscard]] std::vector<live::UsageItem> items_of(const Api& api, const watching::Totals& now) const;

    control::Kernel& kernel_;
    watching::Statistics& statistics_;
    Log& log_;
    const Settings settings_;
    const live::Time started_;

    std::shared_ptr<const Configuration> configuration_;
    SandboxSettings sandbox_;
    std::vector<Api> apis_;
    UniqueFd cancel_;
    std::mutex mutex_;
    std::condition_variable ends_;
    bool over_ = false; // with mutex_
    std::thread thread_;
};

} // namespace sieve::service
