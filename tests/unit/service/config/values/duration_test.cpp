// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/values/duration.hpp"

#include <gtest/gtest.h>

namespace sieve::service {
namespace {

TEST(Duration, TakesANumberAndAUnit) {
    EXPECT_EQ(parse_duration("30s"), std::chrono::seconds(30));
    EXPECT_EQ(parse_duration("5m"), std::chrono::seconds(300));
    EXPECT_EQ(parse_duration("1h"), std::chrono::seconds(3600));
    EXPECT_EQ(parse_duration("2d"), std::chrono::seconds(172800));
    EXPECT_EQ(parse_duration("1w"), std::chrono::seconds(604800));
    EXPECT_EQ(parse_duration("3650d"), std::chrono::seconds(315360000));
}

TEST(Duration, TakesNothingElse) {
    for (const char* text :
         {"", "s", "5", "-5s", "5 s", "1.5h", "5y", "5S", "1h30m", "3651d", "99999999999999999999s"})
        EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Duration, ReadsBackToTheSame) {
    EXPECT_EQ(duration_text(std::chrono::seconds(90)), "90s");
    EXPECT_EQ(duration_text(std::chrono::seconds(7200)), "2h");
    EXPECT_EQ(duration_text(std::chrono::seconds(0)), "0s");
    for (const int seconds : {1, 59, 60, 61, 3600, 86400, 604800, 604801})
        EXPECT_EQ(parse_duration(duration_text(std::chrono::seconds(seconds))),
                  std::chrono::seconds(seconds));
}

} // namespace
} // namespace sieve::service
