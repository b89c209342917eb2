// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Sets that follow bans or CrowdSec and have lists besides.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/service/live/live_set.hpp"
#include "libsieve/service/state/refusals.hpp"
#include "unit/messages.hpp"
#include "unit/service/live/live_updater_fixture.hpp"
#include "unit/service/live/rebuild.hpp"

namespace sieve::service::live {
namespace {

class MergedSourcesTest : public BansKeeperTest {
  protected:
    const std::string path = files.path("list.txt");
    // Besides the sources of each test.
    SetConfiguration merged = [this] {
        SetConfiguration set = ban_set();
        set.sources.emplace_back(FileSpec{path});
        return set;
    }();

    // The file gets another inode, as from an editor.
    void write_list(const std::vector<std::string>& lines) {
        std::ofstream file(path + ".new");
        for (const std::string& line : lines) file << line << '\n';
        file.close();
        std::filesystem::rename(path + ".new", path);
    }
    std::unique_ptr<LiveUpdater> open_in_force() {
        auto updater = open(merged);
        put_in_force();
        put_in_force("block-ranges");
        settle(*updater);
        return updater;
    }
    // A table with a set of another sort.
    void put_in_force_table(const std::string& set) {
        test::FakeKernel::HookContent& running = kernel.at(kernel::HookPoint::xdp);
        running.ours = true;
        running.program = 40;
        kernel.put(set);
    }
    void put_in_force_after(LiveSet& live) {
        ASSERT_TRUE(test::rebuild(live, sandbox));
        put_in_force();
    }
    void list(const std::vector<std::string>& lines, LiveUpdater& updater) {
        write_list(lines);
        updater.wake();
        settle(updater);
    }
    [[nodiscard]] std::size_t failures_told() const {
        return static_cast<std::size_t>(
            std::ranges::count(events, LiveEvent::What::failed, &LiveEvent::what));
    }
};

TEST_F(MergedSourcesTest, AnAddressIsInForceAsLongAsOneSourceHasIt) {
    write_list({"192.0.2.1", "192.0.2.2", "198.51.100.0/24", "203.0.113.5-203.0.113.8"});
    const auto updater = open_in_force();
    EXPECT_TRUE(updater->state().in_step);
    EXPECT_EQ(updater->state().entries, 4U); // the range begins and ends with an address
    EXPECT_EQ(ranges_in_force(), 2U);        // and has a prefix between
    change({ban("192.0.2.2"), ban("192.0.2.3"), ban("198.51.100.0/24")}, *updater);
    for (const char* address : {"192.0.2.1", "192.0.2.2", "192.0.2.3", "203.0.113.5", "203.0.113.8"})
        EXPECT_TRUE(in_force_has(address)) << address;
    EXPECT_EQ(ranges_in_force(), 2U);
    // The list has it still, and the ban has it still.
    change({unban("192.0.2.2")}, *updater);
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    change({ban("192.0.2.2")}, *updater);
    list({"192.0.2.1"}, *updater);
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_FALSE(in_force_has("203.0.113.5"));
    EXPECT_EQ(ranges_in_force(), 1U);
    change({unban("192.0.2.2"), unban("198.51.100.0/24")}, *updater);
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_EQ(updater->state().ranges, 0U);
}

TEST_F(MergedSourcesTest, WhatOneSourceSaysDoesNotWaitForAnother) {
    merged.sources = stream_set().sources;
    merged.sources.emplace_back(BanSpec{});
    merged.sources.emplace_back(FileSpec{path});
    answer.reset();
    const auto updater = open_in_force(); // neither the API nor the list is there
    EXPECT_FALSE(updater->state().in_step);
    EXPECT_EQ(failures_told(), 2U);
    change({ban("192.0.2.1")}, *updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_TRUE(updater->state().ledger.has(ledger.mark(), {}));
    EXPECT_EQ(updater->state().lacks, "");
    list({"192.0.2.2"}, *updater);
    EXPECT_TRUE(in_force_has("192.0.2.2"));
    EXPECT_EQ(updater->state().last_error, "the API is away");
    answer = Decisions{.added = {entry("192.0.2.3", entry_id(1, 1), now + 1h)}, .origins = {"CAPI"}};
    now += 2min;
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    EXPECT_TRUE(updater->state().in_step);
    ASSERT_EQ(updater->state().origins.size(), 1U); // of decisions only
    EXPECT_EQ(updater->state().origins[0].ipv4, 1U);
    // A list that cannot be read stays.
    list({"not an address"}, *updater);
    EXPECT_FALSE(updater->state().in_step);
    answer = Decisions{.deleted = {entry("192.0.2.3", entry_id(1, 1))}, .origins = {"CAPI"}};
    now += 10s;
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.3"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
}

TEST_F(MergedSourcesTest, NothingWaitsForAnApiThatHangs) {
    merged.sources = stream_set().sources;
    merged.sources.emplace_back(BanSpec{});
    answer = Decisions{.added = {entry("192.0.2.3", entry_id(1, 1), now + 20s)}, .origins = {"CAPI"}};
    const auto updater = open_in_force();
    api_hangs = true;
    now += 10s;
    updater->step();
    EXPECT_TRUE(updater->state().at_work);
    ASSERT_TRUE(ledger.append({ban("192.0.2.1")}));
    updater->wake();
    EXPECT_GE(updater->step(), now + 5s); // it does not look again and again
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(updater->state().lacks, "");
    now += 10s;
    updater->step();
    EXPECT_FALSE(in_force_has("192.0.2.3")) << "its time is over";
    answer = Decisions{.added = {entry("192.0.2.4", entry_id(2, 1), now + 1h)}, .origins = {"CAPI"}};
    answer_at_last();
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.4"));
    EXPECT_TRUE(in_force_has("192.0.2.1"));
}

// One that comes as soon as usual.
TEST_F(MergedSourcesTest, WhatAnAnswerProlongsDoesNotEndBeforeIt) {
    merged.sources = stream_set().sources;
    answer = Decisions{.added = {entry("192.0.2.3", entry_id(1, 1), now + 10s)}, .origins = {"CAPI"}};
    const auto updater = open_in_force();
    answer = Decisions{.added = {entry("192.0.2.3", entry_id(1, 1), now + 1h)}, .origins = {"CAPI"}};
    api_hangs = true;
    now += 10s;
    EXPECT_LE(updater->step(), now + 1s);
    EXPECT_TRUE(in_force_has("192.0.2.3"));
    answer_at_last();
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.3"));
}

// A ban comes and goes often, and servers are asked seldom.
TEST_F(MergedSourcesTest, ABanAsksForNoList) {
    write_list({"192.0.2.1"});
    const auto updater = open_in_force();
    std::filesystem::remove(path);
    now += 1s;
    change({ban("192.0.2.9")}, *updater);
    EXPECT_EQ(updater->state().failures, 1U); // the file has changed
    now += 1s;
    change({ban("192.0.2.10")}, *updater);
    EXPECT_EQ(updater->state().failures, 1U);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
}

// Nobody looks again and again whether a list has been read, or a filter built.
TEST_F(MergedSourcesTest, WhatEndsOnAnotherThreadWakesTheSet) {
    std::atomic<bool> held_up = false;
    sandbox.run = [&](const ChildOrder& child) {
        held_up.wait(true);
        return test::work_in_process(child);
    };
    write_list({"192.0.2.2"});
    const auto updater = open_in_force();
    const auto expect_to_be_woken = [&](const std::string& what) {
        held_up = true;
        const int before = step_soon;
        for (int i = 0; i < 2; i++) EXPECT_GT(updater->step(), now + 1s) << what;
        EXPECT_TRUE(updater->state().at_work) << what;
        EXPECT_EQ(step_soon, before) << what;
        held_up = false;
        held_up.notify_all();
        step_soon.wait(before);
        updater->step();
        EXPECT_FALSE(updater->state().at_work) << what;
    };
    write_list({"192.0.2.1", "192.0.2.2"});
    updater->wake();
    expect_to_be_woken("a list");
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    std::filesystem::remove(file_of("block", ".sieve"));
    updater->reconcile_soon();
    events.clear();
    expect_to_be_woken("a filter");
    EXPECT_NE(last(LiveEvent::What::rebuilt), nullptr);
}

TEST_F(MergedSourcesTest, GuardsLookAtThePartThatASourceSays) {
    change({ban("192.0.2.200")}, *open_in_force());
    write_list(test::addresses(5000)); // beside one ban: no growth of anything
    const auto updater = open(merged);
    settle(*updater);
    EXPECT_EQ(updater->state().entries, 5001U);
    std::vector<BanChange> many;
    for (int i = 0; i < 4000; i++)
        many.push_back(ban("10.9." + std::to_string(i / 250) + "." + std::to_string(i % 250)));
    change(many, *updater);
    // 6,501 of 9,001 entries would be left, and half of the list.
    std::vector<std::string> few = test::addresses(5000);
    few.resize(2400);
    list(few, *updater);
    EXPECT_EQ(updater->state().entries, 9001U);
    EXPECT_FALSE(updater->state().in_step);
    EXPECT_NE(updater->state().accept, "");
    ASSERT_NE(last(LiveEvent::What::failed), nullptr);
    EXPECT_EQ(last(LiveEvent::What::failed)->guard, Guard::shrink);
    // Bans go on, and a person may accept the list.
    change({ban("192.0.2.201")}, *updater);
    EXPECT_TRUE(in_force_has("192.0.2.201"));
    auto refused = read_refusal(state.path(), "block");
    ASSERT_TRUE(refused);
    refused->accepted = true;
    ASSERT_TRUE(write_refusal(state.path(), "block", *refused));
    updater->wake();
    settle(*updater);
    EXPECT_EQ(updater->state().entries, 6402U);
    EXPECT_TRUE(updater->state().in_step);
}

// A list that was cut short lost some addresses and all of its prefixes.
TEST_F(MergedSourcesTest, NeitherHalfOfAListIsTakenIfOneIsRefused) {
    std::vector<std::string> lines = test::addresses(300);
    for (int i = 0; i < 100; i++) lines.push_back("198.18." + std::to_string(i) + ".0/24");
    write_list(lines);
    const auto updater = open_in_force();
    EXPECT_EQ(updater->state().ranges, 100U);
    const auto addresses = updater->state().entries;
    lines.resize(200);
    list(lines, *updater);
    EXPECT_FALSE(updater->state().in_step);
    EXPECT_EQ(updater->state().ranges, 100U);
    EXPECT_EQ(updater->state().entries, addresses);
    auto refused = read_refusal(state.path(), "block-ranges");
    ASSERT_TRUE(refused);
    refused->accepted = true;
    ASSERT_TRUE(write_refusal(state.path(), "block-ranges", *refused));
    updater->wake();
    settle(*updater);
    EXPECT_TRUE(updater->state().in_step);
    EXPECT_EQ(updater->state().ranges, 0U);
    EXPECT_EQ(updater->state().entries, 200U);
    EXPECT_FALSE(read_refusal(state.path(), "block-ranges")) << "it was used up";
    ASSERT_TRUE(write_refusal(state.path(), "block-ranges", *refused)); // once more, and too late
    lines.emplace_back("198.18.0.0/24");
    list(lines, *updater);
    EXPECT_EQ(updater->state().ranges, 1U);
    EXPECT_FALSE(read_refusal(state.path(), "block-ranges")) << "it is void";
}

// What a person could accept is what is wrong now.
TEST_F(MergedSourcesTest, ARefusalIsOverOnceAnotherListIsTaken) {
    write_list(test::addresses(200));
    const auto updater = open_in_force();
    list({"192.0.2.1"}, *updater);
    EXPECT_NE(updater->state().accept, "");
    list(test::addresses(200), *updater);
    EXPECT_TRUE(updater->state().in_step);
    std::filesystem::remove(path);
    updater->wake();
    settle(*updater);
    EXPECT_FALSE(updater->state().in_step);
    EXPECT_EQ(updater->state().accept, "");
    EXPECT_NE(updater->state().last_error.find(path), std::string::npos) << updater->state().last_error;
    // A list that cannot be read is no list that a person could accept.
    list({"192.0.2.1"}, *updater);
    EXPECT_NE(updater->state().accept, "");
    list({"nonsense"}, *updater);
    EXPECT_EQ(updater->state().accept, "");
}

TEST_F(MergedSourcesTest, AnEmptyListIsRefusedUnlessTheSetMayBeEmpty) {
    write_list({"192.0.2.1", "198.51.100.0/24"});
    {
        const auto updater = open_in_force();
        list({"# nothing"}, *updater);
        EXPECT_TRUE(in_force_has("192.0.2.1"));
        ASSERT_NE(last(LiveEvent::What::failed), nullptr);
        EXPECT_EQ(last(LiveEvent::What::failed)->guard, Guard::empty);
        const std::string why = last(LiveEvent::What::failed)->error->message;
        EXPECT_EQ(why.find("bans"), std::string::npos) << why;
        list({"198.51.100.0/24"}, *updater); // no address is no empty list
        EXPECT_FALSE(in_force_has("192.0.2.1"));
        EXPECT_EQ(updater->state().ranges, 1U);
    }
    merged.empty = true;
    const auto updater = open(merged);
    settle(*updater);
    list({}, *updater);
    EXPECT_EQ(updater->state().ranges, 0U);
    EXPECT_TRUE(updater->state().in_step);
}

// Which may answer between the person and the list.
TEST_F(MergedSourcesTest, WhatAnApiSaysLeavesTheAcceptanceOfAListAlone) {
    merged.sources = stream_set().sources;
    merged.sources.emplace_back(FileSpec{path});
    write_list({"192.0.2.1"});
    answer = Decisions{.added = {entry("192.0.2.3", entry_id(1, 1), now + 1h)}, .origins = {"CAPI"}};
    const auto updater = open_in_force();
    list({"# nothing"}, *updater);
    auto refused = read_refusal(state.path(), "block");
    ASSERT_TRUE(refused);
    refused->accepted = true;
    ASSERT_TRUE(write_refusal(state.path(), "block", *refused));
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    answer = Decisions{.added = {entry("192.0.2.4", entry_id(2, 1), now + 1h)}, .origins = {"CAPI"}};
    now += 10s;
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.4"));
    now += 1min;
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.1"));
    EXPECT_FALSE(read_refusal(state.path(), "block"));
}

// Nothing that is in force is of a set that comes to a table that runs already.
TEST_F(MergedSourcesTest, ANewSetIsInForceBeforeAllItsSourcesHaveAnswered) {
    put_in_force_table("other");
    const auto updater = open(merged); // the list is not there
    EXPECT_TRUE(state.named("block"));
    EXPECT_TRUE(state.named("block-ranges"));
    put_in_force();
    put_in_force("block-ranges");
    change({ban("192.0.2.1"), ban("198.51.100.0/24")}, *updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_EQ(updater->state().ranges, 1U);
    EXPECT_EQ(updater->state().lacks, "");
}

// Who gave a ban is told what it waits for.
TEST_F(MergedSourcesTest, ABanOfASetWhoseListWasLostSaysWhy) {
    put_in_force_table("block");
    const auto updater = open(merged);
    change({ban("192.0.2.1")}, *updater);
    expect_says(updater->state().lacks);
}

// A file that comes to a folder while a slow server is asked.
TEST_F(MergedSourcesTest, WhatChangesWhileListsAreReadIsReadNext) {
    const std::string folder = files.path("folder");
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/a") << "192.0.2.1\n";
    merged.sources.back() = FolderSpec{folder + "/"};
    enum class Server : std::uint8_t { answers, is_slow, is_asked };
    std::atomic<Server> server = Server::answers;
    sandbox.run = [&](const ChildOrder& order) {
        if (server == Server::is_slow) server = Server::is_asked;
        while (server != Server::answers) std::this_thread::sleep_for(1ms);
        return test::work_in_process(order);
    };
    const auto updater = open_in_force();
    updater->reconcile_soon();
    settle(*updater);
    ASSERT_TRUE(in_force_has("192.0.2.1"));
    server = Server::is_slow;
    std::ofstream(folder + "/a", std::ios::app) << "192.0.2.3\n";
    updater->wake();
    while (server != Server::is_asked) updater->step();
    std::ofstream(folder + "/b") << "192.0.2.2\n";
    updater->wake();
    updater->step();
    server = Server::answers;
    while (!in_force_has("192.0.2.3")) updater->step();
    EXPECT_FALSE(in_force_has("192.0.2.2"));
    now += 2s;
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.2"));
}

// Besides bans and a file, the set has a command, which may fail.
class FailingSourceTest : public MergedSourcesTest {
  protected:
    std::optional<std::string> printed; // by the command; nothing: it fails

    FailingSourceTest() {
        merged.sources.emplace_back(CommandSpec{.arguments = {"get"}});
        sandbox.run = [this](const ChildOrder& child) -> Result<ChildEnd> {
            if (child.role != ChildRole::command) return test::work_in_process(child);
            const auto order = read_order(child.message);
            const bool fails = !printed || std::get<CommandOrder>(order->order).arguments.back() == "never";
            ChildEnd end;
            if (fails) end.number = 1;
            if (!fails && child.output(*printed) != 0) return bad_input("not written");
            return end;
        };
        write_list({"192.0.2.1"});
    }
    void prints(std::optional<std::string> text, LiveUpdater& updater) {
        printed = std::move(text);
        ask_all(updater);
    }
    void rebuild(LiveUpdater& updater) {
        std::filesystem::remove(file_of("block", ".sieve"));
        events.clear();
        updater.reconcile_soon();
        settle(updater);
        EXPECT_NE(last(LiveEvent::What::rebuilt), nullptr);
    }
    // Another process goes on, as after a reload.
    std::unique_ptr<LiveUpdater> open_again() {
        auto updater = open(merged);
        settle(*updater);
        return updater;
    }
    void ask_all(LiveUpdater& updater) {
        now += 2h;
        settle(updater);
    }
    std::vector<std::filesystem::path> contents() {
        std::vector<std::filesystem::path> all;
        for (const auto& entry : std::filesystem::directory_iterator(files.path("state/sets/block")))
            if (entry.path().filename().string().starts_with("beside.source-")) all.push_back(entry.path());
        return all;
    }
    void expect_in_force(const std::vector<std::string>& lines, const std::string& when) {
        std::vector<std::string> found;
        for (int i = 1; i < 10; i++)
            if (const std::string address = "192.0.2." + std::to_string(i); in_force_has(address))
                found.push_back(address);
        EXPECT_EQ(found, lines) << when;
    }
};

TEST_F(FailingSourceTest, OneThatHasNeverAnsweredIsDoneWithout) {
    {
        const auto updater = open_in_force();
        updater->reconcile_soon();
        settle(*updater);
        expect_in_force({"192.0.2.1"}, "the first list");
        EXPECT_FALSE(updater->state().in_step);
        EXPECT_GT(updater->state().failures, 0U);
        expect_says(updater->state().last_error);
        EXPECT_EQ(failures_told(), 1U);
        list({"192.0.2.2", "198.51.100.0/24"}, *updater);
        expect_in_force({"192.0.2.2"}, "a change of the file");
        EXPECT_EQ(updater->state().ranges, 1U);
        EXPECT_EQ(failures_told(), 1U);
    }
    const auto updater = open_again();
    list({"192.0.2.3"}, *updater);
    expect_in_force({"192.0.2.3"}, "after a restart");
    // However long its first answer is.
    std::string text = "192.0.2.4\n";
    for (const std::string& address : test::addresses(20'000)) text += address + '\n';
    for (int i = 0; i < 200; i++) text += "10." + std::to_string(i) + ".0.0/24\n";
    prints(text, *updater);
    expect_in_force({"192.0.2.3", "192.0.2.4"}, "it answers");
    EXPECT_EQ(updater->state().ranges, 200U);
    EXPECT_TRUE(updater->state().in_step);
}

TEST_F(FailingSourceTest, WhatOneSaidLastStays) {
    printed = "192.0.2.5\n192.0.2.6\n";
    {
        const auto updater = open_in_force();
        EXPECT_TRUE(updater->state().in_step);
        prints(std::nullopt, *updater);
        EXPECT_FALSE(updater->state().in_step);
        list({"192.0.2.2"}, *updater);
        expect_in_force({"192.0.2.2", "192.0.2.5", "192.0.2.6"}, "it fails");
        EXPECT_EQ(failures_told(), 1U);
        EXPECT_TRUE(last(LiveEvent::What::failed)->others_go_on);
        // A new image changes nothing about that.
        rebuild(*updater);
        list({"192.0.2.3"}, *updater);
        expect_in_force({"192.0.2.3", "192.0.2.5", "192.0.2.6"}, "after a rebuild");
    }
    const auto updater = open_again();
    list({"192.0.2.4"}, *updater);
    expect_in_force({"192.0.2.4", "192.0.2.5", "192.0.2.6"}, "after a restart");
    prints("<html>we are down</html>\n", *updater);
    list({"192.0.2.3"}, *updater);
    expect_in_force({"192.0.2.3", "192.0.2.5", "192.0.2.6"}, "it hands over no list");
    prints("192.0.2.6\n192.0.2.7\n", *updater);
    expect_in_force({"192.0.2.3", "192.0.2.6", "192.0.2.7"}, "it answers");
    EXPECT_TRUE(updater->state().in_step);
    EXPECT_EQ(contents().size(), 2U) << "what the record had stays until the next visit";
    list({"192.0.2.8"}, *updater);
    EXPECT_EQ(contents().size(), 1U);
}

// The list is that of the new sources all the same.
TEST_F(FailingSourceTest, TheRecordNamesOneThatFails) {
    printed = "192.0.2.5\n";
    { const auto updater = open_in_force(); }
    merged.sources[1] = FileSpec{files.feed("other.txt", {"192.0.2.2"})};
    printed.reset();
    const auto updater = open_again();
    expect_in_force({"192.0.2.2", "192.0.2.5"}, "another file");
    EXPECT_FALSE(updater->state().in_step);
    EXPECT_FALSE(identities_of(state.named("block")->sources).contains(path));
}

// What a guard refuses is not what it said last.
TEST_F(FailingSourceTest, AListThatWasRefusedIsNotKept) {
    printed = "192.0.2.5\n";
    for (const std::string& address : test::addresses(200)) *printed += address + '\n';
    const auto updater = open_in_force();
    prints("192.0.2.6\n", *updater);
    EXPECT_NE(updater->state().accept, "");
    rebuild(*updater);
    prints(std::nullopt, *updater);
    list({"192.0.2.2"}, *updater);
    expect_in_force({"192.0.2.2", "192.0.2.5"}, "it fails");
}

TEST_F(FailingSourceTest, NoMemberIsLostToOneOfWhichNothingIsKept) {
    printed = "192.0.2.5\n";
    { const auto updater = open_in_force(); }
    printed.reset();
    const auto expect_no_change = [&](const std::string& when) {
        const auto updater = open_again();
        list({"192.0.2.2"}, *updater);
        list({"192.0.2.3"}, *updater);
        expect_in_force({"192.0.2.1", "192.0.2.5"}, when);
        EXPECT_FALSE(updater->state().in_step) << when;
    };
    const std::vector<SourceSpec> before = std::exchange(
        merged.sources, {merged.sources[0], merged.sources[1], CommandSpec{.arguments = {"get", "another"}}});
    expect_no_change("one took the place of another");
    merged.sources = before;
    const SetRecord record = *state.named("block");
    SetRecord older = record;
    older.beside.clear();
    ASSERT_TRUE(state.commit("block", older));
    expect_no_change("an older version did not note what it said");
    ASSERT_TRUE(state.commit("block", record));
    for (const std::filesystem::path& content : contents()) std::filesystem::remove(content);
    expect_no_change("what it said is gone");
    std::ofstream(file_of("block", ".list")) << "damaged";
    expect_no_change("the list was lost");
}

TEST_F(FailingSourceTest, ASetThatLetsPassWaitsForEachSource) {
    printed = "192.0.2.5\n";
    merged.action = control::WantedAction{SIEVE_ACTION_PASS};
    { const auto updater = open_in_force(); }
    merged.sources.emplace_back(CommandSpec{.arguments = {"never"}});
    {
        const auto updater = open_again();
        list({"192.0.2.2"}, *updater);
        expect_in_force({"192.0.2.1", "192.0.2.5"}, "it lets pass");
    }
    merged.action.reset();
    const auto updater = open_again();
    expect_in_force({"192.0.2.2", "192.0.2.5"}, "it drops");
}

// An image of what one source says would lack what the other says.
TEST_F(MergedSourcesTest, AListThatWasLostWaitsForAllSources) {
    write_list({"192.0.2.1", "198.51.100.0/24"});
    {
        const auto updater = open_in_force();
        change({ban("192.0.2.2")}, *updater);
    }
    std::ofstream(file_of("block", ".list")) << "damaged";
    std::ofstream(file_of("block-ranges", ".list")) << "damaged";
    std::filesystem::remove(path);
    const std::string identity = identity_in_force();
    const std::uint32_t ranges = map_id("block-ranges");
    const auto updater = open(merged);
    settle(*updater);
    EXPECT_EQ(identity_in_force(), identity);
    EXPECT_EQ(map_id("block-ranges"), ranges);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    list({"192.0.2.1", "198.51.100.0/24"}, *updater);
    EXPECT_NE(identity_in_force(), identity);
    for (const char* address : {"192.0.2.1", "192.0.2.2"}) EXPECT_TRUE(in_force_has(address)) << address;
    EXPECT_EQ(updater->state().ranges, 1U);
    EXPECT_TRUE(updater->state().in_step);
}

TEST_F(MergedSourcesTest, WhatASourceSaidGoesOnceItIsNoneAndAllOthersHaveSpoken) {
    write_list({"192.0.2.1", "198.51.100.0/24"});
    {
        const auto updater = open_in_force();
        change({ban("192.0.2.2")}, *updater);
    }
    const std::string other = files.path("other.txt");
    merged.sources.back() = FileSpec{other};
    {
        const auto updater = open(merged);
        settle(*updater);
        EXPECT_TRUE(in_force_has("192.0.2.1")); // nobody knows the other list
        std::ofstream(other) << "192.0.2.3\n";
        updater->wake();
        settle(*updater);
        EXPECT_FALSE(in_force_has("192.0.2.1"));
        EXPECT_TRUE(in_force_has("192.0.2.3"));
        EXPECT_EQ(updater->state().ranges, 0U);
    }
    merged.sources.front() = stream_set().sources.front();
    answer.reset();
    {
        const auto updater = open(merged);
        settle(*updater);
        EXPECT_TRUE(in_force_has("192.0.2.2")); // the list has spoken, and the API has not
        answer = Decisions{};
        now += 1min;
        settle(*updater);
        EXPECT_FALSE(in_force_has("192.0.2.2"));
        EXPECT_TRUE(in_force_has("192.0.2.3"));
    }
    const auto updater = open(ban_set());
    settle(*updater);
    EXPECT_FALSE(in_force_has("192.0.2.3"));
    EXPECT_TRUE(in_force_has("192.0.2.2"));
}

// Its entries do not say of which part they are.
TEST_F(MergedSourcesTest, TheListOfAnOlderVersionIsTakenOver) {
    ASSERT_TRUE(ledger.append({ban("192.0.2.1")}));
    {
        auto older = LiveSet::open({ban_set()}, kernel, state, observer);
        ASSERT_TRUE(older);
        ASSERT_TRUE(older->change(Part::followed, {{}, {entry("192.0.2.1"), entry("192.0.2.2")}}));
        put_in_force_after(*older);
    }
    write_list({"192.0.2.5"});
    const auto updater = open(merged);
    settle(*updater);
    EXPECT_TRUE(in_force_has("192.0.2.1"));
    EXPECT_FALSE(in_force_has("192.0.2.2")); // of no ban
    EXPECT_TRUE(in_force_has("192.0.2.5"));
    EXPECT_TRUE(updater->is_banned(test::prefix_of("192.0.2.1")));
    EXPECT_FALSE(updater->is_banned(test::prefix_of("192.0.2.5"))); // it is on the list all the same
    EXPECT_EQ(updater->state().timed_entries, 2U);
}

} // namespace
} // namespace sieve::service::live
