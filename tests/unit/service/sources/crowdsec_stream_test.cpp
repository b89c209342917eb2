// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/crowdsec_stream.hpp"

#include <gtest/gtest.h>

namespace sieve::service::live {
namespace {

using namespace std::chrono_literals;
using Ask = CrowdsecStream::Ask;

TEST(CrowdsecStream, AsksForAllFirstAndThenForDifferences) {
    CrowdsecStream stream(10s);
    Time now(1000s);
    EXPECT_LE(stream.next_poll(), now);
    EXPECT_EQ(stream.next_ask(now), Ask::whole_list);
    stream.taken(Ask::whole_list, now);
    EXPECT_TRUE(stream.in_step());
    EXPECT_EQ(stream.next_poll(), now + 10s);
    EXPECT_EQ(stream.next_ask(now + 10s), Ask::difference);
    stream.taken(Ask::difference, now + 10s);
    EXPECT_EQ(stream.next_ask(now + 20s), Ask::difference);
}

TEST(CrowdsecStream, AfterAFailureItAsksForAllAgain) {
    CrowdsecStream stream(10s);
    const Time now(1000s);
    stream.taken(Ask::whole_list, now);
    stream.failed(now + 10s, 0);
    EXPECT_FALSE(stream.in_step());
    EXPECT_EQ(stream.failures(), 1U);
    EXPECT_EQ(stream.next_ask(now + 20s), Ask::whole_list);
    stream.taken(Ask::whole_list, now + 20s);
    EXPECT_EQ(stream.failures(), 0U);
    EXPECT_EQ(stream.next_ask(now + 30s), Ask::difference);
}

TEST(CrowdsecStream, WaitsLongerAfterEachFailureButNotForEver) {
    CrowdsecStream stream(10s);
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

TEST(CrowdsecStream, AsksForAllEveryHour) {
    CrowdsecStream stream(10s);
    const Time now(1000s);
    stream.taken(Ask::whole_list, now);
    stream.taken(Ask::difference, now + 59min);
    EXPECT_EQ(stream.next_ask(now + 59min), Ask::difference);
    EXPECT_EQ(stream.next_ask(now + 60min), Ask::whole_list);
}

} // namespace
} // namespace sieve::service::live
