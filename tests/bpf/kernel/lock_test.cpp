// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/lock.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/own_network.hpp"

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
        EXPECT_EQ(lock.error().exit, Exit::kernel_refused);
        const std::string process = fmt::format("process {} ", child);
        EXPECT_NE(lock.error().message.find(process), std::string::npos) << lock.error().message;
        EXPECT_NE(told.find(process), std::string::npos) << told;
        EXPECT_GE(waited, 290ms); // nothing is said of the most: that depends on the machine
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    });
}

TEST(Lock, DeathOfTheHolderFreesItAtOnce) {
    in_own_network([] {
        const pid_t child = holding_child();
        bool waited = false;
        // Patience for an hour: the test's own end tells that the holder's was enough.
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

} // namespace
} // namespace sieve::kernel
