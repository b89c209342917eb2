// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/watch_points.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"

namespace sieve::service {
namespace {

namespace fs = std::filesystem;
using Names = WatchPoint::Names;

class WatchPointsTest : public testing::Test {
  protected:
    sieve::test::Files files;
    std::string root = fs::canonical(files.path(".")).string();

    std::string make(const std::string& path) const {
        fs::create_directories(fs::path(root + "/" + path).parent_path());
        std::ofstream(root + "/" + path) << "192.0.2.1\n";
        return root + "/" + path;
    }
    // Whether something that happens to that name there concerns the source; an empty name: to the folder.
    template <class Spec>
    [[nodiscard]] bool sees(const std::string& source, const std::string& folder,
                            const std::string& name) const {
        const auto points = watch_points(Spec{root + "/" + source});
        return std::any_of(points.begin(), points.end(), [&](const WatchPoint& point) {
            return point.folder == root + folder && point.concerns(name);
        });
    }
};

TEST_F(WatchPointsTest, AFileIsSeenByItsNameInItsFolder) {
    make("a/list.txt");
    EXPECT_TRUE(sees<FileSpec>("a/list.txt", "/a", "list.txt"));
    EXPECT_FALSE(sees<FileSpec>("a/list.txt", "/a", "list.txt.swp"));
    EXPECT_TRUE(sees<FileSpec>("a/list.txt", "/a", ""));
    EXPECT_TRUE(sees<FileSpec>("a/list.txt", "", "")); // the folder above is moved
    EXPECT_FALSE(sees<FileSpec>("a/list.txt", "", "other"));
    EXPECT_TRUE(sees<FileSpec>("a/./../a/list.txt", "/a", "list.txt"));
}

TEST_F(WatchPointsTest, WhatIsMissingIsAwaitedWhereItWouldAppear) {
    EXPECT_TRUE(sees<FileSpec>("a/b/list.txt", "", "a"));
    EXPECT_TRUE(sees<FolderSpec>("a/b/", "", "a"));
    make("a/other");
    EXPECT_TRUE(sees<FileSpec>("a/b/list.txt", "/a", "b"));
    EXPECT_FALSE(sees<FileSpec>("a/b/list.txt", "/a", "c"));
    make("a/b/other");
    EXPECT_TRUE(sees<FileSpec>("a/b/list.txt", "/a/b", "list.txt"));
}

TEST_F(WatchPointsTest, AFolderIsSeenByTheNamesOfLists) {
    make("a/list.txt");
    EXPECT_TRUE(sees<FolderSpec>("a/", "/a", "new.txt"));
    EXPECT_FALSE(sees<FolderSpec>("a/", "/a", ".new.txt.swp"));
    EXPECT_FALSE(sees<FolderSpec>("a/", "/a", "new.txt~"));
    EXPECT_TRUE(sees<FolderSpec>("a", "/a", ""));
}

TEST_F(WatchPointsTest, SymbolicLinksAreFollowed) {
    make("data/1/list.txt");
    fs::create_directory_symlink("1", root + "/data/now");
    fs::create_directories(root + "/a");
    fs::create_symlink("../data/now/list.txt", root + "/a/list.txt");
    for (const auto& [folder, name] : std::vector<std::pair<std::string, std::string>>{
             {"/a", "list.txt"}, {"/data", "now"}, {"/data/1", "list.txt"}, {"/data/1", ""}})
        EXPECT_TRUE(sees<FileSpec>("a/list.txt", folder, name)) << folder << " " << name;
    EXPECT_TRUE(sees<FolderSpec>("a", "/data/1", "list.txt"));
    EXPECT_TRUE(sees<GlobSpec>("a/*.txt", "/data/1", "list.txt"));
    // A link to itself leads nowhere, and the walk ends.
    fs::create_symlink("loop", root + "/loop");
    EXPECT_TRUE(sees<FileSpec>("loop", "", "loop"));
}

TEST_F(WatchPointsTest, APatternIsSeenInEveryFolderThatFits) {
    make("a1/list.txt");
    make("a2/other");
    make("b/list.txt");
    EXPECT_TRUE(sees<GlobSpec>("a*/*.txt", "/a1", "new.txt"));
    EXPECT_TRUE(sees<GlobSpec>("a*/*.txt", "/a2", "new.txt"));
    EXPECT_FALSE(sees<GlobSpec>("a*/*.txt", "/a1", "new.csv"));
    EXPECT_FALSE(sees<GlobSpec>("a*/*.txt", "/a1", ".hidden.txt"));
    EXPECT_FALSE(sees<GlobSpec>("a*/*.txt", "/b", "new.txt"));
    EXPECT_TRUE(sees<GlobSpec>("a*/*.txt", "", "a3")); // a folder that fits appears
    EXPECT_FALSE(sees<GlobSpec>("a*/*.txt", "", "c"));
    EXPECT_TRUE(sees<GlobSpec>("c/d*/x", "", "c"));
}

} // namespace
} // namespace sieve::service
