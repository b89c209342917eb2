// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/file_source.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::service {
namespace {

using sieve::test::Files;

std::vector<std::string> names_of(const Result<std::vector<std::string>>& paths) {
    std::vector<std::string> names;
    for (const std::string& path : *paths) names.push_back(std::filesystem::path(path).filename());
    return names;
}

class FileSource : public testing::Test {
  protected:
    Files files;
};

TEST_F(FileSource, AFolderIsItsListsInOrder) {
    for (const char* name : {"b.txt", "a.txt", ".hidden", "c.txt~", "d.bak", "e.dpkg-old", "f.tmp", "g"})
        files.feed(name, {"192.0.2.1"});
    std::filesystem::create_directory(files.path("folder"));
    EXPECT_EQ(names_of(files_of_folder(files.path(""))), (std::vector<std::string>{"a.txt", "b.txt", "g"}));
}

TEST_F(FileSource, AnEmptyFolderHasNoList) {
    EXPECT_TRUE(files_of_folder(files.path("")).value().empty());
}

TEST_F(FileSource, AFolderThatIsNotThereIsAnError) {
    expect_error(files_of_folder(files.path("none/")), ErrorKind::bad_input);
}

TEST_F(FileSource, APatternIsWhatMatches) {
    for (const char* name : {"b.netset", "a.netset", "c.txt"}) files.feed(name, {"192.0.2.1"});
    EXPECT_EQ(names_of(files_of_glob(files.path("*.netset"))),
              (std::vector<std::string>{"a.netset", "b.netset"}));
    EXPECT_TRUE(files_of_glob(files.path("*.ipset")).value().empty());
}

TEST_F(FileSource, AFolderOfAPatternThatIsNotThereIsAnError) {
    std::filesystem::create_directories(files.path("a[b]/c"));
    files.feed("a[b]/c/list.txt", {"192.0.2.1"});
    files.feed("file", {"192.0.2.1"});
    for (const char* pattern :
         {"none/*.txt", "none/*/list.txt", "file/*.txt", "file/*/list.txt", "a\\[c]/*/*.txt"})
        expect_error(files_of_glob(files.path(pattern)), ErrorKind::bad_input);
    EXPECT_EQ(names_of(files_of_glob(files.path("a\\[b]/*/*.txt"))), std::vector<std::string>{"list.txt"});
    EXPECT_TRUE(files_of_glob(files.path("*/*/none.txt")).value().empty());
}

// A list that is named, and that nobody can look at.
TEST_F(FileSource, ALinkThatLeadsNowhereIsAnError) {
    std::filesystem::create_directory(files.path("lists"));
    files.feed("lists/a.txt", {"192.0.2.1"});
    files.feed("b", {"192.0.2.2"});
    std::filesystem::create_symlink("../b", files.path("lists/b.txt"));
    std::filesystem::create_symlink("gone", files.path("lists/.hidden.txt"));
    const std::vector<std::string> both{"a.txt", "b.txt"};
    EXPECT_EQ(names_of(files_of_folder(files.path("lists/"))), both);
    EXPECT_EQ(names_of(files_of_glob(files.path("lists/*.txt"))), both);
    for (const char* target : {"gone", "c.txt"}) { // the second one loops
        std::filesystem::create_symlink(target, files.path("lists/c.txt"));
        expect_error(files_of_folder(files.path("lists/")), ErrorKind::bad_input);
        expect_error(files_of_glob(files.path("lists/*.txt")), ErrorKind::bad_input);
        expect_error(files_of_glob(files.path("*/c.txt")), ErrorKind::bad_input);
        std::filesystem::remove(files.path("lists/c.txt"));
    }
    EXPECT_EQ(names_of(files_of_folder(files.path("lists/"))), both);
}

} // namespace
} // namespace sieve::service
