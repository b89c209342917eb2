// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The status page of snapshots made by hand. With SIEVE_PAGES=FOLDER each test leaves its page there, for
// people who want to look.
#include "libsieve/service/monitor/status_page.hpp"

#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/service/monitor/status_json.hpp"
#include "unit/service/monitor/snapshots.hpp"

namespace sieve::service::watching {
namespace {

using namespace std::chrono_literals;
using kernel::HookPoint;
using test::sample_now;
using test::sample_set;
using test::SamplePage;

// A whole page would drown the message.
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (part)
#define EXPECT_SILENT(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (part)

std::string page_of(const SamplePage& sample, const std::string& name,
                    const std::string& host = "gate.example.net") {
    std::string page = status_page(sample.snapshot, sample.history, host);
    if (const char* const folder = std::getenv("SIEVE_PAGES"))
        std::ofstream(std::string(folder) + "/" + name + ".html") << page;
    return page;
}

SamplePage usual() {
    SamplePage sample;
    sample.add_hook("eth0", HookPoint::xdp,
                    {sample_set("spamhaus-drop", 0, 1'446, 3.1e-7, false, 9h),
                     sample_set("ipsum", 1, 118'377, 3.9e-5, true, 2h),
                     sample_set("crowdsec", 2, 21'904, 1.2e-6, false, 26h)},
                    184'000);
    sample.snapshot.hooks[0].sets[2].status.filter.file.changes = 4'512;
    sieve_lookup& counting = sample.snapshot.hooks[0].sets[2].status.filter.lookup;
    counting.kind = SIEVE_KIND_DDLCBF;
    counting.choices = 2;
    sample.add_list("spamhaus-drop", "https://www.spamhaus.org/drop/drop_v4.json", 1'446, 9h, 12h);
    sample.add_list("ipsum", "https://raw.githubusercontent.com/stamparm/ipsum/master/ipsum.txt", 118'377,
                    2h);
    SetHistory& crowdsec = sample.add_list("crowdsec", "/var/lib/xdp-sieve/feeds/crowdsec.txt", 21'904, 26h);
    crowdsec.live_changes = 311;
    crowdsec.last_change =
        LiveChangeNote{.inserted = 41, .deleted = 12, .took = Seconds(0.0031), .at = sample_now - 8s};
    control::TopKeys top;
    top.since = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>((sample_now - 40min).time_since_epoch()).count());
    top.matches = 90'000'000;
    for (std::uint32_t i = 0; i < 6; i++) {
        control::TopKey key{.set = i == 2 ? "crowdsec" : "ipsum",
                            .fields = SIEVE_FIELD_SRC,
                            .key = {},
                            .packets = 31'000'000 / (i + 1)};
        key.key = *parse_key("198.51.100." + std::to_string(7 + 31 * i), SIEVE_FIELD_SRC);
        top.keys.push_back(key);
    }
    sample.snapshot.hooks[0].top_keys = top;
    return sample;
}

TEST(StatusPage, SaysWhatIsPromisedAndWhatIsSeen) {
    const std::string page = page_of(usual(), "usual");
    EXPECT_SAYS(page, "✓ Everything that the configuration names is in force");
    EXPECT_SAYS(page, "spamhaus-drop");
    EXPECT_SAYS(page, "1 in 3,225,806");            // 1 / 3.1e-7, expected
    EXPECT_SAYS(page, "filter alone: 1 in 25,641"); // verified, so none is let through
    EXPECT_SAYS(page, "118,377");
    EXPECT_SAYS(page, "198.51.100.7 · ipsum");
    EXPECT_SAYS(page, "changed in place 8 s ago: 41 keys in, 12 out, in 3.1 ms");
    EXPECT_SAYS(page, "asked every 12h");
    EXPECT_SAYS(page, "later fragment");
}

TEST(StatusPage, NeedsNothingElse) {
    const std::string page = page_of(usual(), "usual");
    EXPECT_SILENT(page, "<script");
    EXPECT_SILENT(page, "javascript:");
    EXPECT_SILENT(page, "@import");
    EXPECT_SILENT(page, "url(");
    // The only addresses outside are names of sources, as text, and the name of SVG.
    const std::regex reference("(src|href|action)=\"([^\"]*)\"");
    for (auto found = std::sregex_iterator(page.begin(), page.end(), reference);
         found != std::sregex_iterator(); ++found) {
        const std::string target = (*found)[2];
        EXPECT_TRUE(target.starts_with("/") || target.starts_with("data:image/svg+xml,")) << target;
    }
    EXPECT_SAYS(page, "name=\"viewport\"");
    EXPECT_SAYS(page, "prefers-color-scheme: dark");
}

TEST(StatusPage, IsFineWithoutAnything) {
    SamplePage sample;
    sample.snapshot.record.started = sample_now - 3s;
    sample.snapshot.record.cycles = sample.snapshot.record.cycles_changed = 0;
    sample.snapshot.record.last_cycle.reset();
    sample.snapshot.record.state = DaemonState::starting;
    const std::string page = page_of(sample, "empty");
    EXPECT_SAYS(page, "The program runs on no interface yet");
    EXPECT_SAYS(page, "No problem is known.");
    EXPECT_SAYS(page, "none yet");
    EXPECT_SILENT(page, "nan");
    EXPECT_SILENT(page, "inf");
}

TEST(StatusPage, SaysWhatIsWrongAndWhatStays) {
    SamplePage sample = usual();
    sample.want("eth7", HookPoint::ingress, false);
    StatisticsCopy& record = sample.snapshot.record;
    record.reload_error =
        "/etc/xdp-sieve/xdp-sieve.toml:14: sets.ipsum.kind: expected a kind of filter, found `blokced`";
    SetHistory& ipsum = record.sets["ipsum"];
    ipsum.last->result = SetOutcome::refused;
    ipsum.last->guard = Guard::shrink;
    ipsum.last->message =
        "refused: set ipsum: 118,377 entries before, 12 now; a list may lose half of its entries at once";
    ipsum.refusals[static_cast<std::size_t>(Guard::shrink)] = 3;
    ipsum.refreshes[static_cast<std::size_t>(SetOutcome::refused)] = 3;
    SetHistory& drop = record.sets["spamhaus-drop"];
    drop.last->result = SetOutcome::failed;
    drop.last->message = "https://www.spamhaus.org/drop/drop_v4.json: the server answered 503";
    drop.confirmed = sample_now - 49h;
    const std::string page = page_of(sample, "problems");
    EXPECT_SAYS(page, "eth7 (ingress)");
    EXPECT_SAYS(page, "no packet is judged");
    EXPECT_SAYS(page, "expected a kind of filter, found `blokced`");
    EXPECT_SAYS(page, "A guard (shrink) refused the new list 12 min ago. 118,377 entries before, 12 now;");
    EXPECT_SAYS(page, "The last good list, of 2 h ago and with 118,377 entries, stays in force.");
    EXPECT_SAYS(page, "the server answered 503");
    EXPECT_SAYS(page, "Its sources were last confirmed 2 days ago; they are to be asked every 12h.");
    EXPECT_SILENT(page, "✓");
    // What keeps packets from being judged comes first.
    EXPECT_LT(page.find("eth7 (ingress)</b>"), page.find("set ipsum</b>"));
}

TEST(StatusPage, HoldsSixteenSetsOnFourHooks) {
    SamplePage sample;
    for (const auto& [interface, point] : {std::pair{"eth0", HookPoint::xdp},
                                           {"eth1", HookPoint::xdp},
                                           {"wg0", HookPoint::ingress},
                                           {"eth0", HookPoint::egress}}) {
        std::vector<control::SetStatus> sets;
        for (std::uint32_t i = 0; i < 16; i++)
            sets.push_back(sample_set("list-" + std::to_string(i), i, 3000 * (i + 1) * (i + 1), 1e-5,
                                      i % 3 == 0, 90min));
        sample.add_hook(interface, point, sets, 40'000);
    }
    for (int i = 0; i < 16; i++)
        sample.add_list("list-" + std::to_string(i), "/etc/xdp-sieve/lists/" + std::to_string(i) + ".txt",
                        3000, 90min);
    const std::string page = page_of(sample, "sixteen");
    EXPECT_SAYS(page, "list-15");
    EXPECT_SAYS(page, "wg0");
    EXPECT_LT(page.size(), 600'000U);
}

// Whatever a configuration, a label, a server or an interface is called: it stays text.
TEST(StatusPage, EscapesWhateverComesFromOutside) {
    const std::string hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&\x1b[31m\xff";
    SamplePage sample;
    auto set = sample_set(hostile, 0, 1000, 1e-5, true, 1h);
    sample.add_hook(hostile, HookPoint::xdp, {set}, 1000);
    sample.snapshot.hooks[0].top_keys =
        control::TopKeys{.since = 1,
                         .matches = 1,
                         .keys = {{.set = hostile, .fields = SIEVE_FIELD_SRC, .key = {}, .packets = 1}}};
    sample.want(hostile, HookPoint::egress, false);
    SetHistory& list = sample.add_list(hostile, "https://example.com/" + hostile, 10, 1h);
    list.last->result = SetOutcome::failed;
    list.last->message = hostile;
    StatisticsCopy& record = sample.snapshot.record;
    record.version = record.reload_error.emplace(hostile);
    record.cycle_error = record.keeping_error = hostile;
    record.hook_errors[{hostile, HookPoint::xdp}] = hostile;
    const std::string page = page_of(sample, "hostile", hostile);
    EXPECT_SAYS(page, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;&lt;img src=x "
                      "onerror=alert(2)&gt;&amp;\xef\xbf\xbd");
    EXPECT_SILENT(page, "<script");
    EXPECT_SILENT(page, "<img");
    EXPECT_SILENT(page, "'>");
    EXPECT_SILENT(page, "\x1b");
    EXPECT_SILENT(page, "\xff");
    // JSON for programs holds the same, quoted.
    const std::string json = status_json(sample.snapshot);
    EXPECT_SAYS(json, "<script>alert(1)</script>\\\"'>");
    EXPECT_SILENT(json, "\x1b");
}

TEST(StatusPage, SaysThatTheKernelCannotBeRead) {
    SamplePage sample;
    sample.want("eth0", HookPoint::xdp, false);
    sample.snapshot.error = "reading the program's counters: Operation not permitted";
    const std::string page = page_of(sample, "unreadable");
    EXPECT_SAYS(page, "What runs in the kernel could not be read: reading the program&#39;s counters: "
                      "Operation not permitted.");
    // Nobody knows whether it runs.
    EXPECT_SILENT(page, "no packet is judged");
    EXPECT_SILENT(page, "The program runs on no interface yet");
}

TEST(StatusPage, ShowsTheFleet) {
    SamplePage sample = usual();
    EXPECT_SILENT(page_of(sample, "no-fleet"), "Fleet");
    sample.snapshot.record.fleet = test::sample_fleet();
    std::string page = page_of(sample, "fleet");
    EXPECT_SAYS(page, "<h2>Fleet edge</h2><span class=\"pill good\">followed</span>");
    EXPECT_SAYS(page, "as gate-1");
    EXPECT_SAYS(page, "1795334100000, 5 min ago (3f2a90c1)");
    EXPECT_SAYS(page, "running, stage 2 of 3; this host is of stage 1");
    EXPECT_SAYS(page, "<dt>etcd answered last</dt><dd>19 s ago</dd>");
    EXPECT_SAYS(page, "✓ Everything");

    FleetStanding& fleet = *sample.snapshot.record.fleet;
    fleet.state = FleetState::etcd_away;
    fleet.error = fleet.last_error = "http://<etcd>:2379: Connection refused";
    fleet.last_error_at = sample_now - 2min;
    page = page_of(sample, "etcd-away");
    EXPECT_SAYS(page, "<span class=\"pill warn\">etcd away</span>");
    EXPECT_SAYS(page, "<b>fleet edge</b>");
    EXPECT_SAYS(page, "It answered last 19 s ago. http://&lt;etcd&gt;:2379: Connection refused.");
    EXPECT_SAYS(page, "<dt>Last error</dt><dd>2 min ago: http://&lt;etcd&gt;");

    // A host without anything yet, whose publisher's clock is ahead.
    fleet = {.fleet = "edge", .node = "gate-1"};
    fleet.published = 9'000'000'000'000;
    page = page_of(sample, "fleet-begins");
    EXPECT_SAYS(page, "It has not answered since the start.");
    EXPECT_SAYS(page, "<dt>Manifest in force</dt><dd>none</dd>");
    EXPECT_SAYS(page, "<dt>Manifest published</dt><dd>9000000000000</dd>");
}

TEST(StatusJson, TellsWhatRepliesLack) {
    SamplePage sample;
    sample.add_hook("eth0", HookPoint::xdp, {sample_set("bad", 0, 1000, 1e-5, false, 1h)}, 1000);
    EXPECT_FALSE(nlohmann::json::parse(status_json(sample.snapshot))["hooks"][0].contains("flows"));
    control::Sample& hook = sample.snapshot.hooks.front().sample;
    hook.table.replies = SIEVE_ACTION_PASS;
    hook.replies = control::RepliesState{
        .noting = true,
        .memory = kernel::FlowMemoryFacts{.max_flows = 4096, .entries = 12288, .used = 6143},
        .counts = {9, 5, 2, 0, 0, {}}};
    auto json = nlohmann::json::parse(status_json(sample.snapshot));
    EXPECT_EQ(json["hooks"][0]["replies"], "pass");
    EXPECT_EQ(json["hooks"][0]["flows"]["refused"], 0);
    EXPECT_TRUE(json["problems"].empty()) << json["problems"];
    hook.replies->memory->used = 6144; // half of the entries
    hook.replies->noting = false;
    json = nlohmann::json::parse(status_json(sample.snapshot));
    ASSERT_EQ(json["problems"].size(), 2U) << json["problems"];
    EXPECT_EQ(json["problems"][0]["kind"], "noting-missing");
    EXPECT_EQ(json["problems"][1]["kind"], "flows-full");
}

TEST(StatusPage, SaysThatANewActionWaits) {
    SamplePage sample;
    SetHistory& history = sample.add_list("bad", "/lists/bad.txt", 1000, 1min);
    EXPECT_TRUE(nlohmann::json::parse(status_json(sample.snapshot))["problems"].empty());
    history.action_waits = true;
    const auto json = nlohmann::json::parse(status_json(sample.snapshot));
    ASSERT_EQ(json["problems"].size(), 1U) << json["problems"];
    EXPECT_EQ(json["problems"][0]["kind"], "action-waiting");
}

// Half of the room is used, or a flow found none: what is said of answers holds in each case.
TEST(StatusJson, TellsWhenFlowsFindNoRoom) {
    SamplePage sample;
    sample.add_hook("eth0", HookPoint::xdp, {sample_set("bad", 0, 1000, 1e-5, false, 1h)}, 1000);
    control::Sample& hook = sample.snapshot.hooks.front().sample;
    hook.table.replies = SIEVE_ACTION_PASS;
    hook.replies = control::RepliesState{
        .noting = true, .memory = kernel::FlowMemoryFacts{.max_flows = 4096, .entries = 10000}};
    const auto said = [&](std::uint64_t used, std::uint64_t refused) {
        hook.replies->memory->used = used;
        hook.replies->counts.refused = refused;
        std::string texts;
        const auto json = nlohmann::json::parse(status_json(sample.snapshot));
        for (const auto& problem : json["problems"]) texts += problem["text"].get<std::string>();
        return texts;
    };
    EXPECT_EQ(said(4999, 0), "");
    EXPECT_EQ(said(5000, 0), "The flow memory is full to 50 %. It needs a higher max-flows.");
    EXPECT_EQ(said(7000, 1200),
              "The flow memory is full to 70 %, and 1,200 flows found no room: answers to some "
              "flows are dropped. It needs a higher max-flows.");
    EXPECT_EQ(said(200, 1), "The flow memory is full to 2 %, and 1 flow found no room: answers to some flows "
                            "are dropped. It needs a higher max-flows.");
}

TEST(StatusJson, TellsOfTheFleet) {
    SamplePage sample;
    EXPECT_TRUE(nlohmann::json::parse(status_json(sample.snapshot))["fleet"].is_null());
    sample.snapshot.record.fleet = test::sample_fleet();
    sample.snapshot.record.fleet->state = FleetState::halted;
    sample.snapshot.record.fleet->error = "n7: the share of dropped packets rose by 12.0%";
    const auto json = nlohmann::json::parse(status_json(sample.snapshot));
    EXPECT_EQ(json["fleet"]["state"], "halted");
    EXPECT_EQ(json["fleet"]["in_force"], 1'795'334'100'000);
    EXPECT_EQ(json["fleet"]["stage"], 2);
    EXPECT_EQ(json["problems"][0]["kind"], "fleet-halted");
    sample.snapshot.record.fleet->state = FleetState::followed;
    sample.snapshot.record.fleet->error = "the manifest does not have bad, and what was in force of it stays";
    EXPECT_EQ(nlohmann::json::parse(status_json(sample.snapshot))["problems"][0]["kind"], "fleet-left-over");
}

} // namespace
} // namespace sieve::service::watching
