// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/deferred_signals.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

namespace sieve {
namespace {

template <class Work>
int status_of_child(const Work& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        work();
        ::_exit(0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
}

TEST(DeferredSignals, WaitUntilTheLastObjectEnds) {
    const int status = status_of_child([] {
        std::optional<DeferredSignals> first, second;
        first.emplace();
        second.emplace();
        (void)::raise(SIGTERM);
        if (!first->pending()) ::_exit(1);
        first.reset();
        if (!second->pending()) ::_exit(2);
        second.reset();
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

// Another thread's object does not end in the child, so the child would never see SIGTERM.
TEST(DeferredSignals, AChildDoesNotDeferForOtherThreadsOfItsParent) {
    std::atomic<bool> begun = false, end = false;
    std::thread other([&] {
        const DeferredSignals signals;
        begun = true;
        while (!end) std::this_thread::yield();
    });
    while (!begun) std::this_thread::yield();
    const int status = status_of_child([] { (void)::raise(SIGTERM); });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
    end = true;
    other.join();
}

TEST(DeferredSignals, AChildGoesOnToDeferForItself) {
    const int status = status_of_child([] {
        std::optional<DeferredSignals> signals;
        signals.emplace();
        const int inner = status_of_child([&] {
            (void)::raise(SIGTERM);
            if (!signals->pending()) ::_exit(1);
        });
        if (inner != 0) ::_exit(1);
    });
    EXPECT_EQ(status, 0);
}

} // namespace
} // namespace sieve
