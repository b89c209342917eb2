// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/usage_reports.hpp"

#include <algorithm>
#include <exception>
#include <fstream>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/daemon/broken_off.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/util/system/event.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

// The same API knows a key and a certificate as one component.
bool is_same(const CrowdsecSpec& a, const CrowdsecSpec& b) {
    return a.url == b.url && a.key_file == b.key_file &&
           a.access.server.client_certificate == b.access.server.client_certificate;
}

// Adds what a counter has gained; one that fell was forgotten in between, and began anew.
void add_gain(sieve_counter& to, const sieve_counter& now, const sieve_counter& before) {
    to.packets += now.packets - std::min(now.packets, before.packets);
    to.bytes += now.bytes - std::min(now.bytes, before.bytes);
}

// The value of os-release(5), which may be in quotes; empty if there is none.
std::string system_value(const std::string& name) {
    std::ifstream file("/etc/os-release");
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(name + "=")) continue;
        std::string value = line.substr(name.size() + 1);
        std::erase(value, '"');
        return printable(value, 64);
    }
    return {};
}

} // namespace

UsageReports::UsageReports(control::Kernel& kernel, watching::Statistics& statistics, Log& log,
                           Settings settings)
    : kernel_(kernel), statistics_(statistics), log_(log), settings_(std::move(settings)),
      started_(live::current_time()) {}

UsageReports::~UsageReports() {
    close();
}

void UsageReports::close() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    ends_.notify_all();
    if (cancel_) set_event(cancel_.get());
    if (thread_.joinable()) thread_.join();
}

void UsageReports::follow(std::shared_ptr<const Configuration> configuration,
                          const SandboxSettings& sandbox) {
    close();
    configuration_ = std::move(configuration);
    std::vector<Api> before = std::exchange(apis_, {});
    for (const SetConfiguration& set : configuration_->sets) {
        const CrowdsecSpec* source = followed_stream(set);
        if (source == nullptr || !source->usage_metrics) continue;
        const auto is_its = [&](const Api& api) { return is_same(api.source, *source); };
        auto api = std::ranges::find_if(apis_, is_its);
        if (api == apis_.end()) {
            const auto known = std::ranges::find_if(before, is_its);
            apis_.push_back(known != before.end() ? std::move(*known) : Api{.told_at = live::current_time()});
            api = std::prev(apis_.end());
            api->source = *source;
            api->sets.clear();
        }
        api->sets.push_back(set.name);
    }
    if (apis_.empty()) return;
    Result<UniqueFd> cancel = make_event();
    if (!cancel) return log_.error(fmt::format("usage metrics: {}", cancel.error().message));
    cancel_ = std::move(*cancel);
    sandbox_ = sandbox;
    sandbox_.cancel = cancel_.get();
    over_ = false;
    try {
        thread_ = std::thread([this] { work(); });
    } catch (const std::exception& error) {
        log_.error(fmt::format("usage metrics: {}", why_broken_off(error)));
    }
}

void UsageReports::work() {
    // The counters of an earlier process go on, and what they count is not to be told again.
    try {
        begin();
    } catch (const std::exception& error) {
        log_.error(fmt::format("usage metrics: {}", why_broken_off(error)));
    }
    std::unique_lock lock(mutex_);
    while (!ends_.wait_for(lock, settings_.interval, [this] { return over_; })) {
        lock.unlock();
        try {
            for (Api& api : apis_) report(api);
        } catch (const std::exception& error) {
            log_.error(fmt::format("usage metrics: {}", why_broken_off(error)));
        }
        lock.lock();
    }
}

void UsageReports::begin() {
    const auto samples = statistics_.observe(kernel_);
    if (!samples) return; // the first report begins then
    for (Api& api : apis_) {
        if (!api.told) api.told = statistics_.totals();
        note_hooks(api, *samples);
    }
}

void UsageReports::report(Api& api) {
    const auto samples = statistics_.observe(kernel_);
    if (!samples) return; // the statistics shows why
    const watching::Totals now = statistics_.totals();
    if (!api.told) api.told = now;
    note_hooks(api, *samples);
    const live::UsageReport report{
        started_,          api.told_at, live::current_time(), system_value("ID"), system_value("VERSION_ID"),
        items_of(api, now)};
    const Status sent = settings_.send(api.source, report, sandbox_);
    {
        const std::lock_guard lock(mutex_);
        if (over_) return; // it was called off
    }
    if (!sent) {
        // What was not told is told with the next report.
        if (std::exchange(api.last_error, sent.error().message) != sent.error().message)
            log_.info(fmt::format("usage metrics are not taken: {}", sent.error().message));
        return;
    }
    api.last_error.clear();
    api.told = now;
    api.hooks.clear();
    note_hooks(api, *samples);
    api.told_at = report.until;
}

void UsageReports::note_hooks(Api& api, const std::vector<control::Sample>& samples) {
    for (const control::Sample& sample : samples)
        for (const control::SetStatus& set : sample.table.sets) {
            const auto is_it = [&](const std::string& name) {
                return set.set.name == name || set.set.name == live::range_set_name(name);
            };
            if (std::ranges::none_of(api.sets, is_it)) continue;
            std::set<std::string>& dropping = api.hooks[{sample.interface, sample.point}];
            if (set.set.action == SIEVE_ACTION_DROP) dropping.insert(set.set.name);
        }
}

std::vector<live::UsageItem> UsageReports::items_of(const Api& api, const watching::Totals& now) const {
    sieve_counter processed{};
    std::map<std::string, sieve_counter> dropped; // by the one origin that a set takes; "": of several
    for (const auto& [hook, dropping] : api.hooks) {
        const watching::HookTotals total = now.hook(hook), told = api.told->hook(hook);
        add_gain(processed, total.passed, told.passed);
        add_gain(processed, total.dropped, told.dropped);
        add_gain(processed, total.redirected, told.redirected);
        for (const std::string& name : api.sets)
            for (const std::string& one : {name, live::range_set_name(name)}) {
                if (!dropping.contains(one)) continue;
                const std::vector<std::string>& origins =
                    followed_stream(*configuration_->find_set(name))->origins;
                add_gain(dropped[origins.size() == 1 ? origins.front() : std::string()],
                         now.set(hook, one).matches, api.told->set(hook, one).matches);
            }
    }
    std::vector<live::UsageItem> items;
    const auto tell = [&](const char* name, const std::string& origin, const sieve_counter& gained) {
        items.push_back({name, "packet", gained.packets, origin});
        items.push_back({name, "byte", gained.bytes, origin});
    };
    tell("processed", {}, processed);
    for (const auto& [origin, gained] : dropped) tell("dropped", origin, gained);
    std::map<std::string, OriginCount> decisions;
    for (const std::string& set : api.sets)
        for (const OriginCount& count : settings_.decisions(set)) {
            decisions[count.origin].ipv4 += count.ipv4;
            decisions[count.origin].ipv6 += count.ipv6;
        }
    for (const auto& [origin, count] : decisions) {
        if (count.ipv4 > 0) items.push_back({"active_decisions", "ip", count.ipv4, origin, "ipv4"});
        if (count.ipv6 > 0) items.push_back({"active_decisions", "ip", count.ipv6, origin, "ipv6"});
    }
    return items;
}

} // namespace sieve::service
