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

} // namespace
} // namespace sieve::service
