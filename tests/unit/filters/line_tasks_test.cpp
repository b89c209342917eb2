// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/line_tasks.hpp"

#include <algorithm>
#include <mutex>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include <sieve/blocked.h>

namespace sieve {
namespace {

sieve_lookup geometry(std::uint32_t choices, std::uint32_t lines, std::uint16_t alpha = 0xffff) {
    sieve_lookup lookup{};
    lookup.kind = SIEVE_KIND_BLOCKED;
    lookup.choices = static_cast<__u8>(choices);
    lookup.hashes = 8;
    lookup.buckets = lines;
    lookup.alpha = alpha;
    return lookup;
}

std::vector<sieve_hash> random_hashes(std::size_t count) {
    std::mt19937_64 random(count);
    std::vector<sieve_hash> hashes(count);
    for (auto& hash : hashes) hash = {random(), random()};
    return hashes;
}

bool less(const sieve_hash& a, const sieve_hash& b) {
    return std::tie(a.locate, a.test) < std::tie(b.locate, b.test);
}

struct Shape {
    std::uint32_t choices;
    std::uint32_t lines;
    std::uint16_t alpha;
};
class TasksOfLines : public testing::TestWithParam<Shape> {};

// Every key is in exactly one task, every task in exactly one step, and no two tasks of a step touch the same
// line. The test gathers the lines of each task the slow way, from the task's keys.
TEST_P(TasksOfLines, ShareNothingWithinAStep) {
    const sieve_lookup lookup = geometry(GetParam().choices, GetParam().lines, GetParam().alpha);
    std::vector<sieve_hash> keys = random_hashes(100'000);
    const LineTasks tasks(keys, lookup);

    std::vector<sieve_hash> grouped(tasks.keys().begin(), tasks.keys().end());
    std::sort(grouped.begin(), grouped.end(), less);
    std::sort(keys.begin(), keys.end(), less);
    ASSERT_TRUE(std::equal(keys.begin(), keys.end(), grouped.begin(), grouped.end(),
                           [](const auto& a, const auto& b) { return !less(a, b) && !less(b, a); }));

    std::vector<int> seen(tasks.keys().size());
    std::set<std::uint32_t> ran;
    for (std::size_t s = 0; s < tasks.steps(); s++) {
        std::vector<std::uint32_t> owner(lookup.buckets, ~0U);
        for (const std::uint32_t task : tasks.step(s)) {
            ASSERT_TRUE(ran.insert(task).second);
            for (std::size_t i = tasks.tasks()[task].begin; i < tasks.tasks()[task].end; i++) {
                seen[i]++;
                std::uint32_t at[SIEVE_MAX_CHOICES];
                sieve_blocked_locate(&lookup, tasks.keys()[i], at);
                for (std::uint32_t c = 0; c < GetParam().choices; c++) {
                    ASSERT_TRUE(owner[at[c]] == ~0U || owner[at[c]] == task) << "line " << at[c];
                    owner[at[c]] = task;
                }
            }
        }
    }
    EXPECT_EQ(ran.size(), tasks.tasks().size());
    EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Geometries, TasksOfLines,
                         testing::Values(Shape{1, 1, 0}, Shape{1, 50'000, 0}, Shape{2, 1, 0xffff},
                                         Shape{2, 1025, 0xffff}, Shape{2, 50'000, 0xffff},
                                         Shape{2, 50'000, 0x4000}, Shape{2, 3'000'000, 0xffff},
                                         Shape{3, 2, 0xffff}, Shape{3, 50'000, 0xffff},
                                         Shape{3, 50'000, 0x4000}, Shape{3, 3'000'000, 0xffff}));

TEST(LineTasks, RunsEachTaskOnceAndTellsHowFarItIs) {
    const std::vector<sieve_hash> keys = random_hashes(100'000);
    const LineTasks tasks(keys, geometry(2, 50'000));
    std::vector<int> runs(tasks.tasks().size());
    std::size_t told = 0;
    tasks.run([&](std::uint32_t task) { runs[task]++; },
              [&](std::size_t done) {
                  EXPECT_GT(done, told);
                  told = done;
              });
    EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](int count) { return count == 1; }));
    EXPECT_EQ(told, keys.size());
}

// All parts of a filter with two choices fill at the same pace: every region is in exactly one task of each
// step.
TEST(LineTasks, KeepRegionsInPace) {
    const std::vector<sieve_hash> keys = random_hashes(400'000);
    const sieve_lookup lookup = geometry(2, 25'000);
    const LineTasks tasks(keys, lookup);
    const std::uint32_t regions = tasks.regions();
    EXPECT_GT(regions, 20U);
    EXPECT_EQ(tasks.steps(), regions);
    for (std::size_t s = 0; s < tasks.steps(); s++) {
        std::set<std::uint32_t> busy;
        for (const std::uint32_t task : tasks.step(s)) {
            std::uint32_t at[SIEVE_MAX_CHOICES];
            sieve_blocked_locate(&lookup, tasks.keys()[tasks.tasks()[task].begin], at);
            busy.insert(tasks.region(at[0]));
            busy.insert(tasks.region(at[1]));
        }
        EXPECT_EQ(busy.size(), regions);
    }
}

// A region that is smaller than the others fills up first.
TEST(LineTasks, RegionsAreOfOneSize) {
    for (const std::uint32_t choices : {1U, 2U, 3U})
        for (const std::uint32_t lines : {1U, 2U, 1024U, 1025U, 1250U, 3073U, 50'000U, 1'000'003U}) {
            const LineTasks tasks(random_hashes(10), geometry(choices, lines));
            std::vector<std::uint32_t> sizes(tasks.regions());
            for (std::uint32_t line = 0; line < lines; line++) sizes.at(tasks.region(line))++;
            const auto [least, most] = std::ranges::minmax(sizes);
            EXPECT_GE(least, 1U) << lines;
            EXPECT_LE(most - least, 2U) << lines;
        }
}

} // namespace
} // namespace sieve
