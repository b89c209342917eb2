// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/watched_list.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "unit/messages.hpp"
#include "unit/service/live/live_world.hpp"

namespace sieve::service::live {
namespace {

using test::prefix_of;
using Outcome = WatchedList::Outcome;

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

ChangedLines changed(const std::string& before, const std::string& now) {
    return changed_lines(before, now.size(),
                         [&](std::uint64_t offset, char* to, std::size_t bytes) {
                             EXPECT_LE(offset + bytes, now.size());
                             now.copy(to, bytes, offset);
                             return true;
                         })
        .value();
}
std::string gone_of(const std::string& before, const ChangedLines& lines) {
    return before.substr(lines.begin, lines.before_end - lines.begin);
}

TEST(ChangedLines, AreWholeLines) {
    const auto check = [](const std::string& before, const std::string& now, const char* gone,
                          const char* came) {
        const ChangedLines lines = changed(before, now);
        EXPECT_EQ(gone_of(before, lines), gone) << before << "->" << now;
        EXPECT_EQ(lines.now, came) << before << "->" << now;
    };
    check("a\nb\nc\n", "a\nb\nc\n", "", "");
    check("a\nb\nc\n", "a\nb\nc\nd\n", "", "d\n");
    check("a\nb\nc", "a\nb\nc\nd\n", "c", "c\nd\n");
    check("aa\nbb\ncc\n", "aa\nbx\ncc\n", "bb\n", "bx\n");
    check("11\n12\n13\n", "11\n13\n", "12\n13\n", "13\n");
    check("", "a\n", "", "a\n");
    check("a\n", "", "a\n", "");
}

// What is before and behind them is the same in both texts, and consists of whole lines.
TEST(ChangedLines, LeaveOnlyWhatIsTheSame) {
    std::mt19937_64 random(11);
    for (int i = 0; i < 20'000; i++) {
        const auto text = [&] {
            std::string out;
            for (std::uint64_t n = random() % 8; n > 0; n--) {
                out += std::string(random() % 3, static_cast<char>('a' + random() % 2));
                out += '\n';
            }
            if (random() % 4 == 0 && !out.empty()) out.pop_back();
            return out;
        };
        const std::string before = text();
        const std::string now = text();
        const ChangedLines lines = changed(before, now);
        std::string spliced = before;
        spliced.replace(lines.begin, lines.before_end - lines.begin, lines.now);
        ASSERT_EQ(spliced, now);
        auto gone = lines_of(before);
        auto came = lines_of(now);
        auto changed_gone = lines_of(gone_of(before, lines));
        auto changed_came = lines_of(lines.now);
        // before - gone + came = now, as multisets of lines
        gone.insert(gone.end(), changed_came.begin(), changed_came.end());
        came.insert(came.end(), changed_gone.begin(), changed_gone.end());
        std::sort(gone.begin(), gone.end());
        std::sort(came.begin(), came.end());
        ASSERT_EQ(gone, came) << before << "->" << now;
    }
}

// Beyond what is compared at a time.
TEST(ChangedLines, OfLongTextsAreFewBytes) {
    std::string before;
    for (int i = 0; i < 100'000; i++) before += std::to_string(i * 7) + "\n";
    std::mt19937_64 random(3);
    for (int i = 0; i < 200; i++) {
        std::string now = before;
        const std::size_t at = random() % now.size();
        if (i % 2 == 0)
            now.insert(at, "1\n2");
        else
            now.erase(at, random() % 20);
        const ChangedLines lines = changed(before, now);
        EXPECT_LT(lines.now.size() + lines.before_end - lines.begin, 100U);
        std::string spliced = before;
        spliced.replace(lines.begin, lines.before_end - lines.begin, lines.now);
        ASSERT_EQ(spliced, now);
    }
}

class WatchedListTest : public testing::Test {
  protected:
    test::Files files;
    const std::string path = files.path("list");
    WatchedList list{path, 1 << 20};

    void write(const std::string& text) const {
        // A new file each time, as editors do: its stamp differs whatever the clock says.
        std::ofstream(path + ".new", std::ios::binary) << text;
        std::filesystem::rename(path + ".new", path);
    }
    WatchedList::Look look() {
        auto seen = list.look();
        if (!seen) throw std::runtime_error(seen.error().message);
        return *seen;
    }
};

TEST_F(WatchedListTest, ParsesOnlyWhatChanged) {
    write("192.0.2.1\n192.0.2.2 # comment\nnonsense that was skipped\n192.0.2.3\n");
    EXPECT_EQ(look().outcome, Outcome::unknown); // the first time
    list.keep();
    EXPECT_EQ(look().outcome, Outcome::same);
    write("192.0.2.1\n192.0.2.2 # comment\nnonsense that was skipped\n192.0.2.3\n2001:db8::1 ; new\n\n");
    const WatchedList::Look seen = look();
    EXPECT_EQ(seen.outcome, Outcome::lines);
    EXPECT_EQ(seen.difference.added, std::vector<Prefix>{prefix_of("2001:db8::1")});
    EXPECT_TRUE(seen.difference.removed.empty());
}

TEST_F(WatchedListTest, AVersionThatWasNotKeptIsSeenAgain) {
    write("192.0.2.1\n");
    EXPECT_EQ(look().outcome, Outcome::unknown);
    EXPECT_EQ(look().outcome, Outcome::unknown);
    list.keep();
    write("192.0.2.2\n");
    EXPECT_EQ(look().outcome, Outcome::lines);
    EXPECT_EQ(look().outcome, Outcome::lines);
    list.keep();
    EXPECT_EQ(look().outcome, Outcome::same);
    EXPECT_EQ(list.look(true)->outcome, Outcome::unknown);
    EXPECT_EQ(list.text(), "192.0.2.2\n");
}

TEST_F(WatchedListTest, LinesThatAreNoAddressesAreForTheWholeReader) {
    for (const char* line : {"192.0.2.0/24", "nonsense", "{\"ip\": \"192.0.2.1\"}", "192.0.2.1-192.0.2.9",
                             "192.0.2.1 192.0.2.2"}) {
        write("192.0.2.1\n");
        (void)look();
        list.keep();
        write(std::string("192.0.2.1\n") + line + "\n");
        EXPECT_EQ(look().outcome, Outcome::unknown) << line;
    }
}

TEST_F(WatchedListTest, RefusesWhatItCannotRead) {
    EXPECT_FALSE(list.look()); // not there
    write(std::string((1 << 20) + 1, '\n'));
    expect_error(list.look(), ErrorKind::bad_input);
}

} // namespace
} // namespace sieve::service::live
