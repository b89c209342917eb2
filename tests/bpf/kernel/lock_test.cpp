// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/lock.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/own_network.hpp"
#include "bpf/scarce.hpp"

namespace sieve::kernel {
namespace {

using namespace std::chrono_literals;
using test::in_own_network;

// A child that holds the lock until it is killed; its process id.
pid_t holding_child() {
    int ready[2];
    if (::pipe(ready) != 0) return -1;
    const pid_t child = ::fork();
    if (child == 0) {
        const auto lock = Lock::take(1s);
        char answer = lock ? 'y' : 'n';
        if (::write(ready[1], &answer, 1) != 1) ::_exit(1);
        ::pause();
        ::_exit(0);
    }
    char answer = 0;
    EXPECT_EQ(::read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
    return child;
}

TEST(Lock, IsTakenAndGivenBack) {
    in_own_network([] {
        for (int i = 0; i < 3; i++) {
            const auto lock = Lock::take(0ms);
            EXPECT_TRUE(lock) << lock.error().message;
            EXPECT_FALSE(Lock::take(0ms));
        }
    });
}

TEST(Lock, RefusalNamesTheHolder) {
    in_own_network([] {
        const pid_t child = holding_child();
        std::string told;
        const auto begin = std::chrono::steady_clock::now();
        const auto lock = Lock::take(300ms, [&](const std::string& holder) { told = holder; });
        const auto waited = std::chrono::steady_clock::now() - begin;
        ASSERT_FALSE(lock);
        EXPECT_EQ(lock.error().kind, ErrorKind::busy);
        const std::string process = fmt::format("process {} ", child);
        EXPECT_NE(lock.error().message.find(process), std::string::npos) << lock.error().message;
        EXPECT_NE(told.find(process), std::string::npos) << told;
        EXPECT_GE(waited, 290ms); // no upper bound, because that depends on the machine
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    });
}

TEST(Lock, DeathOfTheHolderFreesItAtOnce) {
    in_own_network([] {
        const pid_t child = holding_child();
        bool waited = false;
        // An hour's patience: if the test ends at all, the holder's end was enough.
        const auto lock = Lock::take(1h, [&](const std::string& /*holder*/) {
            waited = true;
            ::kill(child, SIGKILL);
        });
        EXPECT_TRUE(lock) << lock.error().message;
        EXPECT_TRUE(waited);
        ::waitpid(child, nullptr, 0);
    });
}

TEST(Lock, NetworkNamespacesDoNotDisturbEachOther) {
    in_own_network([] {
        const auto here = Lock::take(0ms);
        ASSERT_TRUE(here);
        ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
        EXPECT_TRUE(Lock::take(0ms));
    });
}

TEST(Lock, ManyTakersTakeTurns) {
    in_own_network([] {
        std::atomic<int> inside = 0, entered = 0, overlaps = 0;
        std::vector<std::thread> threads; // they inherit this thread's namespace
        for (int i = 0; i < 8; i++)
            threads.emplace_back([&] {
                const auto lock = Lock::take(1h);
                ASSERT_TRUE(lock) << lock.error().message;
                if (inside++ != 0) overlaps++;
                std::this_thread::sleep_for(10ms);
                inside--;
                entered++;
            });
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(entered, 8);
        EXPECT_EQ(overlaps, 0);
    });
}

// Runs the body in a child without privileges; returns the child's exit code.
int as_nobody(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::setgid(65534) == 0 && ::setuid(65534) == 0 ? body() : 100);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Lock, NobodyButRootCanHoldOrHinderIt) {
    in_own_network([] {
        const std::string path = fmt::format("{}/{}", Lock::folder, Lock::file_name().value());
        // Not even while the file is there.
        const auto held = Lock::take(0ms);
        ASSERT_TRUE(held) << held.error().message;
        struct stat info {};
        ASSERT_EQ(::stat(path.c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777, 0600U);
        ASSERT_EQ(::stat(Lock::folder, &info), 0);
        EXPECT_EQ(info.st_mode & 0777, 0700U);
        EXPECT_EQ(as_nobody([&] { return ::open(path.c_str(), O_RDONLY) < 0 && errno == EACCES ? 0 : 1; }),
                  0);
        EXPECT_EQ(as_nobody([&] { return ::unlink(path.c_str()) != 0 ? 0 : 1; }), 0);
        EXPECT_EQ(as_nobody([] {
                      const auto lock = Lock::take(0ms);
                      return !lock && lock.error().kind == ErrorKind::not_permitted ? 0 : 1;
                  }),
                  0);
    });
}

// Any local user could once take this: the abstract address of the network namespace.
TEST(Lock, AnAbstractSocketDoesNotHinderIt) {
    in_own_network([] {
        const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        constexpr std::string_view name("\0xdp-sieve.controller", 21);
        name.copy(address.sun_path, name.size());
        ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                         static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
                  0);
        ASSERT_EQ(::listen(socket.get(), 0), 0);
        const auto lock = Lock::take(0ms);
        EXPECT_TRUE(lock) << lock.error().message;
    });
}

TEST(Lock, LeavesNoFileAndMindsNoStaleOne) {
    in_own_network([] {
        const std::string path = fmt::format("{}/{}", Lock::folder, Lock::file_name().value());
        { EXPECT_TRUE(Lock::take(0ms)); }
        EXPECT_NE(::access(path.c_str(), F_OK), 0);
        const pid_t child = holding_child();
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        EXPECT_EQ(::access(path.c_str(), F_OK), 0) << "who was killed cannot remove it";
        EXPECT_TRUE(Lock::take(0ms));
    });
}

TEST(Lock, AFolderThatOthersMayWriteToIsRefused) {
    in_own_network([] {
        { ASSERT_TRUE(Lock::take(0ms)); }
        ASSERT_EQ(::chmod(Lock::folder, 0777), 0);
        const auto lock = Lock::take(0ms);
        ASSERT_EQ(::chmod(Lock::folder, 0700), 0);
        ASSERT_FALSE(lock);
        EXPECT_EQ(lock.error().kind, ErrorKind::kernel_refused);
        EXPECT_NE(lock.error().message.find(Lock::folder), std::string::npos) << lock.error().message;
    });
}

// The folder takes one descriptor, the file another one.
TEST(Lock, NoDescriptorIsARefusal) {
    in_own_network([] {
        for (const std::size_t left : {0, 1}) {
            const rlim_t limit = test::descriptors_left(left);
            const auto lock = [&] {
                const test::Limit few(RLIMIT_NOFILE, limit);
                return Lock::take(1s);
            }();
            ASSERT_FALSE(lock) << left;
            EXPECT_EQ(lock.error().kind, ErrorKind::kernel_refused);
            EXPECT_NE(lock.error().message.find("the lock among controllers, "), std::string::npos)
                << lock.error().message;
        }
        EXPECT_TRUE(Lock::take(1s)); // nothing was left behind
    });
}

} // namespace
} // namespace sieve::kernel
