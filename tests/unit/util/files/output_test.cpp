// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/files/output.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "libsieve/util/system/deferred_signals.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

namespace fs = std::filesystem;

const OutputKind numbers{.name = "list of numbers", .beginnings = {"1 2 3", "one two"}, .mode = 0640};

class OutputTest : public testing::TestWithParam<Staging> {
  protected:
    OutputTest() {
        std::string name = fs::temp_directory_path() / "sieve-output-XXXXXX";
        folder_ = ::mkdtemp(name.data());
    }
    ~OutputTest() override { fs::remove_all(folder_); }

    std::string file(const std::string& name, std::string_view text) const {
        std::ofstream(folder_ / name, std::ios::binary) << text;
        return folder_ / name;
    }
    std::string text_of(const std::string& name) const {
        std::ifstream in(folder_ / name, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    }
    std::set<std::string> names() const {
        std::set<std::string> all;
        for (const auto& entry : fs::directory_iterator(folder_)) all.insert(entry.path().filename());
        return all;
    }
    Status write(const std::string& name, std::string_view text, Replace replace = Replace::ours) const {
        return write_output(folder_ / name, text, numbers, replace, GetParam());
    }
    // The error, which is the same for all ways to write there. Nothing may have changed.
    void refused(const std::string& name, Replace replace = Replace::ours,
                 ErrorKind kind = ErrorKind::bad_input) const {
        const auto before = names();
        const Status checked = check_output(folder_ / name, numbers, replace);
        const Status written = write(name, "1 2 3 new", replace);
        const auto opened = open_output(folder_ / name, numbers, replace);
        expect_error(written, kind);
        if (checked || written || opened) FAIL() << "it was written";
        EXPECT_EQ(checked.error().message, written.error().message);
        EXPECT_EQ(opened.error().message, written.error().message);
        EXPECT_EQ(names(), before);
    }

    fs::path folder_;
};

TEST_P(OutputTest, WritesNewNamesAndItsOwn) {
    const mode_t mask = ::umask(0027);
    ASSERT_TRUE(check_output(folder_ / "new", numbers, Replace::ours));
    ASSERT_TRUE(write("new", "1 2 3 4"));
    ::umask(mask);
    EXPECT_EQ(text_of("new"), "1 2 3 4");
    struct stat info {};
    ASSERT_EQ(::stat((folder_ / "new").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0640U);
    ASSERT_TRUE(write("new", "one two"));
    ASSERT_TRUE(write("new", "1 2 3"));
    EXPECT_EQ(text_of("new"), "1 2 3");
    file("empty", ""); // as mktemp makes
    ASSERT_TRUE(write("empty", "1 2 3"));
    file("foreign", "12 3");
    ASSERT_TRUE(write("foreign", "1 2 3", Replace::anything));
    EXPECT_EQ(names(), (std::set<std::string>{"empty", "foreign", "new"}));
}

TEST_P(OutputTest, ReplacesNothingElse) {
    file("foreign", "12 3");
    refused("foreign", Replace::ours, ErrorKind::foreign_file);
    EXPECT_EQ(text_of("foreign"), "12 3");
    ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
    fs::create_directory(folder_ / "folder");
    fs::create_symlink("nowhere", folder_ / "dangling");
    fs::create_symlink("/dev/null", folder_ / "null");
    for (const Replace replace : {Replace::ours, Replace::anything}) {
        refused("fifo", replace);
        refused("folder", replace);
        refused("null", replace);
        refused("dangling", replace);
        refused("no/folder", replace);
    }
}

TEST_P(OutputTest, FollowsSymbolicLinks) {
    fs::create_directory(folder_ / "deep");
    file("deep/numbers", "1 2 3 old");
    fs::create_symlink("deep/numbers", folder_ / "link");
    ASSERT_TRUE(write("link", "1 2 3 new"));
    EXPECT_EQ(text_of("deep/numbers"), "1 2 3 new");
    EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
    EXPECT_EQ(names(), (std::set<std::string>{"deep", "link"}));
}

TEST_P(OutputTest, IsNoneOfTheInputs) {
    const std::string path = file("list", "1 2 3");
    fs::create_symlink("list", folder_ / "link");
    const auto inputs = Input::of_all({path});
    ASSERT_TRUE(inputs);
    for (const char* name : {"list", "link"}) {
        expect_error(check_output(folder_ / name, numbers, Replace::anything, *inputs), ErrorKind::bad_input);
    }
    // What it is, rather than how to replace it.
    const auto others = Input::of_all({file("other", "4 5 6")});
    ASSERT_TRUE(others);
    expect_error(check_output(folder_ / "other", numbers, Replace::ours, *others), ErrorKind::bad_input);
}

// Exceeding the file size limit is an error, does not end the process, and leaves nothing behind.
TEST_P(OutputTest, LeavesNothingWhenItFails) {
    file("old", "1 2 3 old");
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small{1000, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::string large = "1 2 3" + std::string(100'000, '4');
    const Status added = write("new", large);
    const Status replaced = write("old", large);
    ::setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(added);
    ASSERT_FALSE(replaced);
    expect_error(added, ErrorKind::bad_input);
    EXPECT_EQ(text_of("old"), "1 2 3 old");
    EXPECT_EQ(names(), std::set<std::string>{"old"});
}

INSTANTIATE_TEST_SUITE_P(Both, OutputTest, testing::Values(Staging::unnamed, Staging::named),
                         [](const auto& info) {
                             return info.param == Staging::unnamed ? "Unnamed" : "Named";
                         });

// One thread's object begins before another's and ends before it, too.
TEST(DeferredSignals, OfThreadsLeaveTheDispositionAsItWas) {
    auto first = std::make_unique<DeferredSignals>();
    auto second = std::make_unique<DeferredSignals>();
    first.reset();
    struct sigaction now {};
    ::sigaction(SIGTERM, nullptr, &now);
    EXPECT_NE(now.sa_handler, SIG_DFL);
    second.reset();
    ::sigaction(SIGTERM, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_DFL);
}

TEST(DeferredSignals, ArriveAtTheEnd) {
    EXPECT_EXIT(
        {
            {
                const DeferredSignals signals;
                ::raise(SIGTERM);
                if (!signals.pending()) ::_exit(1);
                std::fputs("put away", stderr);
            }
            ::_exit(2);
        },
        testing::KilledBySignal(SIGTERM), "put away");
    EXPECT_EXIT(
        {
            ::signal(SIGINT, SIG_IGN);
            {
                const DeferredSignals signals;
                ::raise(SIGINT);
                if (signals.pending()) ::_exit(1);
            }
            ::_exit(0);
        },
        testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace sieve
