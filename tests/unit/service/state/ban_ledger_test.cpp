// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state/ban_ledger.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>

#include "unit/messages.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service {
namespace {

using live::BanChange;
using live::Bans;
using live::BanStep;
using test::at_second;
using test::prefix_of;

class BanLedgerTest : public testing::Test {
  protected:
    test::Files files;
    const std::string state = files.path("state");
    const std::string path = ban_ledger_path(state, "block");
    BanLedger ledger{state, "block"};

    void SetUp() override { std::filesystem::create_directory(state); }

    static BanChange added(const std::string& address, live::Time until = live::never,
                           const std::string& reason = "why") {
        return {.prefix = prefix_of(address),
                .ban = {.since = at_second(1), .until = until, .reason = reason}};
    }
    static BanChange removed(const std::string& address) {
        return {.step = BanStep::remove, .prefix = prefix_of(address)};
    }
    // As another process reads it.
    [[nodiscard]] std::vector<std::string> banned(live::Time now = at_second(10)) const {
        auto bans = BanLedger(state, "block").bans(now);
        if (!bans) return {bans.error().message};
        std::vector<std::string> texts;
        for (const auto& [prefix, ban] : *bans) texts.push_back(live::prefix_text(prefix));
        std::sort(texts.begin(), texts.end());
        return texts;
    }
    [[nodiscard]] std::string bytes() const {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void write(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }
    // What comes with the next read, as texts.
    std::vector<std::string> news(BanLedger& reader, bool* all = nullptr) {
        std::vector<std::string> texts;
        const auto read = reader.read([&](BanChange&& change) {
            texts.push_back((change.step == BanStep::add      ? "+"
                             : change.step == BanStep::remove ? "-"
                                                              : "flush ") +
                            live::prefix_text(change.prefix));
        });
        if (!read) return {read.error().message};
        if (all != nullptr) *all = *read;
        return texts;
    }
};

using Texts = std::vector<std::string>;

TEST_F(BanLedgerTest, KeepsBans) {
    EXPECT_EQ(banned(), Texts());
    ASSERT_TRUE(
        ledger.append({added("192.0.2.1"), added("192.0.2.2", at_second(5)), added("198.51.100.0/24")}));
    EXPECT_EQ(banned(at_second(4)), (Texts{"192.0.2.1", "192.0.2.2", "198.51.100.0/24"}));
    EXPECT_EQ(banned(at_second(5)), (Texts{"192.0.2.1", "198.51.100.0/24"}));
    ASSERT_TRUE(ledger.append({removed("192.0.2.1"), added("2001:db8::1")}));
    EXPECT_EQ(banned(), (Texts{"198.51.100.0/24", "2001:db8::1"}));
    ASSERT_TRUE(ledger.append({{.step = BanStep::flush}, added("192.0.2.7")}));
    EXPECT_EQ(banned(), Texts{"192.0.2.7"});
    EXPECT_EQ(BanLedger(state, "other").bans(at_second(1))->size(), 0U);
}

// Anybody could lift all bans.
TEST_F(BanLedgerTest, SaysNothingWhereOthersMayWrite) {
    ASSERT_TRUE(ledger.append({added("192.0.2.1")}));
    std::filesystem::permissions(state, std::filesystem::perms::all);
    std::filesystem::remove(path);
    const auto read = BanLedger(state, "block").bans(at_second(1));
    ASSERT_FALSE(read);
    expect_error(read.error(), ErrorKind::bad_input);
    const Status appended = ledger.append({added("192.0.2.2")});
    ASSERT_FALSE(appended);
    expect_error(appended.error(), ErrorKind::bad_input);
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(BanLedgerTest, TellsWhatCameSince) {
    BanLedger reader(state, "block");
    bool all = false;
    EXPECT_EQ(news(reader, &all), Texts());
    EXPECT_TRUE(all);
    ASSERT_TRUE(ledger.append({added("192.0.2.1")}));
    EXPECT_EQ(news(reader, &all), Texts{"+192.0.2.1"});
    EXPECT_TRUE(all);
    // Another process writes as well.
    ASSERT_TRUE(BanLedger(state, "block").append({added("192.0.2.2"), removed("192.0.2.1")}));
    ASSERT_TRUE(ledger.append({added("192.0.2.3")}));
    EXPECT_FALSE(reader.mark().has(ledger.mark(), {}));
    EXPECT_EQ(news(reader, &all), (Texts{"+192.0.2.2", "-192.0.2.1", "+192.0.2.3"}));
    EXPECT_FALSE(all);
    EXPECT_TRUE(reader.mark().has(ledger.mark(), {}));
    EXPECT_EQ(news(reader), Texts());
    // The file is gone: what it had is no more.
    std::filesystem::remove(path);
    EXPECT_EQ(news(reader, &all), Texts());
    EXPECT_TRUE(all);
}

// Wherever a crash cuts: what was answered before is there, and what comes afterwards, too.
TEST_F(BanLedgerTest, DropsATornEnd) {
    ASSERT_TRUE(ledger.append({added("192.0.2.1")}));
    const std::size_t whole = bytes().size();
    ASSERT_TRUE(ledger.append({added("192.0.2.2")}));
    const std::string text = bytes();
    for (std::size_t cut = whole; cut < text.size(); cut++) {
        write(text.substr(0, cut));
        EXPECT_EQ(banned(), Texts{"192.0.2.1"}) << cut;
        ASSERT_TRUE(BanLedger(state, "block").append({added("192.0.2.3")})) << cut;
        EXPECT_EQ(banned(), (Texts{"192.0.2.1", "192.0.2.3"})) << cut;
    }
}

TEST_F(BanLedgerTest, SaysThatItIsDamaged) {
    for (const char* address : {"192.0.2.1", "192.0.2.2", "192.0.2.3"})
        ASSERT_TRUE(ledger.append({added(address)}));
    const std::string whole = bytes();
    // The first record's length, its address and its checksum.
    for (const std::size_t at : {33U, 60U, 18U}) {
        std::string text = whole;
        text[at] = static_cast<char>(text[at] ^ 1);
        write(text);
        ASSERT_EQ(banned().size(), 1U) << at;
        expect_says(banned()[0]);
        expect_error(BanLedger(state, "block").append({added("192.0.2.4")}), ErrorKind::bad_input);
        EXPECT_EQ(bytes(), text); // nothing is lost
    }
    write("");
    expect_says(banned().at(0));
    write("something else that is long enough");
    expect_says(banned().at(0));
}

// It was acknowledged, and whether another one follows it says nothing of that.
TEST_F(BanLedgerTest, ADamagedLastRecordIsNotTakenForACutOffOne) {
    ASSERT_TRUE(ledger.append({added("192.0.2.1"), added("192.0.2.2"), added("198.51.100.0/24")}));
    const std::string whole = bytes();
    const std::size_t head = std::string("xdp-sieve bans 1\n").size();
    for (std::size_t at = head; at < whole.size(); at++)
        for (const int bit : {0x01, 0x80}) {
            std::string text = whole;
            text[at] = static_cast<char>(text[at] ^ bit);
            write(text);
            BanLedger other(state, "block");
            expect_error(other.bans(at_second(10)), ErrorKind::bad_input);
            expect_error(other.append({added("192.0.2.4")}), ErrorKind::bad_input);
            EXPECT_EQ(bytes(), text) << at;
        }
}

// The machine failed after the file had grown, and before what it grew by was on the disk.
TEST_F(BanLedgerTest, AnEndOfZeroBytesIsACutOffRecord) {
    ASSERT_TRUE(ledger.append({added("192.0.2.1")}));
    const std::string whole = bytes();
    for (const std::size_t zeros : {1U, 31U, 32U, 200U, 4096U}) {
        write(whole + std::string(zeros, '\0'));
        EXPECT_EQ(banned(), Texts{"192.0.2.1"}) << zeros;
        ASSERT_TRUE(BanLedger(state, "block").append({added("192.0.2.2")})) << zeros;
        EXPECT_EQ(banned(), (Texts{"192.0.2.1", "192.0.2.2"})) << zeros;
    }
}

// A cut-off record begins as the next one does.
TEST_F(BanLedgerTest, AnEndThatNoRecordBeginsWithIsDamage) {
    ASSERT_TRUE(ledger.append({added("192.0.2.1")}));
    const std::size_t last = bytes().size();
    ASSERT_TRUE(ledger.append({added("192.0.2.2")}));
    std::string cut = bytes();
    cut.resize(cut.size() - 8);
    for (const std::size_t at : {8U, 16U, 28U}) { // its number, its length, what is always zero
        std::string text = cut;
        text[last + at] = static_cast<char>(text[last + at] ^ 1);
        write(text);
        expect_error(BanLedger(state, "block").bans(at_second(10)), ErrorKind::bad_input);
    }
}

// Only a ledger that is not there has no bans.
TEST_F(BanLedgerTest, WhatCannotBeLookedAtIsAnError) {
    ASSERT_TRUE(ledger.append({added("192.0.2.1")}));
    std::filesystem::rename(path, path + ".old");
    std::filesystem::create_symlink(path + ".gone", path);
    expect_error(BanLedger(state, "block").bans(at_second(10)), ErrorKind::bad_input);
    std::filesystem::remove_all(ban_folder(state));
    EXPECT_EQ(banned(), Texts());
    std::ofstream{ban_folder(state)};
    expect_error(BanLedger(state, "block").bans(at_second(10)), ErrorKind::kernel_refused);
    expect_error(BanLedger(state, "block").append({added("192.0.2.2")}), ErrorKind::kernel_refused);
    std::filesystem::remove(ban_folder(state));
    std::filesystem::create_directory_symlink(state + "/gone", ban_folder(state));
    expect_error(BanLedger(state, "block").bans(at_second(10)), ErrorKind::kernel_refused);
}

TEST_F(BanLedgerTest, IsAsBeforeWhenTheDiskIsFull) {
    ASSERT_TRUE(ledger.append({added("192.0.2.1")}));
    const std::string before = bytes();
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlimit small{before.size() + 30, limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const Status appended = ledger.append({added("192.0.2.2")});
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    expect_error(appended, ErrorKind::kernel_refused);
    EXPECT_EQ(bytes(), before);
    ASSERT_TRUE(ledger.append({added("192.0.2.3")}));
    EXPECT_EQ(banned(), (Texts{"192.0.2.1", "192.0.2.3"}));
}

TEST_F(BanLedgerTest, ForgetsThePast) {
    const std::string reason(200, 'r');
    for (int round = 0; round < 2000; round++)
        ASSERT_TRUE(ledger.append({added("192.0.2.1", live::never, reason), removed("192.0.2.2")}));
    BanLedger reader(state, "block");
    ASSERT_EQ(news(reader).size(), 4000U);
    const std::size_t before = bytes().size();
    ASSERT_GT(before, std::size_t{256} << 10);
    ASSERT_TRUE(BanLedger(state, "block").tidy(at_second(10)));
    EXPECT_LT(bytes().size(), 1000U);
    EXPECT_EQ(banned(), Texts{"192.0.2.1"});
    // Who wrote and who read the old file go on with the new one.
    bool all = false;
    EXPECT_EQ(news(reader, &all), Texts{"+192.0.2.1"});
    EXPECT_TRUE(all);
    ASSERT_TRUE(ledger.append({added("192.0.2.9")}));
    EXPECT_EQ(banned(), (Texts{"192.0.2.1", "192.0.2.9"}));
    EXPECT_EQ(news(reader, &all), Texts{"+192.0.2.9"});
    EXPECT_FALSE(all);
    // It is small now.
    const std::string small = bytes();
    ASSERT_TRUE(BanLedger(state, "block").tidy(at_second(10)));
    EXPECT_EQ(bytes(), small);
}

// A set has read the ledger up to a mark, and somebody writes the ledger anew before the next change.
TEST_F(BanLedgerTest, AFileThatWasReplacedHasNoLaterChange) {
    const std::vector<BanChange> many(2000, added("192.0.2.1", live::never, std::string(200, 'r')));
    ASSERT_TRUE(ledger.append(many));
    BanLedger set(state, "block");
    (void)news(set);
    const BanLedger::Mark before = set.mark();
    ASSERT_TRUE(BanLedger(state, "block").tidy(at_second(10)));
    ASSERT_TRUE(ledger.append({added("192.0.2.3")}));
    const BanLedger::Mark change = ledger.mark();
    ASSERT_NE(change.file, before.file);
    EXPECT_FALSE(before.has(change, before));
    EXPECT_EQ(news(set), (Texts{"+192.0.2.1", "+192.0.2.3"}));
    EXPECT_TRUE(set.mark().has(change, before));
    // It is written anew once more, with the change.
    ASSERT_TRUE(ledger.append(many));
    ASSERT_TRUE(BanLedger(state, "block").tidy(at_second(10)));
    (void)news(set);
    ASSERT_NE(set.mark().file, change.file);
    EXPECT_TRUE(set.mark().has(change, change));
}

TEST_F(BanLedgerTest, TakesOverThatOfAnotherName) {
    BanLedger before(state, "before");
    ASSERT_TRUE(before.append({added("192.0.2.1")}));
    ASSERT_TRUE(ledger.take_over("before", at_second(10)));
    EXPECT_EQ(banned(), std::vector<std::string>{"192.0.2.1"});
    EXPECT_FALSE(std::filesystem::exists(ban_ledger_path(state, "before")));
    ASSERT_TRUE(ledger.take_over("nobody", at_second(10)));
    // It has bans of its own.
    ASSERT_TRUE(BanLedger(state, "other").append({added("192.0.2.2")}));
    expect_error(ledger.take_over("other", at_second(10)), ErrorKind::kernel_refused);
    EXPECT_EQ(banned(), std::vector<std::string>{"192.0.2.1"});
    EXPECT_TRUE(std::filesystem::exists(ban_ledger_path(state, "other")));
}

// Somebody stopped a process that has the lock. Set after set would wait for it, and the daemon with them.
TEST_F(BanLedgerTest, WaitsForNobodyForEver) {
    const std::vector<BanChange> many(2000, added("192.0.2.1", live::never, std::string(200, 'r')));
    ASSERT_TRUE(ledger.append(many));
    ASSERT_TRUE(BanLedger(state, "other").append({added("192.0.2.2")}));
    const std::string before = bytes();
    const UniqueFd folder(::open(ban_folder(state).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::flock(folder.get(), LOCK_EX), 0);
    BanLedger hurried(state, "block", std::chrono::milliseconds(0));
    expect_error(hurried.append({added("192.0.2.3")}), ErrorKind::busy);
    expect_error(hurried.tidy(at_second(10)), ErrorKind::busy);
    expect_error(BanLedger(state, "new", std::chrono::milliseconds(0)).take_over("other", at_second(10)),
                 ErrorKind::busy);
    EXPECT_EQ(bytes(), before);
    EXPECT_EQ(banned(), Texts{"192.0.2.1"}) << "reading needs no lock";
    ASSERT_EQ(::flock(folder.get(), LOCK_UN), 0);
    ASSERT_TRUE(hurried.append({added("192.0.2.3")}));
    EXPECT_EQ(banned(), (Texts{"192.0.2.1", "192.0.2.3"}));
}

TEST_F(BanLedgerTest, OneWithoutBansGivesWayToThatOfAnotherName) {
    BanLedger before(state, "before");
    ASSERT_TRUE(before.append({added("192.0.2.1")}));
    ASSERT_TRUE(ledger.append({added("192.0.2.7"), added("192.0.2.8", at_second(5))}));
    ASSERT_TRUE(ledger.append({removed("192.0.2.7")}));
    BanLedger reader(state, "block");
    EXPECT_EQ(news(reader).size(), 3U);
    expect_error(ledger.take_over("before", at_second(4)), ErrorKind::kernel_refused);
    ASSERT_TRUE(ledger.take_over("before", at_second(5)));
    EXPECT_EQ(banned(), Texts{"192.0.2.1"});
    EXPECT_FALSE(std::filesystem::exists(ban_ledger_path(state, "before")));
    // Who read or wrote the old file goes on with the new one.
    bool all = false;
    EXPECT_EQ(news(reader, &all), Texts{"+192.0.2.1"});
    EXPECT_TRUE(all);
    ASSERT_TRUE(ledger.append({added("192.0.2.9")}));
    EXPECT_EQ(banned(), (Texts{"192.0.2.1", "192.0.2.9"}));
}

// Nobody knows what it has.
TEST_F(BanLedgerTest, ADamagedOneGivesWayToNone) {
    ASSERT_TRUE(BanLedger(state, "before").append({added("192.0.2.1")}));
    ASSERT_TRUE(ledger.append({added("192.0.2.7")}));
    write("");
    expect_error(ledger.take_over("before", at_second(10)), ErrorKind::bad_input);
    EXPECT_EQ(bytes(), "");
    EXPECT_TRUE(std::filesystem::exists(ban_ledger_path(state, "before")));
}

TEST_F(BanLedgerTest, TakesManyWritersAtOnce) {
    constexpr int writers = 4, each = 50;
    std::vector<std::thread> threads;
    for (int writer = 0; writer < writers; writer++)
        threads.emplace_back([&, writer] {
            BanLedger own(state, "block");
            for (int i = 0; i < each; i++)
                EXPECT_TRUE(own.append({added("192.0." + std::to_string(writer) + "." + std::to_string(i))}));
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(banned().size(), static_cast<std::size_t>(writers * each));
}

} // namespace
} // namespace sieve::service
