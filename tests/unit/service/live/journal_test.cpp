// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/journal.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "unit/messages.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service::live {
namespace {

using test::at_second;
using test::entry;

class JournalTest : public testing::Test {
  protected:
    test::Files files;
    const std::string path = files.path("journal");
    const EntryChange first{{entry("192.0.2.1", 1)},
                            {entry("192.0.2.2", 2, at_second(5)), entry("2001:db8::/32", 3)}};
    const EntryChange second{{}, {entry("192.0.2.3", 4)}};
    const EntryChange third{{entry("192.0.2.3", 4)}, {}};

    std::string bytes() const {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void write(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }
    Journal::Content read() const {
        Journal::Content content;
        const auto journal = Journal::open(path, content);
        if (!journal) throw std::runtime_error(journal.error().message);
        return content;
    }
    static void expect_same(const EntryChange& a, const EntryChange& b) {
        EXPECT_EQ(a.removed, b.removed);
        EXPECT_EQ(a.added, b.added);
    }
};

// As after a file system was damaged. There is not so much memory.
TEST_F(JournalTest, RefusesAFileThatIsLongerThanAnyJournal) {
    ASSERT_TRUE(Journal::create(path, {first}));
    std::filesystem::resize_file(path, std::uintmax_t{900} << 30);
    Journal::Content content;
    const auto journal = Journal::open(path, content);
    ASSERT_FALSE(journal);
    EXPECT_EQ(journal.error().kind, ErrorKind::bad_input);
    EXPECT_NE(journal.error().message.find("larger than"), std::string::npos) << journal.error().message;
}

TEST_F(JournalTest, KeepsChanges) {
    {
        auto journal = Journal::create(path);
        ASSERT_TRUE(journal);
        ASSERT_TRUE(journal->append(first));
    }
    {
        Journal::Content content;
        auto journal = Journal::open(path, content);
        ASSERT_TRUE(journal);
        ASSERT_TRUE(journal->append(second));
    }
    const Journal::Content content = read();
    ASSERT_EQ(content.changes.size(), 2U);
    expect_same(content.changes[0], first);
    expect_same(content.changes[1], second);
    EXPECT_FALSE(content.torn);
}

TEST_F(JournalTest, BeginsWithChanges) {
    ASSERT_TRUE(Journal::create(path, {first, second}));
    EXPECT_EQ(read().changes.size(), 2U);
}

// A version before noted the filters in force, too.
TEST_F(JournalTest, WhatAnOlderVersionNotedOfFiltersIsSkipped) {
    {
        auto journal = Journal::create(path, {first});
        ASSERT_TRUE(journal);
    }
    {
        auto log = RecordLog::open(path, {.magic = "xdp-sieve journal 1\n", .name = "journal"});
        ASSERT_TRUE(log);
        ASSERT_TRUE(log->read_on([](std::uint32_t, std::string_view) { return true; }));
        ASSERT_TRUE(log->append(2, std::string(32, '\1')));
    }
    {
        Journal::Content content;
        auto journal = Journal::open(path, content);
        ASSERT_TRUE(journal);
        ASSERT_TRUE(journal->append(second));
    }
    const Journal::Content content = read();
    EXPECT_EQ(content.changes.size(), 2U);
    EXPECT_FALSE(content.torn);
}

// At every byte where a crash may have cut it off.
TEST_F(JournalTest, ATornEndIsDetectedWhereverItIs) {
    std::vector<std::size_t> ends;
    {
        auto journal = Journal::create(path);
        ends.push_back(journal->bytes());
        ASSERT_TRUE(journal->append(first));
        ends.push_back(journal->bytes());
        ASSERT_TRUE(journal->append(third));
        ends.push_back(journal->bytes());
        ASSERT_TRUE(journal->append(second));
        ends.push_back(journal->bytes());
    }
    const std::string whole = bytes();
    for (std::size_t length = ends[0]; length <= whole.size(); length++) {
        write(whole.substr(0, length));
        std::size_t records = 0;
        while (records + 1 < ends.size() && ends[records + 1] <= length) records++;
        const Journal::Content content = read();
        EXPECT_EQ(content.torn, length != ends[records]) << length;
        EXPECT_EQ(content.changes.size(), records) << length;
        EXPECT_EQ(bytes().size(), ends[records]) << length; // cut off
    }
}

TEST_F(JournalTest, AChangedByteIsDetectedWhereverItIs) {
    {
        auto journal = Journal::create(path);
        ASSERT_TRUE(journal->append(first));
    }
    const std::string whole = bytes();
    const std::size_t head = std::string("xdp-sieve journal 1\n").size();
    for (std::size_t at = head; at < whole.size(); at++) {
        std::string other = whole;
        other[at] = static_cast<char>(other[at] ^ 0x10);
        write(other);
        Journal::Content content;
        expect_error(Journal::open(path, content), ErrorKind::bad_input);
        EXPECT_EQ(bytes(), other) << at;
    }
}

TEST_F(JournalTest, AnEndOfZeroBytesIsTorn) {
    {
        auto journal = Journal::create(path);
        ASSERT_TRUE(journal->append(first));
    }
    const std::string whole = bytes();
    write(whole + std::string(4096, '\0'));
    const Journal::Content content = read();
    EXPECT_TRUE(content.torn);
    EXPECT_EQ(content.changes.size(), 1U);
    EXPECT_EQ(bytes(), whole);
}

// What follows is known to be missing.
TEST_F(JournalTest, AChangedByteBeforeTheLastRecordIsDamage) {
    std::size_t last = 0;
    {
        auto journal = Journal::create(path);
        ASSERT_TRUE(journal->append(first));
        ASSERT_TRUE(journal->append(second));
        last = journal->bytes();
        ASSERT_TRUE(journal->append(third));
    }
    const std::string whole = bytes();
    const std::size_t head = std::string("xdp-sieve journal 1\n").size();
    for (std::size_t at = head; at < last; at++) {
        std::string other = whole;
        other[at] = static_cast<char>(other[at] ^ 0x10);
        write(other);
        Journal::Content content;
        expect_error(Journal::open(path, content), ErrorKind::bad_input);
        EXPECT_EQ(bytes(), other) << at; // for the next that asks
    }
}

TEST_F(JournalTest, WhatIsNoJournalIsRefused) {
    write("something else\n");
    Journal::Content content;
    expect_error(Journal::open(path, content), ErrorKind::bad_input);
}

} // namespace
} // namespace sieve::service::live
