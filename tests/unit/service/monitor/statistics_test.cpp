// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/statistics.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "libsieve/service/monitor/problems.hpp"
#include "libsieve/service/monitor/snapshot.hpp"
#include "unit/messages.hpp"
#include "unit/service/monitor/samples.hpp"

namespace sieve::service::watching {
namespace {

using namespace std::chrono_literals;
using test::SmallKernel;

const HookId eth0{"eth0", kernel::HookPoint::xdp};
constexpr Clock::time_point start{std::chrono::seconds(1'700'000'000)};

class StatisticsTest : public testing::Test {
  protected:
    StatisticsTest() {
        std::string pattern = (std::filesystem::temp_directory_path() / "sieve-statistics-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
    }
    ~StatisticsTest() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] Statistics::Settings settings() const {
        return {.version = "1", .counters_file = folder_ + "/counters.json"};
    }
    static Configuration configured(std::vector<std::string> names) {
        Configuration configuration;
        for (const std::string& name : names) {
            SetConfiguration set;
            set.name = name;
            configuration.sets.push_back(set);
        }
        return configuration;
    }
    static SetReport report_of(const std::string& name, SetOutcome outcome) {
        SetReport report;
        report.name = name;
        report.outcome = outcome;
        return report;
    }

    std::string folder_;
};

TEST_F(StatisticsTest, CountsARefreshForEachSetThatWasAsked) {
    Statistics statistics(settings());
    statistics.set_configuration(configured({"asked", "refused", "not"}));
    CycleReport report;
    report.sets = {report_of("asked", SetOutcome::replaced), report_of("refused", SetOutcome::refused),
                   report_of("not", SetOutcome::unchanged)};
    report.sets[0].last_good = SetRecord{.identity = "id", .entries = 7};
    report.sets[1].guard = Guard::shrink;
    report.sets[1].action_waits = true;
    report.sets[1].error = Error{ErrorKind::bad_input, "too small"};
    report.sets[0].times = {.fetching = 1s, .reading = 200ms, .building = 300ms};
    report.changed = true;
    report.missing = {"eth9"};
    statistics.note_cycle(report, {.at = start, .took = 2s, .asked = {"asked", "refused"}});
    const StatisticsCopy record = statistics.record();
    EXPECT_EQ(record.cycles, 1U);
    EXPECT_EQ(record.cycles_changed, 1U);
    EXPECT_EQ(record.cycle_time.sum, Seconds(2));
    EXPECT_EQ(record.missing, std::vector<std::string>{"eth9"});
    const SetHistory& asked = record.sets.at("asked");
    EXPECT_EQ(asked.refreshes[static_cast<std::size_t>(SetOutcome::replaced)], 1U);
    EXPECT_EQ(asked.confirmed, start);
    EXPECT_EQ(asked.last_good->entries, 7U);
    EXPECT_EQ(asked.fetching.sum, Seconds(1));
    EXPECT_EQ(asked.building.sum, Seconds(0.5));
    EXPECT_EQ(record.sets.at("refused").fetching.count, 0U);
    const SetHistory& refused = record.sets.at("refused");
    EXPECT_EQ(refused.refusals[static_cast<std::size_t>(Guard::shrink)], 1U);
    EXPECT_EQ(refused.last->message, "too small");
    EXPECT_FALSE(refused.confirmed);
    EXPECT_TRUE(refused.action_waits);
    EXPECT_FALSE(asked.action_waits);
    EXPECT_FALSE(record.sets.at("not").last);
}

TEST_F(StatisticsTest, ACycleThatChangedNothingLeavesWhatWasKnown) {
    Statistics statistics(settings());
    statistics.note_cycle_failed({ErrorKind::bad_input, "no"}, {.at = start, .took = 1s});
    EXPECT_EQ(statistics.record().cycle_error, "no");
    EXPECT_EQ(statistics.record().cycles_failed, 1U);
    statistics.note_cycle({}, {.at = start, .took = 1s});
    EXPECT_FALSE(statistics.record().cycle_error);
    EXPECT_EQ(statistics.record().cycles, 2U);
}

TEST_F(StatisticsTest, ForgetsSetsThatTheConfigurationLacks) {
    Statistics statistics(settings());
    statistics.set_configuration(configured({"a", "b"}));
    statistics.note_refresh("a", {.result = SetOutcome::replaced, .at = start});
    statistics.note_refresh("b", {.result = SetOutcome::replaced, .at = start});
    statistics.set_configuration(configured({"b"}));
    EXPECT_EQ(statistics.record().sets.size(), 1U);
    EXPECT_EQ(statistics.record().sets.at("b").refreshes[static_cast<std::size_t>(SetOutcome::replaced)], 1U);
}

TEST_F(StatisticsTest, AddsUpChangesInPlace) {
    Statistics statistics(settings());
    statistics.note_live_change("a", {.inserted = 5, .deleted = 1, .took = 3ms, .at = start});
    statistics.note_live_change("a", {.inserted = 2, .took = 1ms, .rebuild_due = true, .at = start + 1s});
    const SetHistory set = statistics.record().sets.at("a");
    EXPECT_EQ(set.live_changes, 2U);
    EXPECT_EQ(set.live_inserted, 7U);
    EXPECT_EQ(set.live_deleted, 1U);
    EXPECT_EQ(set.rebuilds_due, 1U);
    EXPECT_EQ(set.confirmed, start + 1s);
}

// Its image was built of fewer.
TEST_F(StatisticsTest, KnowsHowManyEntriesAListHasThatChangesInPlace) {
    Statistics statistics(settings());
    statistics.set_configuration(configured({"a"}));
    const auto entries = [&] { return entries_of(statistics.record().sets.at("a")); };
    statistics.note_live_entries("a", 6);
    EXPECT_EQ(entries(), std::nullopt);
    CycleReport report;
    report.sets.push_back({.name = "a", .last_good = SetRecord{.entries = 1}});
    statistics.note_cycle(report, {});
    EXPECT_EQ(entries(), 6U);
    statistics.note_live_entries("a", std::nullopt);
    EXPECT_EQ(entries(), 1U);
    statistics.note_live_entries("a", 6);
    statistics.note_cycle(report, {.asked = {"a"}}); // it no longer changes in place
    EXPECT_EQ(entries(), 1U);
    statistics.note_live_entries("unknown", 6);
    EXPECT_EQ(statistics.record().sets.size(), 1U);
}

TEST_F(StatisticsTest, RemembersWhetherTheConfigurationIsValid) {
    Statistics statistics(settings());
    statistics.note_reload(Error{ErrorKind::bad_input, "line 4"}, start);
    EXPECT_EQ(statistics.record().reload_error, "line 4");
    statistics.note_reload(std::nullopt, start);
    EXPECT_FALSE(statistics.record().reload_error);
    EXPECT_EQ(statistics.record().reloads, 2U);
    EXPECT_EQ(statistics.record().reloads_failed, 1U);
}

TEST_F(StatisticsTest, TheHistoryIsAnHourOfMoments) {
    Statistics statistics(settings());
    SmallKernel kernel;
    kernel.replace_program();
    kernel.add("a");
    for (int second = 0; second < 7200; second++) {
        kernel.packets("a", 1);
        statistics.observe(kernel.samples(), start + std::chrono::seconds(second));
    }
    const std::vector<Moment> history = statistics.history();
    ASSERT_EQ(history.size(), 361U); // every 10 s, both ends
    EXPECT_EQ(history.back().at - history.front().at, 1h);
    EXPECT_EQ(history.back().hooks.at(eth0).dropped.packets - history.front().hooks.at(eth0).dropped.packets,
              3600U);
    EXPECT_EQ(history.back().sets.at(eth0).at("a").matches.packets, 7191U);
}

TEST_F(StatisticsTest, KeepsCountersForTheNextStart) {
    SmallKernel kernel;
    kernel.replace_program();
    kernel.add("a");
    kernel.packets("a", 5);
    {
        Statistics statistics(settings());
        statistics.observe(kernel.samples(), start);
    }
    kernel.packets("a", 2);
    kernel.remove("a"); // while nobody looks
    kernel.add("b");
    kernel.packets("b", 1);
    Statistics next(settings());
    EXPECT_EQ(next.totals(eth0, "a").matches.packets, 5U);
    next.observe(kernel.samples(), start + 20s);
    EXPECT_EQ(next.totals(eth0, "a").matches.packets, 7U);
    EXPECT_EQ(next.totals(eth0, "b").matches.packets, 1U);
    EXPECT_EQ(next.totals(eth0).dropped.packets, 8U);
}

// A file that is half written or not ours is as good as none.
TEST_F(StatisticsTest, StartsWithAnyFile) {
    for (const char* content : {"", "{", "\xff\xff", "{\"counters\":1}", "[[[[[[[["}) {
        std::ofstream(settings().counters_file) << content;
        Statistics statistics(settings());
        EXPECT_EQ(statistics.totals(eth0).dropped.packets, 0U) << content;
    }
}

// A disk that is full: the service goes on, and says so.
TEST_F(StatisticsTest, StartsWithWhatIsNoFile) {
    const std::string path = settings().counters_file;
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    {
        Statistics statistics(settings());
        EXPECT_FALSE(statistics.keep());
        EXPECT_TRUE(statistics.record().keeping_error);
    }
    std::filesystem::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    Statistics statistics(settings());
    EXPECT_TRUE(statistics.keep()) << "the file takes the place of the pipe";
    EXPECT_TRUE(std::filesystem::is_regular_file(path));
}

TEST_F(StatisticsTest, SaysThatCountersCannotBeKept) {
    Statistics::Settings lost = settings();
    lost.counters_file = folder_ + "/missing/counters.json";
    Statistics statistics(lost);
    SmallKernel kernel;
    kernel.replace_program();
    statistics.observe(kernel.samples(), start);
    ASSERT_TRUE(statistics.record().keeping_error);
    expect_says(*statistics.record().keeping_error);
    std::filesystem::create_directory(folder_ + "/missing");
    EXPECT_TRUE(statistics.keep());
    EXPECT_FALSE(statistics.record().keeping_error);
}

TEST_F(StatisticsTest, ManyThreadsMayTellIt) {
    Statistics statistics(settings());
    SmallKernel kernel;
    kernel.replace_program();
    kernel.add("a");
    kernel.packets("a", 3);
    const auto samples = kernel.samples();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            for (int k = 0; k < 200; k++) {
                statistics.note_refresh("a", {.result = SetOutcome::unchanged});
                statistics.observe(samples);
                (void)statistics.record();
                (void)statistics.history();
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(statistics.record().sets.at("a").refreshes[static_cast<std::size_t>(SetOutcome::unchanged)],
              800U);
    EXPECT_EQ(statistics.totals(eth0, "a").matches.packets, 3U);
}

TEST(Staleness, IsThreeIntervalsWithoutAWord) {
    SetConfiguration set;
    set.refresh = 1h;
    SetHistory history;
    EXPECT_FALSE(is_stale(set, history, start)); // there is no list that could be old
    history.last_good = SetRecord{.built_at = 1'700'000'000 - 4 * 3600};
    EXPECT_TRUE(is_stale(set, history, start)); // after a start: it was read four hours ago
    history.last_good->sources = {SourceProvenance{.asked = 1'700'000'000 - 3600}};
    EXPECT_FALSE(is_stale(set, history, start));
    history.confirmed = start - 3h - 1s;
    EXPECT_TRUE(is_stale(set, history, start));
    history.confirmed = start - 3h;
    EXPECT_FALSE(is_stale(set, history, start));
    history.confirmed = start + 1h; // a clock that was set back
    EXPECT_FALSE(is_stale(set, history, start));
}

// One that is polled every ten seconds may be late for some minutes.
TEST(Staleness, OfAStreamFollowsItsPolls) {
    SetConfiguration set;
    set.sources.emplace_back(CrowdsecSpec{.poll = 10s});
    SetHistory history;
    history.confirmed = start - 5min;
    EXPECT_FALSE(is_stale(set, history, start));
    history.confirmed = start - 5min - 1s;
    EXPECT_TRUE(is_stale(set, history, start));
    EXPECT_EQ(asked_every(set), 10s);
}

} // namespace
} // namespace sieve::service::watching
