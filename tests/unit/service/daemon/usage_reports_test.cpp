// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/usage_reports.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>

#include <gtest/gtest.h>

#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/service/daemon/records.hpp"
#include "unit/service/in_process.hpp"

namespace sieve::service {
namespace {

using namespace std::chrono_literals;

// Longer than anything takes.
constexpr auto patience = 60s;

class UsageReportsTest : public testing::Test {
  protected:
    test::Files files;
    test::FakeKernel kernel;
    test::RecordedLog log;
    watching::Statistics statistics{{}};
    std::shared_ptr<Configuration> configuration = std::make_shared<Configuration>();
    std::vector<UsageReports::OriginCount> decisions{{"CAPI", 7, 0}, {"lists:tor", 1, 2}};

    // A set that follows an API and is in force on eth0, which drops.
    void follow_api(const std::string& name, const std::string& url, std::vector<std::string> origins = {}) {
        SetConfiguration set;
        set.name = name;
        set.sources = {CrowdsecSpec{.url = url, .key_file = "/key", .origins = std::move(origins)}};
        configuration->sets.push_back(set);
        kernel.put_filter(kernel.put(name).map_id, Image::load(files.image(name, {"192.0.2.1"})).value());
    }
    void drop(std::uint32_t slot, std::uint64_t packets) {
        kernel.running.stats.hit[slot].packets += packets;
        kernel.running.stats.hit[slot].bytes += 100 * packets;
        kernel.running.stats.dropped.packets += packets;
        kernel.running.stats.dropped.bytes += 100 * packets;
    }

    void start() {
        reports.emplace(
            kernel, statistics, log,
            UsageReports::Settings{.interval = 1ms,
                                   .send = [this](const CrowdsecSpec& source, const live::UsageReport& report,
                                                  const SandboxSettings&) { return send(source, report); },
                                   .decisions = [this](const std::string&) { return decisions; }});
        reports->follow(configuration, test::in_process());
    }
    ~UsageReportsTest() override {
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        changed_.notify_all();
        reports.reset();
    }
    // The next report. Then the one after it is made already, and waits: the kernel may change.
    live::UsageReport next() {
        std::unique_lock lock(mutex_);
        const auto is_made = [this] { return held_.has_value(); };
        if (!changed_.wait_for(lock, patience, is_made)) throw std::runtime_error("no report is made");
        live::UsageReport report = std::move(*held_);
        held_.reset();
        changed_.notify_all();
        if (!changed_.wait_for(lock, patience, is_made)) throw std::runtime_error("no second report is made");
        return report;
    }
    static std::uint64_t value(const live::UsageReport& report, const std::string& name,
                               const std::string& unit, const std::string& origin = {},
                               const std::string& family = {}) {
        for (const live::UsageItem& item : report.items)
            if (item.name == name && item.unit == unit && item.origin == origin && item.family == family)
                return item.value;
        ADD_FAILURE() << "no " << name << ' ' << unit << ' ' << origin << ' ' << family;
        return 0;
    }

    std::optional<UsageReports> reports;
    Status answer{};
    std::vector<std::string> urls;

  private:
    Status send(const CrowdsecSpec& source, const live::UsageReport& report) {
        std::unique_lock lock(mutex_);
        urls.push_back(source.url);
        held_ = report;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !held_ || over_; });
        return answer;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool over_ = false;
    std::optional<live::UsageReport> held_;
};

// What was counted before this service began to report belongs to nobody.
TEST_F(UsageReportsTest, TellWhatWasCountedSinceTheLastOne) {
    follow_api("bad", "http://a", {"CAPI"});
    drop(0, 1000);
    (void)statistics.observe(kernel);
    start();
    live::UsageReport report = next();
    EXPECT_EQ(value(report, "processed", "packet"), 0U);
    EXPECT_EQ(value(report, "dropped", "packet", "CAPI"), 0U);
    EXPECT_EQ(value(report, "active_decisions", "ip", "CAPI", "ipv4"), 7U);
    EXPECT_EQ(value(report, "active_decisions", "ip", "lists:tor", "ipv4"), 1U);
    EXPECT_EQ(value(report, "active_decisions", "ip", "lists:tor", "ipv6"), 2U);
    drop(0, 5);
    EXPECT_EQ(value(next(), "dropped", "packet", "CAPI"), 0U); // was made before
    report = next();
    EXPECT_EQ(value(report, "dropped", "packet", "CAPI"), 5U);
    EXPECT_EQ(value(report, "dropped", "byte", "CAPI"), 500U);
    EXPECT_EQ(value(report, "processed", "packet"), 5U);
    EXPECT_EQ(value(next(), "dropped", "packet", "CAPI"), 0U);
}

// A hook that leaves takes nothing along, and one that comes does not bring what was counted there before.
TEST_F(UsageReportsTest, TellOfAHookThatHasLeft) {
    follow_api("bad", "http://a");
    drop(0, 1000);
    (void)statistics.observe(kernel);
    auto table = std::exchange(kernel.running.table, {}); // it left before this service began
    table.sets.at(0).baseline = kernel.running.stats.hit[0];
    (void)statistics.observe(kernel);
    start();
    (void)next();
    kernel.running.table = table;
    (void)next();
    EXPECT_EQ(value(next(), "dropped", "packet"), 0U);
    drop(0, 5);
    (void)statistics.observe(kernel); // as before a cycle that takes a program away
    kernel.running.table = {};
    (void)next(); // was made before
    EXPECT_EQ(value(next(), "dropped", "packet"), 5U);
}

// Two sets of one API make one report, in which a hook counts once.
TEST_F(UsageReportsTest, AreOneForEachApi) {
    follow_api("bad", "http://a");
    follow_api("worse", "http://a", {"crowdsec"});
    follow_api("other", "http://b");
    start();
    (void)next();
    (void)next();
    drop(1, 5);
    (void)next(); // of the first API
    (void)next(); // of the other one
    const live::UsageReport report = next();
    EXPECT_EQ(value(report, "processed", "packet"), 5U);
    EXPECT_EQ(value(report, "dropped", "packet"), 0U);
    EXPECT_EQ(value(report, "dropped", "packet", "crowdsec"), 5U);
    for (std::size_t i = 0; i < urls.size(); i++) EXPECT_EQ(urls[i], i % 2 == 0 ? "http://a" : "http://b");
}

TEST_F(UsageReportsTest, AreLeftOutWhereNobodyWantsThem) {
    follow_api("bad", "http://a");
    follow_api("told", "http://b");
    std::get<CrowdsecSpec>(configuration->sets[0].sources[0]).usage_metrics = false;
    start();
    (void)next();
    for (const std::string& url : urls) EXPECT_EQ(url, "http://b");
}

// An API of an older version refuses every report: that is told once, and nothing that was counted is lost.
TEST_F(UsageReportsTest, TellARefusalOnce) {
    follow_api("bad", "http://a");
    answer = bad_input("the server answered 404 Not Found");
    start();
    (void)next();
    drop(0, 5);
    (void)next();
    EXPECT_EQ(value(next(), "dropped", "packet"), 5U);
    EXPECT_EQ(value(next(), "dropped", "packet"), 5U);
    EXPECT_EQ(log.count("404"), 1U) << log.text();
}

} // namespace
} // namespace sieve::service
