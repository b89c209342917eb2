// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state/pauses.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::service {
namespace {

using test::Files;

TEST(Pauses, AreFilesOfTheStateDirectory) {
    const Files files;
    const std::string state = files.path("state");
    EXPECT_EQ(read_pauses(state).value(), Pauses());
    EXPECT_FALSE(add_pause(state, "eth0")) << "there is no state directory";
    EXPECT_FALSE(end_pause(state, "eth0").value());
    std::filesystem::create_directory(state);
    ASSERT_TRUE(add_pause(state, "eth0"));
    ASSERT_TRUE(add_pause(state, "eth0")) << "again";
    ASSERT_TRUE(add_pause(state, "br.7"));
    EXPECT_TRUE(std::filesystem::exists(state + "/paused.eth0"));
    Pauses pauses = read_pauses(state).value();
    EXPECT_EQ(pauses, (Pauses{.everywhere = false, .interfaces = {"br.7", "eth0"}}));
    EXPECT_TRUE(pauses.has("eth0"));
    EXPECT_FALSE(pauses.has("eth1"));
    ASSERT_TRUE(add_pause(state, ""));
    EXPECT_TRUE(read_pauses(state)->has("eth1"));
    EXPECT_TRUE(end_pause(state, "eth0").value());
    EXPECT_FALSE(end_pause(state, "eth0").value());
    EXPECT_TRUE(read_pauses(state)->everywhere);
    EXPECT_TRUE(end_pause(state, "").value());
    EXPECT_EQ(read_pauses(state).value(), Pauses());
    EXPECT_TRUE(std::filesystem::is_empty(state));
}

// A pause that somebody replaced by a folder is one, and can be ended.
TEST(Pauses, MayBeFolders) {
    const Files files;
    const std::string state = files.path("state");
    std::filesystem::create_directories(state + "/paused.eth0");
    EXPECT_TRUE(read_pauses(state)->has("eth0"));
    EXPECT_TRUE(add_pause(state, "eth0"));
    EXPECT_TRUE(end_pause(state, "eth0").value());
    EXPECT_EQ(read_pauses(state).value(), Pauses());
}

// Anybody could switch the filter off, or have it said that it is off.
TEST(Pauses, AreNoneWhereOthersMayWrite) {
    const Files files;
    const std::string state = files.path("state");
    std::filesystem::create_directory(state);
    ASSERT_TRUE(add_pause(state, "eth0"));
    std::filesystem::permissions(state, std::filesystem::perms::all);
    EXPECT_EQ(read_pauses(state).value(), Pauses());
    const Status refused = add_pause(state, "eth1");
    ASSERT_FALSE(refused);
    expect_error(refused.error(), ErrorKind::bad_input);
    EXPECT_FALSE(std::filesystem::exists(state + "/paused.eth1"));
}

// A disk that breaks ends no pause.
TEST(Pauses, AreUnknownWhereTheDirectoryCannotBeLookedAt) {
    const Files files;
    const std::string state = files.path("state");
    std::filesystem::create_symlink("state", state); // leads to itself
    expect_error(read_pauses(state), ErrorKind::kernel_refused);
    expect_error(end_pause(state, "eth0"), ErrorKind::kernel_refused);
}

TEST(Pauses, OtherFilesAreNone) {
    const Files files;
    for (const char* name : {"version", "hooks.json", "paused2", "pause"})
        EXPECT_FALSE(is_pause_file(name)) << name;
    EXPECT_TRUE(is_pause_file("paused"));
    EXPECT_TRUE(is_pause_file("paused.eth0"));
}

} // namespace
} // namespace sieve::service
