// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/contact/manager.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "service/support.hpp"

namespace sieve::service::watching {
namespace {

using namespace service::test;

const Manager some{.pid = ::getpid(),
                   .started = 1'700'000'000,
                   .listen = "127.0.0.1:19273",
                   .state = "/var/lib/x",
                   .version = "1",
                   .configuration = "/etc/xdp-sieve/xdp-sieve.toml"};

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
        EXPECT_EQ(second.error().message,
                  "process " + std::to_string(::getpid()) + " manages this network namespace already");
    }
    EXPECT_FALSE(find_manager(run));
    EXPECT_TRUE(std::filesystem::is_empty(run));
    EXPECT_TRUE(ManagerNote::leave(some, run));
}

TEST(ManagerNoteTest, SaysHowThingsStandNow) {
    const Folder folder;
    auto note = ManagerNote::leave(some, folder.path("run"));
    ASSERT_TRUE(note) << note.error().message;
    for (const std::string& standing :
         {std::string("1 of 2 sets in force on eth0; set b waits for its first list"), std::string("less"),
          std::string("a \"quote\",\na line and \xff"), std::string()}) {
        ASSERT_TRUE(note->update(standing));
        const auto found = find_manager(folder.path("run"));
        ASSERT_TRUE(found);
        EXPECT_EQ(found->pid, some.pid);
        EXPECT_EQ(found->standing.substr(0, 12), standing.substr(0, 12));
    }
    ASSERT_TRUE(note->update(std::string(100000, 'x')));
    EXPECT_EQ(find_manager(folder.path("run"))->standing, std::string(4096, 'x'));
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

// A child of a killed daemon shares the lock until the child runs, which a busy host may put off.
TEST(ManagerNoteTest, AChildOfADeadManagerIsWaitedFor) {
    const Folder folder;
    const std::string run = folder.path("run");
    int ready[2], go_on[2];
    ASSERT_EQ(::pipe(ready), 0);
    ASSERT_EQ(::pipe(go_on), 0);
    const pid_t manager = ::fork();
    if (manager == 0) {
        const auto note = ManagerNote::leave({.pid = ::getpid()}, run);
        char nothing = 0;
        if (::fork() == 0) {
            ::close(go_on[1]); // ends with the test, however that ends
            (void)::write(ready[1], note ? "y" : "n", 1);
            (void)::read(go_on[0], &nothing, 1);
            ::_exit(0);
        }
        ::pause();
    }
    char answer = 0;
    ASSERT_EQ(::read(ready[0], &answer, 1), 1);
    ASSERT_EQ(answer, 'y');
    ASSERT_EQ(::kill(manager, SIGKILL), 0);
    ASSERT_EQ(::waitpid(manager, nullptr, 0), manager);

    const auto impatient = ManagerNote::leave(some, run, {.patience = std::chrono::milliseconds(0)});
    ASSERT_FALSE(impatient);
    EXPECT_EQ(impatient.error().kind, ErrorKind::busy);
    const auto patient = ManagerNote::leave(some, run, {.patience = std::chrono::minutes(1), .begun = [&] {
                                                            ASSERT_EQ(::write(go_on[1], "g", 1), 1);
                                                        }});
    EXPECT_TRUE(patient) << patient.error().message;
    for (const int fd : {ready[0], ready[1], go_on[0], go_on[1]}) ::close(fd);
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

TEST(ManagerNoteTest, ThatIsRemovedIsMissed) {
    const Folder folder;
    const auto note = ManagerNote::leave(some, folder.path("run"));
    ASSERT_TRUE(note);
    EXPECT_TRUE(note->is_there());
    for (const auto& file : std::filesystem::directory_iterator(folder.path("run")))
        std::filesystem::remove(file.path());
    EXPECT_FALSE(note->is_there());
}

class NamespaceClaimTest : public testing::Test {
  protected:
    std::vector<std::string> remarks;
    std::function<void(const std::string&)> remark() {
        return [this](const std::string& text) { remarks.push_back(text); };
    }
};

TEST_F(NamespaceClaimTest, OnlyOneHasIt) {
    {
        const auto first = NamespaceClaim::take(remark());
        ASSERT_TRUE(first) << first.error().message;
        const auto second = NamespaceClaim::take(remark());
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().kind, ErrorKind::busy);
        EXPECT_EQ(second.error().message,
                  "process " + std::to_string(::getpid()) + " manages this network namespace already");
    }
    EXPECT_TRUE(NamespaceClaim::take(remark()));
    EXPECT_TRUE(remarks.empty());
}

// Anybody may take the name, and must not keep this host from being protected.
TEST_F(NamespaceClaimTest, AnotherUserDoesNotKeepTheManagerAway) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const bool other = ::setuid(65534) == 0;
        const auto claim = NamespaceClaim::take([](const std::string&) {});
        (void)::write(ready[1], other && claim ? "y" : "n", 1);
        ::pause();
        ::_exit(0);
    }
    char answer = 0;
    ASSERT_EQ(::read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    EXPECT_TRUE(NamespaceClaim::take(remark()));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(ready[0]);
    ::close(ready[1]);
    ASSERT_EQ(remarks.size(), 1U);
    EXPECT_NE(remarks[0].find("process " + std::to_string(child) + " of user 65534"), std::string::npos)
        << remarks[0];
}

} // namespace
} // namespace sieve::service::watching
