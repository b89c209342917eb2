// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/parallel/first_use.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace sieve {
namespace {

// Frees what stays otherwise.
struct Known {
    std::atomic<const std::string*> value = nullptr;
    ~Known() { std::unique_ptr<const std::string>{value.load()}.reset(); }
};

TEST(FirstUse, MakesTheValueOnce) {
    Known known;
    int made = 0;
    const auto make = [&] { return std::to_string(++made); };
    EXPECT_EQ(first_use(known.value, make), "1");
    EXPECT_EQ(&first_use(known.value, make), known.value.load());
    EXPECT_EQ(made, 1);
}

TEST(FirstUse, ThreadsThatComeAtTheSameTimeGetOneValue) {
    Known known;
    const std::string* inner = nullptr;
    const std::string& outer = first_use(known.value, [&] {
        inner = &first_use(known.value, [] { return std::string("first"); });
        return std::string("second");
    });
    EXPECT_EQ(outer, "first");
    EXPECT_EQ(&outer, inner);
}

TEST(FirstUse, AChildDoesNotWaitForAThreadOfItsParent) {
    Known known;
    std::atomic<bool> begun = false, end = false;
    std::thread other([&] {
        first_use(known.value, [&] {
            begun = true;
            while (!end) std::this_thread::yield();
            return std::string("parent");
        });
    });
    while (!begun) std::this_thread::yield();
    const pid_t child = ::fork();
    if (child == 0) {
        constexpr unsigned longest = 120; // seconds: ends a child that waits
        ::alarm(longest);
        ::_exit(first_use(known.value, [] { return std::string("child"); }) == "child" ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    end = true;
    other.join();
}

} // namespace
} // namespace sieve
