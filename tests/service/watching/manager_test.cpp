// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/watching/manager.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "service/support.hpp"

namespace sieve::service::watching {
namespace {

using namespace service::test;

const Manager some{
    .pid = 812, .started = 1'700'000'000, .listen = "127.0.0.1:9273", .state = "/var/lib/x", .version = "1"};

TEST(ManagerNoteTest, IsSeenWhileItIsHeld) {
    const Folder folder;
    const std::string run = folder.path("run"); // made by the first one
    EXPECT_FALSE(find_manager(run));
    {
        const auto note = ManagerNote::leave(some, run);
        ASSERT_TRUE(note) << note.error().message;
        EXPECT_EQ(find_manager(run), some);
        const auto second = ManagerNote::leave(some, run);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().kind, ErrorKind::busy);
        EXPECT_EQ(second.error().message, "process 812 manages this network namespace already");
    }
    EXPECT_FALSE(find_manager(run));
    EXPECT_TRUE(std::filesystem::is_empty(run));
    EXPECT_TRUE(ManagerNote::leave(some, run));
}

// What a killed daemon leaves behind counts for nothing, and does not stop the next one.
TEST(ManagerNoteTest, OfADeadProcessCountsForNothing) {
    const Folder folder;
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto note = ManagerNote::leave(some, folder.path("run"));
        (void)::write(ready[1], note ? "y" : "n", 1);
        ::pause();
        ::_exit(0);
    }
    char answer = 0;
    ASSERT_EQ(::read(ready[0], &answer, 1), 1);
    ASSERT_EQ(answer, 'y');
    EXPECT_EQ(find_manager(folder.path("run")), some);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(ready[0]);
    ::close(ready[1]);
    EXPECT_FALSE(find_manager(folder.path("run")));
    EXPECT_TRUE(ManagerNote::leave(some, folder.path("run")));
}

TEST(ManagerNoteTest, ThatIsNoneIsNobody) {
    const Folder folder;
    std::string path;
    {
        const auto note = ManagerNote::leave(some, folder.path("run"));
        ASSERT_TRUE(note);
        for (const auto& file : std::filesystem::directory_iterator(folder.path("run"))) path = file.path();
        for (const char* text : {"", "{", "{\"pid\": \"x\"}", "[]"}) {
            std::ofstream(path) << text;
            EXPECT_FALSE(find_manager(folder.path("run"))) << text;
        }
    }
    EXPECT_NE(path.find("/run/net-"), std::string::npos);
    EXPECT_TRUE(path.ends_with(".manager"));
}

} // namespace
} // namespace sieve::service::watching
