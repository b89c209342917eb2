// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/unfinished.hpp"

#include <new>

#include <gtest/gtest.h>

namespace sieve {
namespace {

TEST(Unfinished, TellsWhatHoldsAndWhy) {
    const Error why{ErrorKind::kernel_refused, "waiting: no memory", {}};
    const Error error = unfinished("the new table is in force", why).value();
    EXPECT_EQ(error.kind, ErrorKind::unfinished);
    EXPECT_EQ(error.message, "the new table is in force: waiting: no memory");
    const Error unknown = outcome_unknown("attaching to eth0", why).value();
    EXPECT_EQ(unknown.kind, ErrorKind::unfinished);
    EXPECT_NE(unknown.message.find("is not known"), std::string::npos);
}

TEST(Unfinished, AShortageBecomesAnError) {
    const Status done = without_throwing([]() -> Status { throw std::bad_alloc(); });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::out_of_memory);
    EXPECT_EQ(*without_throwing([]() -> Result<int> { return 7; }), 7);
}

} // namespace
} // namespace sieve
