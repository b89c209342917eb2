// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/parallel/parallel.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/util/parallel/parallel_sort.hpp"

namespace sieve {
namespace {

// Returns when `wanted` bodies of a parallel call have come here, so that each of them has a thread of its
// own. The counter is relaxed: it makes no order between the bodies that ThreadSanitizer would see.
void meet(std::atomic<unsigned>& here, unsigned wanted) {
    here.fetch_add(1, std::memory_order_relaxed);
    while (here.load(std::memory_order_relaxed) < wanted) std::this_thread::yield();
}

TEST(ForEachIndex, CallsEachIndexOnce) {
    for (const std::size_t count : {0U, 1U, 2U, 1000U}) {
        std::vector<int> calls(count);
        for_each_index(count, [&](std::size_t i) { calls[i]++; });
        EXPECT_EQ(calls, std::vector<int>(count, 1));
    }
}

// Plain variables, written before the call and in it: ThreadSanitizer would report a missing order.
TEST(ForEachIndex, BodiesSeeWhatWasBeforeAndTheCallerSeesWhatTheyDid) {
    const ThreadLimit limit(2);
    std::vector<int> from(2), to(2);
    for (int round = 1; round < 50; round++) {
        std::atomic<unsigned> here = 0;
        from = {round, 2 * round};
        for_each_index(2, [&](std::size_t i) {
            meet(here, 2);
            to[1 - i] = from[i];
        });
        EXPECT_EQ(to, (std::vector<int>{2 * round, round}));
    }
}

TEST(ForEachIndex, PassesOnWhatABodyThrows) {
    std::vector<int> done(100);
    EXPECT_THROW(for_each_index(100,
                                [&](std::size_t i) {
                                    if (i == 40) throw std::runtime_error("forty");
                                    done[i] = 1;
                                }),
                 std::runtime_error);
    EXPECT_EQ(done[40], 0);
}

// The bodies give way to other threads, so that a second thread would take some of them.
TEST(ThreadLimit, OfOneKeepsEverythingOnOneThread) {
    const ThreadLimit limit(1);
    std::vector<std::thread::id> ran(200);
    for_each_index(ran.size(), [&](std::size_t i) {
        for (int turn = 0; turn < 50; turn++) std::this_thread::yield();
        ran[i] = std::this_thread::get_id();
    });
    EXPECT_EQ(ran, std::vector<std::thread::id>(ran.size(), std::this_thread::get_id()));
}

// Items take turns in few slots; each stage changes the plain data of its item.
TEST(RunInOrder, PassesEachItemThroughAllStagesInOrder) {
    for (const std::size_t threads : {1U, 2U, 5U}) {
        const std::size_t slots = 2 * threads;
        std::vector<std::uint64_t> item(slots);
        std::uint64_t filled = 0;
        std::vector<std::uint64_t> taken;
        run_in_order(threads, slots,
                     {.fill =
                          [&](std::size_t slot) {
                              if (filled == 2000) return false;
                              item[slot] = filled++;
                              return true;
                          },
                      .work = [&](std::size_t slot) { item[slot] = item[slot] * 3 + 1; },
                      .take =
                          [&](std::size_t slot) {
                              taken.push_back(item[slot]);
                              item[slot] = 0;
                              return true;
                          }});
        std::vector<std::uint64_t> expected(2000);
        for (std::size_t i = 0; i < expected.size(); i++) expected[i] = 3 * i + 1;
        EXPECT_EQ(taken, expected);
    }
}

TEST(RunInOrder, StopsWhenNoMoreIsWanted) {
    for (const std::size_t threads : {1U, 4U}) {
        std::size_t taken = 0;
        run_in_order(threads, 8,
                     {.fill = [](std::size_t) { return true; },
                      .work = [](std::size_t) {},
                      .take = [&](std::size_t) { return ++taken < 10; }});
        EXPECT_EQ(taken, 10U);
    }
}

TEST(RunInOrder, PassesOnWhatAStageThrows) {
    for (const std::size_t threads : {1U, 4U})
        EXPECT_THROW(run_in_order(threads, 8,
                                  {.fill = [](std::size_t) { return true; },
                                   .work = [](std::size_t) { throw std::runtime_error("no"); },
                                   .take = [](std::size_t) { return true; }}),
                     std::runtime_error);
}

TEST(SortInParallel, Sorts) {
    std::mt19937 random(1);
    std::vector<std::uint32_t> numbers(100'000);
    for (std::uint32_t& number : numbers) number = random();
    std::vector<std::uint32_t> expected = numbers;
    std::sort(expected.begin(), expected.end());
    sort_in_parallel(numbers.begin(), numbers.end(), std::less<>());
    EXPECT_EQ(numbers, expected);
}

#ifdef SIEVE_THREAD_SANITIZER
// The order that parallel.cpp promises must not hide a race between two bodies, nor between an item's work
// and the filling of another.
void race_of_bodies() {
    const ThreadLimit limit(2);
    std::atomic<unsigned> here = 0;
    int shared = 0;
    for_each_index(2, [&](std::size_t i) {
        meet(here, 2);
        shared += static_cast<int>(i) + 1;
    });
}

void race_of_works() {
    std::atomic<unsigned> here = 0;
    int items = 0, shared = 0;
    run_in_order(2, 4,
                 {.fill = [&](std::size_t) { return items++ < 2; },
                  .work =
                      [&](std::size_t) {
                          meet(here, 2);
                          shared++;
                      },
                  .take = [](std::size_t) { return true; }});
}

TEST(ParallelDeathTest, ThreadSanitizerSeesARaceBetweenTwoBodies) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(race_of_bodies(), testing::ExitedWithCode(66), "data race");
    EXPECT_EXIT(race_of_works(), testing::ExitedWithCode(66), "data race");
}
#endif

// The pool's locks are held most of the time here, by threads that a child does not have.
TEST(Fork, AChildWorksAloneWhereItsParentHasUsedThePool) {
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            while (!stop) {
                const ThreadLimit limit(2);
                for_each_index(4, [](std::size_t) {});
            }
        });
    for (int i = 0; i < 100; i++) {
        const pid_t child = ::fork();
        if (child == 0) {
            constexpr unsigned longest = 120; // seconds: ends a child that hangs
            ::alarm(longest);
            const ThreadLimit limit(4);
            std::atomic<std::size_t> sum = 0;
            for_each_index(100, [&](std::size_t index) { sum += index; });
            std::size_t items = 0, taken = 0;
            run_in_order(4, 8,
                         {.fill = [&](std::size_t) { return ++items <= 10; },
                          .work = [](std::size_t) {},
                          .take = [&](std::size_t) { return ++taken > 0; }});
            std::vector<int> numbers(10'000); // the library's sort asks the pool from 500 on
            std::iota(numbers.rbegin(), numbers.rend(), 0);
            sort_in_parallel(numbers.begin(), numbers.end(), std::less<>());
            ::_exit(sum == 4950 && taken == 10 && numbers[7] == 7 ? 0 : 1);
        }
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0) << "child " << i;
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
}

} // namespace
} // namespace sieve
