// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/cycle_log.hpp"

#include <gtest/gtest.h>

namespace sieve::service {
namespace {

TEST(CycleLog, NamesASetOnce) {
    for (const char* said :
         {"its list is empty", "set bad: its list is empty", "refused: set bad: its list is empty"})
        EXPECT_EQ(about_set("bad", said), "set bad: its list is empty");
    EXPECT_EQ(about_set("bad", "set worse: its list is empty"), "set bad: set worse: its list is empty");
}

} // namespace
} // namespace sieve::service
