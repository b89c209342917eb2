// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/source_schedule.hpp"

#include <gtest/gtest.h>

namespace sieve::service::live {
namespace {

using namespace std::chrono_literals;
using Fetch = SourceSchedule::Fetch;

TEST(SourceSchedule, AsksForAllFirstAndThenForDifferences) {
    SourceSchedule stream(10s);
    Time now(1000s);
    EXPECT_LE(stream.next_poll(), now);
    EXPECT_EQ(stream.next_fetch(now), Fetch::whole_list);
    stream.taken(Fetch::whole_list, now);
    EXPECT_TRUE(stream.in_step());
    EXPECT_EQ(stream.next_poll(), now + 10s);
    EXPECT_EQ(stream.next_fetch(now + 10s), Fetch::difference);
    stream.taken(Fetch::difference, now + 10s);
    EXPECT_EQ(stream.next_fetch(now + 20s), Fetch::difference);
}

TEST(SourceSchedule, AfterAFailureItAsksForAllAgain) {
    SourceSchedule stream(10s);
    const Time now(1000s);
    stream.taken(Fetch::whole_list, now);
    stream.failed(now + 10s, 0);
    EXPECT_FALSE(stream.in_step());
    EXPECT_EQ(stream.failures(), 1U);
    EXPECT_EQ(stream.next_fetch(now + 20s), Fetch::whole_list);
    stream.taken(Fetch::whole_list, now + 20s);
    EXPECT_EQ(stream.failures(), 0U);
    EXPECT_EQ(stream.next_fetch(now + 30s), Fetch::difference);
}

TEST(SourceSchedule, WaitsLongerAfterEachFailureButNotForEver) {
    SourceSchedule stream(10s);
    const Time now(1000s);
    auto before = 0ms;
    for (int i = 0; i < 3; i++) {
        stream.failed(now, 0);
        EXPECT_GT(stream.next_poll() - now, before);
        before = stream.next_poll() - now;
    }
    for (int i = 0; i < 100; i++) stream.failed(now, 0.999);
    EXPECT_LE(stream.next_poll() - now, 60s);
    stream.failed(now, 0, 120s);
    EXPECT_GE(stream.next_poll() - now, 120s);
}

// docs/service.md says that of every list.
TEST(SourceSchedule, ListsAreAskedForAgainWithinTheirRefreshAndWithinAnHour) {
    const Time now(1000s);
    for (const auto refresh : {std::chrono::milliseconds(5s), std::chrono::milliseconds(24h)}) {
        SourceSchedule lists = SourceSchedule::of_lists(refresh);
        const auto most = std::min<std::chrono::milliseconds>(refresh, 1h);
        lists.failed(now, 0.999);
        EXPECT_LE(lists.next_poll() - now, std::min<std::chrono::milliseconds>(most, 10s));
        for (int i = 0; i < 100; i++) lists.failed(now, 0.999);
        EXPECT_LE(lists.next_poll() - now, most);
        lists.failed(now, 0.999, 100h);
        EXPECT_LE(lists.next_poll() - now, most);
        lists.taken(Fetch::whole_list, now, 0);
        EXPECT_EQ(lists.next_poll() - now, refresh * 9 / 10);
        lists.taken(Fetch::whole_list, now, 0.999);
        EXPECT_GT(lists.next_poll() - now, refresh);
    }
}

TEST(SourceSchedule, AsksForAllEveryHour) {
    SourceSchedule stream(10s);
    const Time now(1000s);
    stream.taken(Fetch::whole_list, now);
    stream.taken(Fetch::difference, now + 59min);
    EXPECT_EQ(stream.next_fetch(now + 59min), Fetch::difference);
    EXPECT_EQ(stream.next_fetch(now + 60min), Fetch::whole_list);
}

} // namespace
} // namespace sieve::service::live
