// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/words.hpp"

#include <gtest/gtest.h>

namespace sieve::service::watching {
namespace {

TEST(Words, CountsAreReadable) {
    EXPECT_EQ(whole_count(0), "0");
    EXPECT_EQ(whole_count(999), "999");
    EXPECT_EQ(whole_count(1234567), "1,234,567");
    EXPECT_EQ(short_count(0), "0");
    EXPECT_EQ(short_count(0.25), "0.2");
    EXPECT_EQ(short_count(7), "7");
    EXPECT_EQ(short_count(9.5), "9.5");
    EXPECT_EQ(short_count(9876), "9,876");
    EXPECT_EQ(short_count(12345), "12.3 k");
    EXPECT_EQ(short_count(999600), "1.00 M");
    EXPECT_EQ(short_count(1.5e19), "15000 P");
    EXPECT_EQ(short_bytes(512), "512 B");
    EXPECT_EQ(short_bytes(1024 * 1024 * 3.5), "3.50 MiB");
}

TEST(Words, RatesAreOneIn) {
    EXPECT_EQ(one_in(0), "none");
    EXPECT_EQ(one_in(3.9e-5), "1 in 25,641");
    EXPECT_EQ(one_in(0.4), "1 in 2.5");
    EXPECT_EQ(one_in(1e-10), "1 in 10.0 G");
    EXPECT_EQ(percent(0), "0 %");
    EXPECT_EQ(percent(0.00001), "< 0.01 %");
    EXPECT_EQ(percent(0.005), "0.50 %");
    EXPECT_EQ(percent(0.123), "12.3 %");
    EXPECT_EQ(percent(1), "100 %");
}

TEST(Words, TimesAreSpans) {
    using std::chrono::hours;
    using std::chrono::seconds;
    EXPECT_EQ(span_text(seconds(12)), "12 s");
    EXPECT_EQ(span_text(seconds(200)), "3 min");
    EXPECT_EQ(span_text(hours(5)), "5 h");
    EXPECT_EQ(span_text(hours(72)), "3 days");
    EXPECT_EQ(span_text(seconds(-5)), "0 s"); // a clock that was set back
    EXPECT_EQ(short_span(Seconds(0.0012)), "1.2 ms");
    EXPECT_EQ(short_span(Seconds(0.34)), "340 ms");
    EXPECT_EQ(short_span(Seconds(2.06)), "2.1 s");
    const Clock::time_point at{seconds(1'700'000'000)};
    EXPECT_EQ(ago(at, at), "just now");
    EXPECT_EQ(ago(at, at + seconds(200)), "3 min ago");
    EXPECT_EQ(utc_time(at), "2023-11-14 22:13:20 UTC");
}

} // namespace
} // namespace sieve::service::watching
