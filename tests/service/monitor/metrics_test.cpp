// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The metrics, their documentation, the dashboard and the alerts: each names what the others have. promtool
// is the judge of names, units and rules. The tests run in the root of the source tree.
#include "libsieve/service/monitor/metrics.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "service/monitor/exposition.hpp"
#include "service/support.hpp"
#include "unit/service/monitor/snapshots.hpp"

namespace sieve::service::watching {
namespace {

using namespace service::test;
using namespace watching::test;
using namespace std::chrono_literals;

constexpr char dashboard[] = "examples/monitoring/grafana-dashboard.json";
constexpr char rules[] = "examples/monitoring/xdp-sieve.rules.yml";

std::string content_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file) << path;
    return {std::istreambuf_iterator<char>(file), {}};
}

// A snapshot that has a value for every metric.
SamplePage everything() {
    SamplePage sample;
    sample.add_hook(
        "eth0", kernel::HookPoint::xdp,
        {sample_set("plain", 0, 1000, 1e-5, false, 1h), sample_set("verified", 1, 1000, 1e-5, true, 2h)},
        1000);
    control::Sample& hook = sample.snapshot.hooks.front().sample;
    hook.table.replies = SIEVE_ACTION_PASS;
    hook.replies = control::RepliesState{
        .noting = true,
        .memory = kernel::FlowMemoryFacts{.max_flows = 4096, .entries = 12288, .used = 9216},
        .counts = {9, 5, 2, 3, 1, {}}};
    sample.want("eth7", kernel::HookPoint::ingress, false);
    SetHistory& plain = sample.add_list("plain", "/etc/lists/plain", 1000, 1h);
    plain.live_changes = 1;
    plain.changing.add(1ms);
    sample.add_list("verified", "https://example.com/list", 1000, 1h).last->result = SetOutcome::refused;
    StatisticsCopy& record = sample.snapshot.record;
    record.hook_errors[{"eth7", kernel::HookPoint::ingress}] = "there is none of that name";
    record.waiting[{"eth0", kernel::HookPoint::xdp}] = {{"friends", ""}, {"late", "friends"}};
    record.swapping[{"eth0", kernel::HookPoint::xdp}].add(20ms);
    record.fleet = sample_fleet();
    record.reloads = 2;
    record.last_reload = sample_now;
    return sample;
}

std::string exposition() {
    return metrics_text(metrics_of(everything().snapshot));
}

// promtool of scripts/install-deps.sh; empty if there is none.
std::string promtool() {
    for (const char* path : {"/var/cache/xdp-sieve/prometheus/usr/bin/promtool", "/usr/bin/promtool"})
        if (::access(path, X_OK) == 0) return std::filesystem::absolute(path);
    return {};
}

#define NEED_PROMTOOL()                                                                                      \
    if (promtool().empty()) GTEST_SKIP() << "promtool is missing: run scripts/install-deps.sh"

// Runs promtool; what it says goes into the message of a failure.
void expect_clean(const std::string& arguments, const Folder& folder) {
    const std::string log = folder.path("log");
    const int status = std::system((promtool() + " " + arguments + " >" + log + " 2>&1").c_str());
    EXPECT_EQ(status, 0) << arguments << ":\n" << folder.read("log");
}

TEST(Metrics, PromtoolFindsNoFault) {
    NEED_PROMTOOL();
    const Folder folder;
    expect_clean("check metrics <" + folder.write("metrics", exposition()), folder);
    EXPECT_EQ(folder.read("log"), "");
}

TEST(Metrics, EachOneOfTheCatalogueHasAValue) {
    const Exposition all = read_exposition(exposition());
    for (const MetricDescription& metric : metric_catalogue())
        EXPECT_TRUE(all.types.contains(metric.name)) << metric.name;
    EXPECT_EQ(all.types.size(), metric_catalogue().size());
}

TEST(Metrics, SetsThatAreNotInForceYetAreNamed) {
    const std::string text = exposition();
    for (const char* line : {"xdp_sieve_set_waiting{interface=\"eth0\",hook=\"xdp\",set=\"friends\"} 1\n",
                             "xdp_sieve_set_waiting{interface=\"eth0\",hook=\"xdp\",set=\"late\"} 1\n"})
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Metrics, AHookThatIsAsItShouldBeHasNoError) {
    SamplePage sample;
    sample.add_hook("eth0", kernel::HookPoint::xdp, {sample_set("plain", 0, 10, 1e-5, false, 1h)}, 10);
    sample.want("eth7", kernel::HookPoint::ingress, false);
    sample.snapshot.wanted.back().paused = true;
    sample.snapshot.record.hook_errors[{"eth8", kernel::HookPoint::xdp}] = "it";
    const std::string text = metrics_text(metrics_of(sample.snapshot));
    for (const char* line : {"xdp_sieve_hook_error{interface=\"eth0\",hook=\"xdp\"} 0\n",
                             "xdp_sieve_hook_error{interface=\"eth7\",hook=\"ingress\"} 0\n",
                             "xdp_sieve_hook_error{interface=\"eth8\",hook=\"xdp\"} 1\n",
                             "xdp_sieve_hook_paused{interface=\"eth0\",hook=\"xdp\"} 0\n",
                             "xdp_sieve_hook_paused{interface=\"eth7\",hook=\"ingress\"} 1\n"})
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Metrics, RepliesTellHowFullTheirMemoryIs) {
    const std::string text = exposition();
    for (const char* line : {"xdp_sieve_replies_noting{interface=\"eth0\",hook=\"xdp\"} 1\n",
                             "xdp_sieve_replies_flows_noted_total{interface=\"eth0\",hook=\"xdp\"} 5\n",
                             "xdp_sieve_replies_flows_evicted_total{interface=\"eth0\",hook=\"xdp\"} 2\n",
                             "xdp_sieve_replies_flows_refused_total{interface=\"eth0\",hook=\"xdp\"} 3\n",
                             "xdp_sieve_replies_flows_lost_total{interface=\"eth0\",hook=\"xdp\"} 1\n",
                             "xdp_sieve_replies_memory_flows{interface=\"eth0\",hook=\"xdp\"} 4096\n",
                             "xdp_sieve_replies_memory_load_ratio{interface=\"eth0\",hook=\"xdp\"} 0.75\n"})
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Metrics, HostileLabelsStayLabels) {
    const std::string hostile = "a\"} 1\nevil_total{x=\"\\";
    SamplePage sample;
    sample.add_hook(hostile, kernel::HookPoint::xdp, {sample_set(hostile, 0, 10, 1e-5, true, 1h)}, 10);
    const std::string text = metrics_text(metrics_of(sample.snapshot));
    EXPECT_EQ(text.find("\nevil_total"), std::string::npos);
    EXPECT_NE(text.find(R"(interface="a\"} 1\nevil_total{x=\"\\")"), std::string::npos);
}

TEST(Metrics, WithoutAKernelSayThatTheyAreMissing) {
    SamplePage sample;
    sample.want("eth0", kernel::HookPoint::xdp, false);
    sample.snapshot.error = "Operation not permitted";
    const Exposition all = read_exposition(metrics_text(metrics_of(sample.snapshot)));
    EXPECT_EQ(all.value("xdp_sieve_kernel_read_successful"), 0);
    EXPECT_FALSE(all.names.contains("xdp_sieve_hook_up")); // nobody knows
    EXPECT_FALSE(all.names.contains("xdp_sieve_packets_total"));
}

TEST(Monitoring, PromtoolFindsNoFaultInTheRules) {
    NEED_PROMTOOL();
    const Folder folder;
    expect_clean(fmt::format("check rules {}", rules), folder);
    expect_clean("test rules examples/monitoring/xdp-sieve.rules.test.yml", folder);
    EXPECT_NE(folder.read("log").find("SUCCESS"), std::string::npos);
}

TEST(Monitoring, EachAlertHasATest) {
    const std::string tests = content_of_file("examples/monitoring/xdp-sieve.rules.test.yml");
    const std::string text = content_of_file(rules);
    const std::regex alert("- alert: (\\w+)");
    std::size_t alerts = 0;
    for (auto found = std::sregex_iterator(text.begin(), text.end(), alert); found != std::sregex_iterator();
         ++found, alerts++) {
        EXPECT_NE(tests.find("alertname: " + (*found)[1].str() + "\n        exp_alerts:"), std::string::npos)
            << (*found)[1];
        EXPECT_NE(content_of_file("docs/watching.md").find((*found)[1].str()), std::string::npos)
            << (*found)[1];
    }
    EXPECT_GE(alerts, 5U);
}

// A panel that asks for a metric which is not there stays empty, and nobody notices.
TEST(Monitoring, DashboardAndRulesNameOnlyWhatIsThere) {
    const std::set<std::string> names = read_exposition(exposition()).names;
    const std::regex word("[A-Za-z_:][A-Za-z0-9_:]*");
    for (const char* path : {dashboard, rules}) {
        const std::string text = content_of_file(path);
        std::set<std::string> named;
        for (auto found = std::sregex_iterator(text.begin(), text.end(), word);
             found != std::sregex_iterator(); ++found)
            if (const std::string name = found->str();
                name.starts_with("xdp_sieve_") || name.starts_with("process_"))
                named.insert(name);
        EXPECT_GE(named.size(), 8U) << path;
        for (const std::string& name : named) EXPECT_TRUE(names.contains(name)) << path << " names " << name;
    }
}

// The lists in docs/watching.md are what the catalogue says. SIEVE_WRITE_DOCS=1 writes them.
TEST(Metrics, AreDocumented) {
    const std::string path = "docs/watching.md", begin = "<!-- metrics: written by service-tests -->\n",
                      end = "<!-- end of metrics -->";
    std::string table = "\n| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n";
    for (const MetricDescription& metric : metric_catalogue()) {
        std::string labels = metric.labels;
        for (std::size_t comma = 0; (comma = labels.find(',', comma)) != std::string::npos; comma += 2)
            labels.replace(comma, 1, ", ");
        const char* const type = metric.type == prometheus::MetricType::Counter ? "counter"
                                 : metric.type == prometheus::MetricType::Gauge ? "gauge"
                                                                                : "summary";
        table += fmt::format("| `{}` | {} | {} | {} |\n", metric.name, type, labels, metric.help);
    }
    table += "\n";
    std::string page = content_of_file(path);
    const std::size_t from = page.find(begin), to = page.find(end);
    ASSERT_NE(from, std::string::npos);
    ASSERT_NE(to, std::string::npos);
    const std::size_t first = from + begin.size();
    if (std::getenv("SIEVE_WRITE_DOCS") != nullptr)
        std::ofstream(path) << page.replace(first, to - first, table);
    EXPECT_TRUE(content_of_file(path).find(begin + table + end) != std::string::npos)
        << "docs/watching.md differs; SIEVE_WRITE_DOCS=1 build/service-tests "
           "--gtest_filter=Metrics.AreDocumented";
}

} // namespace
} // namespace sieve::service::watching
