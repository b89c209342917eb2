// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/capabilities.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

namespace sieve::kernel {
namespace {

TEST(Capabilities, WhoRunsTheseTestsMayLoadPrograms) {
    const Status allowed = may_load_programs();
    EXPECT_TRUE(allowed) << allowed.error().message;
}

TEST(Capabilities, NobodyMayNot) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
        const Status refused = may_load_programs();
        ::_exit(!refused && refused.error().kind == ErrorKind::not_permitted ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
} // namespace sieve::kernel
