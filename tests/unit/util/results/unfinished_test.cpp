// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/results/unfinished.hpp"

#include <new>

#include <gtest/gtest.h>

#include "unit/messages.hpp"

namespace sieve {
namespace {

TEST(Unfinished, TellsWhatHoldsAndWhy) {
    const Error why{ErrorKind::kernel_refused, "waiting: no memory", {}};
    const Error error = unfinished("the new table is in force", why).value();
    expect_error(error, ErrorKind::unfinished);
    const Error unknown = outcome_unknown("attaching to eth0", why).value();
    expect_error(unknown, ErrorKind::unfinished);
}

TEST(Unfinished, AShortageBecomesAnError) {
    const Status done = without_throwing([]() -> Status { throw std::bad_alloc(); });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::out_of_memory);
    EXPECT_EQ(*without_throwing([]() -> Result<int> { return 7; }), 7);
}

} // namespace
} // namespace sieve
