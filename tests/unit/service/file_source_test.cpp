// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/file_source.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"

namespace sieve::service {
namespace {

using test::Files;

std::vector<std::string> names_of(const Pieces& pieces) {
    std::vector<std::string> names;
    for (const auto& piece : pieces) names.push_back(std::filesystem::path(piece->record().name).filename());
    return names;
}

std::vector<PieceRecord> records_of(const Pieces& pieces) {
    std::vector<PieceRecord> records;
    for (const auto& piece : pieces) records.push_back(piece->record());
    return records;
}

Pieces fetched(const SourceSpec& spec, std::span<const PieceRecord> before = {}) {
    auto pieces = make_source(spec)->fetch(before);
    EXPECT_TRUE(pieces) << pieces.error().message;
    return pieces ? std::move(*pieces) : Pieces{};
}

class FileSource : public testing::Test {
  protected:
    Files files;
};

TEST_F(FileSource, AFileIsOnePiece) {
    const std::string path = files.feed("a.txt", {"192.0.2.1"});
    const Pieces pieces = fetched(FileSpec{path});
    ASSERT_EQ(pieces.size(), 1U);
    EXPECT_EQ(pieces[0]->record().name, path);
    EXPECT_EQ(pieces[0]->record().bytes, 10U);
    EXPECT_EQ(pieces[0]->record().digest.size(), 32U);
    auto input = pieces[0]->open();
    ASSERT_TRUE(input);
    EXPECT_EQ(input->peek(100).value(), "192.0.2.1\n");
    EXPECT_TRUE(pieces[0]->confirm());
}

TEST_F(FileSource, AFolderIsItsListsInOrder) {
    for (const char* name : {"b.txt", "a.txt", ".hidden", "c.txt~", "d.bak", "e.dpkg-old", "f.tmp", "g"})
        files.feed(name, {"192.0.2.1"});
    std::filesystem::create_directory(files.path("folder"));
    EXPECT_EQ(names_of(fetched(FolderSpec{files.path("")})),
              (std::vector<std::string>{"a.txt", "b.txt", "g"}));
}

TEST_F(FileSource, AnEmptyFolderHasNoPiece) {
    EXPECT_TRUE(fetched(FolderSpec{files.path("")}).empty());
}

TEST_F(FileSource, APatternIsWhatMatches) {
    for (const char* name : {"b.netset", "a.netset", "c.txt"}) files.feed(name, {"192.0.2.1"});
    EXPECT_EQ(names_of(fetched(GlobSpec{files.path("*.netset")})),
              (std::vector<std::string>{"a.netset", "b.netset"}));
    EXPECT_TRUE(fetched(GlobSpec{files.path("*.ipset")}).empty());
}

TEST_F(FileSource, WhatIsNotThereIsAnError) {
    for (const SourceSpec& spec :
         {SourceSpec{FileSpec{files.path("none")}}, SourceSpec{FolderSpec{files.path("none/")}},
          SourceSpec{FileSpec{files.path("")}}}) {
        const auto pieces = make_source(spec)->fetch({});
        ASSERT_FALSE(pieces);
        EXPECT_EQ(pieces.error().kind, ErrorKind::bad_input);
        EXPECT_NE(pieces.error().message.find(source_name(spec)), std::string::npos);
    }
}

TEST_F(FileSource, APipeIsNoList) {
    ASSERT_EQ(::mkfifo(files.path("pipe").c_str(), 0600), 0);
    EXPECT_FALSE(make_source(FileSpec{files.path("pipe")})->fetch({}));
}

TEST_F(FileSource, TheDigestIsThatOfTheContent) {
    const SourceSpec spec = FileSpec{files.feed("a.txt", {"192.0.2.1"})};
    const auto before = records_of(fetched(spec));
    files.feed("a.txt", {"192.0.2.1"}); // written anew, the same
    EXPECT_TRUE(same_content(fetched(spec, before), before));
    files.feed("a.txt", {"192.0.2.2"}); // the same length, and perhaps the same stamp
    EXPECT_FALSE(same_content(fetched(spec, before), before));
}

TEST_F(FileSource, AnOldStampSparesReading) {
    const SourceSpec spec = FileSpec{files.feed("a.txt", {"192.0.2.1"})};
    auto before = records_of(fetched(spec));
    before[0].digest = "from the record";
    before[0].read += 3600; // long after the last change
    EXPECT_EQ(fetched(spec, before)[0]->record().digest, "from the record");
    before[0].read = before[0].changed / 1'000'000'000 + 1; // too soon after it
    EXPECT_NE(fetched(spec, before)[0]->record().digest, "from the record");
    before[0].read += 3600;
    before[0].inode++; // another file of that name
    EXPECT_NE(fetched(spec, before)[0]->record().digest, "from the record");
}

TEST_F(FileSource, AFileThatChangesMeanwhileIsNoticed) {
    const SourceSpec spec = FileSpec{files.feed("a.txt", {"192.0.2.1"})};
    const Pieces pieces = fetched(spec);
    files.feed("a.txt", {"192.0.2.1", "192.0.2.2"});
    EXPECT_FALSE(pieces[0]->confirm());
    ASSERT_EQ(::unlink(files.path("a.txt").c_str()), 0);
    EXPECT_FALSE(pieces[0]->confirm());
}

TEST_F(FileSource, AFileOfTwoSourcesIsReadOnce) {
    files.feed("a.txt", {"192.0.2.1"});
    files.feed("b.txt", {"192.0.2.2"});
    const auto pieces = fetch_all({FileSpec{files.path("b.txt")}, FolderSpec{files.path("")}}, {});
    ASSERT_TRUE(pieces);
    EXPECT_EQ(names_of(*pieces), (std::vector<std::string>{"b.txt", "a.txt"}));
}

TEST_F(FileSource, ASourceTellsWhereToWatch) {
    const std::string folder = files.path("");
    EXPECT_EQ(make_source(FolderSpec{folder})->folders(), std::vector<std::string>{folder});
    const std::string bare = folder.substr(0, folder.size() - 1);
    EXPECT_EQ(make_source(FileSpec{files.path("a.txt")})->folders(), std::vector<std::string>{bare});
    EXPECT_EQ(make_source(GlobSpec{files.path("*.txt")})->folders(), std::vector<std::string>{bare});
}

} // namespace
} // namespace sieve::service
