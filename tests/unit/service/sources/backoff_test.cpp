// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/backoff.hpp"

#include <gtest/gtest.h>

namespace sieve::service {
namespace {

using namespace std::chrono_literals;

constexpr BackoffLimits limits{.first = 10s, .most = 100s, .most_asked_for = 1000s};

TEST(Backoff, DoublesUpToTheMost) {
    // The largest draw comes close to the whole wait. The smallest draw is half of it.
    EXPECT_EQ(backoff_delay(1, 0, {}, limits), 5s);
    EXPECT_EQ(backoff_delay(2, 0, {}, limits), 10s);
    EXPECT_EQ(backoff_delay(3, 0, {}, limits), 20s);
    EXPECT_EQ(backoff_delay(4, 0, {}, limits), 40s);
    EXPECT_EQ(backoff_delay(5, 0, {}, limits), 50s);
    EXPECT_EQ(backoff_delay(1000000000, 0, {}, limits), 50s);
    EXPECT_EQ(backoff_delay(0, 0, {}, limits), 5s);
    EXPECT_EQ(backoff_delay(4, 0.5, {}, limits), 60s);
    EXPECT_EQ(backoff_delay(4, 0.999, {}, limits), 79960ms);
}

TEST(Backoff, AServersWordIsTheLeast) {
    EXPECT_EQ(backoff_delay(1, 0, 30s, limits), 30s);
    EXPECT_EQ(backoff_delay(1, 0.5, 30s, limits), 31500ms);
    EXPECT_EQ(backoff_delay(5, 0, 30s, limits), 50s) << "failures make it longer";
    EXPECT_EQ(backoff_delay(1, 0, 500s, limits), 500s) << "also than the most";
    EXPECT_EQ(backoff_delay(1, 0, -5s, limits), 5s);
}

// Those that it sends away together still do not come back together.
TEST(Backoff, AServersWordHasALimitToo) {
    for (const std::chrono::seconds word : {950s, 1000s, std::chrono::seconds::max()}) {
        EXPECT_EQ(backoff_delay(1, 0, word, limits), 900s);
        EXPECT_EQ(backoff_delay(1, 0.5, word, limits), 945s);
        EXPECT_LE(backoff_delay(1, 0.999, word, limits), 1000s);
    }
    EXPECT_EQ(backoff_delay(1, 0, std::chrono::seconds::max()), 54min) << "an hour, if nobody says more";
}

TEST(Backoff, AnIntervalIsSpreadEvenly) {
    EXPECT_EQ(jittered(100s, 0), 90s);
    EXPECT_EQ(jittered(100s, 0.5), 100s);
    EXPECT_EQ(jittered(100s, 0.75), 105s);
    EXPECT_EQ(jittered(100s, 0.75, 0), 100s);
}

} // namespace
} // namespace sieve::service
