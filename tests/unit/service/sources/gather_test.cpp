// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Files; tests/service has the tests of servers and commands.
#include "libsieve/service/sources/gather.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::service {
namespace {

using test::Files;

class GatherFile : public testing::Test {
  protected:
    Files files;
    const std::string path = files.feed("a.txt", {"192.0.2.1"});

    Gathered gathered(const SourceProvenance* known = nullptr) {
        auto one = gather(FileOrigin{path}, known, {});
        if (!one) throw std::runtime_error(one.error().error.message);
        return std::move(*one);
    }
};

TEST_F(GatherFile, HasAStampAndADigest) {
    const SourceProvenance provenance = gathered().provenance;
    EXPECT_EQ(provenance.source, path);
    EXPECT_EQ(provenance.bytes, 10U);
    EXPECT_EQ(provenance.digest.size(), 32U);
    EXPECT_NE(provenance.stamp.inode, 0U);
    EXPECT_NE(provenance.read, 0);
}

TEST_F(GatherFile, TheDigestIsThatOfTheContent) {
    const SourceProvenance before = gathered().provenance;
    files.feed("a.txt", {"192.0.2.1"}); // written anew, the same
    EXPECT_TRUE(gathered(&before).unchanged);
    files.feed("a.txt", {"192.0.2.2"}); // the same length, and perhaps the same stamp
    EXPECT_FALSE(gathered(&before).unchanged);
}

TEST_F(GatherFile, AnOldStampSparesReading) {
    SourceProvenance before = gathered().provenance;
    before.digest = "from the record";
    before.read += 3600; // long after the last change
    const Gathered known = gathered(&before);
    EXPECT_TRUE(known.unchanged);
    EXPECT_EQ(known.provenance.digest, "from the record");
    EXPECT_TRUE(known.content) << "another source may have changed";
    before.read = before.stamp.status_changed / 1'000'000'000 + 1; // too soon after it
    EXPECT_FALSE(gathered(&before).unchanged);
    before.read += 3600;
    before.stamp.inode++; // another file of that name
    EXPECT_FALSE(gathered(&before).unchanged);
}

TEST_F(GatherFile, AFileThatChangesMeanwhileIsNoticed) {
    const Gathered one = gathered();
    EXPECT_TRUE(confirm_unchanged(one, path));
    files.feed("a.txt", {"192.0.2.1", "192.0.2.2"});
    expect_error(confirm_unchanged(one, path), ErrorKind::changed_meanwhile);
}

TEST_F(GatherFile, AFileThatLosesItsNameHasNotChanged) {
    const timespec long_ago[2]{{.tv_sec = 1'600'000'000, .tv_nsec = 0},
                               {.tv_sec = 1'600'000'000, .tv_nsec = 0}};
    UniqueFd writer(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::futimens(writer.get(), long_ago), 0);
    const Gathered one = gathered();
    std::filesystem::rename(files.feed("b.txt", {"192.0.2.2"}), path);
    EXPECT_TRUE(confirm_unchanged(one, path));
    ASSERT_EQ(::pwrite(writer.get(), "198", 3, 0), 3); // as long as before
    EXPECT_FALSE(confirm_unchanged(one, path));
    EXPECT_TRUE(confirm_unchanged(gathered(), path));
}

TEST_F(GatherFile, ATimeThatIsSetBackHidesNoChange) {
    const Gathered one = gathered();
    const timespec times[2]{one.file.st_atim, one.file.st_mtim};
    UniqueFd writer(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    struct stat now {};
    do { // until the file system's time has gone on
        ASSERT_EQ(::pwrite(writer.get(), "198", 3, 0), 3);
        ASSERT_EQ(::futimens(writer.get(), times), 0);
        ASSERT_EQ(::fstat(writer.get(), &now), 0);
    } while (stamp_of(now) == one.provenance.stamp);
    EXPECT_FALSE(confirm_unchanged(one, path));
}

TEST_F(GatherFile, APipeIsNoList) {
    ASSERT_EQ(::mkfifo(files.path("pipe").c_str(), 0600), 0);
    EXPECT_FALSE(gather(FileOrigin{files.path("pipe")}, nullptr, {}));
    const auto folder = gather(FileOrigin{files.path("")}, nullptr, {});
    ASSERT_FALSE(folder);
    expect_error(folder.error().error, ErrorKind::bad_input);
}

} // namespace
} // namespace sieve::service
