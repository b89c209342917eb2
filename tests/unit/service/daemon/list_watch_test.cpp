// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/list_watch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"
#include "unit/service/daemon/records.hpp"

namespace sieve::service {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Longer than any event takes; a test that gets its events never waits for it.
constexpr auto patience = 60s;

class ListWatchTest : public testing::Test {
  protected:
    test::Files files;
    std::string root = fs::canonical(files.path(".")).string();
    test::RecordedLog log;
    EventLoop loop = EventLoop::make().value();
    std::set<std::string> changed;
    ListWatch watch{loop, log,
                    [this](const std::set<std::string>& sets) { changed.insert(sets.begin(), sets.end()); }};
    Configuration configuration;

    template <class Spec>
    void add(const std::string& name, const std::string& path) {
        SetConfiguration set;
        set.name = name;
        set.sources = {Spec{root + "/" + path}};
        configuration.sets.push_back(std::move(set));
    }
    void start() { ASSERT_TRUE(watch.follow(configuration)); }
    void write(const std::string& path, const std::string& text = "192.0.2.1\n") const {
        std::ofstream(root + "/" + path) << text;
    }
    // Everything that has happened so far has been handled when the mark, a change of a set of its own, has.
    std::set<std::string> seen() {
        write("mark/list", std::to_string(marks_++));
        while (!changed.contains("mark"))
            if (!loop.run_once(patience)) ADD_FAILURE() << "no event";
        while (loop.run_once(0ms)) { // what the last events have led to
        }
        std::set<std::string> sets = std::exchange(changed, {});
        sets.erase("mark");
        return sets;
    }
    // File systems count time in steps. What changes after this gets another time than what changed before.
    void await_next_time() const {
        const auto time_of_a_change = [&] {
            write("clock");
            return fs::last_write_time(root + "/clock");
        };
        for (const auto before = time_of_a_change(); time_of_a_change() == before;) {
        }
    }

    ListWatchTest() {
        fs::create_directory(root + "/mark");
        add<FileSpec>("mark", "mark/list");
        fs::create_directory(root + "/a");
        fs::create_directory(root + "/b");
        add<FileSpec>("file", "a/list.txt");
        add<FolderSpec>("folder", "b/");
        add<GlobSpec>("pattern", "b/*.netset");
    }

  private:
    int marks_ = 0;
};

const std::set<std::string> none{};

TEST_F(ListWatchTest, AFileCountsWhenItIsClosed) {
    start();
    EXPECT_EQ(seen(), none);
    std::ofstream file(root + "/a/list.txt");
    file << "192.0.2.1\n" << std::flush;
    EXPECT_EQ(seen(), none); // half a list
    file.close();
    EXPECT_EQ(seen(), std::set<std::string>{"file"});
    write("a/other.txt");
    EXPECT_EQ(seen(), none);
    write("b/x.netset");
    EXPECT_EQ(seen(), (std::set<std::string>{"folder", "pattern"}));
    write("b/.x.swp");
    EXPECT_EQ(seen(), none);
}

TEST_F(ListWatchTest, EveryWayOfReplacingAFileIsSeen) {
    write("a/list.txt");
    start();
    write("a/new");
    EXPECT_EQ(seen(), none);
    fs::rename(root + "/a/new", root + "/a/list.txt");
    EXPECT_EQ(seen(), std::set<std::string>{"file"});
    fs::remove(root + "/a/list.txt");
    EXPECT_EQ(seen(), std::set<std::string>{"file"});
    write("a/kept");
    fs::create_hard_link(root + "/a/kept", root + "/a/list.txt");
    EXPECT_EQ(seen(), std::set<std::string>{"file"});
    fs::rename(root + "/a/list.txt", root + "/a/gone");
    EXPECT_EQ(seen(), std::set<std::string>{"file"});
    fs::create_symlink("kept", root + "/a/list.txt");
    EXPECT_EQ(seen(), std::set<std::string>{"file"});
    // From now on its target's changes are its own.
    write("a/kept", "192.0.2.2\n");
    EXPECT_EQ(seen(), std::set<std::string>{"file"});
    fs::permissions(root + "/a/kept", fs::perms::owner_read);
    EXPECT_EQ(seen(), std::set<std::string>{"file"});
}

// By link(2) and unlink(2), or by linkat(2) of a file without a name, before anybody looks.
TEST_F(ListWatchTest, AFileThatGetsItsNameWhenItIsWrittenCounts) {
    start();
    write("a/new");
    await_next_time();
    ASSERT_EQ(::link((root + "/a/new").c_str(), (root + "/a/list.txt").c_str()), 0);
    ASSERT_EQ(::unlink((root + "/a/new").c_str()), 0);
    EXPECT_EQ(seen(), std::set<std::string>{"file"});
    const UniqueFd file(::open((root + "/b").c_str(), O_TMPFILE | O_WRONLY, 0600));
    if (!file) GTEST_SKIP() << "this file system has no files without a name: " << errno_text(errno);
    ASSERT_EQ(::write(file.get(), "192.0.2.1\n", 10), 10);
    await_next_time();
    ASSERT_EQ(::linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(file.get())).c_str(), AT_FDCWD,
                       (root + "/b/x.netset").c_str(), AT_SYMLINK_FOLLOW),
              0);
    EXPECT_EQ(seen(), (std::set<std::string>{"folder", "pattern"}));
}

TEST_F(ListWatchTest, AFolderMayVanishAndComeBack) {
    write("b/x.txt");
    start();
    fs::remove_all(root + "/b");
    EXPECT_EQ(seen(), (std::set<std::string>{"folder", "pattern"}));
    fs::create_directory(root + "/b");
    EXPECT_EQ(seen(), (std::set<std::string>{"folder", "pattern"}));
    write("b/y.txt");
    EXPECT_EQ(seen(), std::set<std::string>{"folder"});
    // Another one takes its name.
    fs::create_directory(root + "/c");
    write("c/z.txt");
    fs::rename(root + "/b", root + "/old");
    fs::rename(root + "/c", root + "/b");
    EXPECT_EQ(seen(), (std::set<std::string>{"folder", "pattern"}));
    write("old/y.txt");
    EXPECT_EQ(seen(), none);
    write("b/z.txt");
    EXPECT_EQ(seen(), std::set<std::string>{"folder"});
}

TEST_F(ListWatchTest, AFolderAboveMayMove) {
    fs::create_directories(root + "/x/y");
    add<FileSpec>("deep", "x/y/list");
    write("x/y/list");
    start();
    fs::rename(root + "/x", root + "/moved");
    EXPECT_EQ(seen(), std::set<std::string>{"deep"});
    fs::create_directories(root + "/x/y");
    write("x/y/list");
    EXPECT_EQ(seen(), std::set<std::string>{"deep"});
    write("x/y/list", "192.0.2.2\n");
    EXPECT_EQ(seen(), std::set<std::string>{"deep"});
    write("moved/y/list");
    EXPECT_EQ(seen(), none);
}

TEST_F(ListWatchTest, ALinkThatIsTurnedIsFollowed) {
    for (const char* folder : {"/data1", "/data2"}) fs::create_directory(root + folder);
    fs::create_directory_symlink("data1", root + "/now");
    add<FileSpec>("linked", "now/list");
    start();
    write("data1/list");
    EXPECT_EQ(seen(), std::set<std::string>{"linked"});
    fs::create_directory_symlink("data2", root + "/next");
    fs::rename(root + "/next", root + "/now");
    EXPECT_EQ(seen(), std::set<std::string>{"linked"});
    write("data1/list");
    EXPECT_EQ(seen(), none);
    write("data2/list");
    EXPECT_EQ(seen(), std::set<std::string>{"linked"});
}

TEST_F(ListWatchTest, AnotherConfigurationIsFollowed) {
    start();
    configuration.sets.erase(configuration.sets.begin() + 1, configuration.sets.end());
    add<FolderSpec>("other", "a");
    start();
    write("a/list.txt");
    write("b/x");
    EXPECT_EQ(seen(), std::set<std::string>{"other"});
}

TEST_F(ListWatchTest, EverySetCountsAsChangedAfterAnOverflow) {
    std::size_t most = 0;
    std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> most;
    if (most == 0 || most > 200'000) GTEST_SKIP() << "the queue holds " << most << " events";
    start();
    // Alternating names, since equal events in a row become one.
    write("b/1");
    write("b/2");
    for (std::size_t i = 0; i <= most; i++)
        ASSERT_EQ(::truncate((root + (i % 2 == 0 ? "/b/1" : "/b/2")).c_str(), 0), 0);
    for (std::size_t i = 0; i <= most / 2; i++) {
        fs::permissions(root + "/b/1", i % 2 == 0 ? fs::perms::owner_read : fs::perms::owner_all);
        fs::permissions(root + "/b/2", i % 2 == 0 ? fs::perms::owner_read : fs::perms::owner_all);
    }
    write("a/list.txt"); // lost
    EXPECT_EQ(seen(), (std::set<std::string>{"file", "folder", "pattern"}));
    EXPECT_EQ(log.text(), "");
}

} // namespace
} // namespace sieve::service
