// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/refusal.hpp"

#include <cerrno>

#include <gtest/gtest.h>

namespace sieve::kernel {
namespace {

TEST(Refusal, SaysWhatWhyAndWhatToDo) {
    for (const int error : {EPERM, -EPERM}) {
        const Error refused = refusal("loading it", error).value();
        EXPECT_EQ(refused.exit, Exit::kernel_refused);
        EXPECT_EQ(refused.message.find("loading it: Operation not permitted (errno 1); run it as root"), 0U)
            << refused.message;
    }
    EXPECT_EQ(refusal("it", EBUSY, "wait").value().message, "it: Device or resource busy (errno 16); wait");
    EXPECT_EQ(refusal("it", EBUSY).value().message, "it: Device or resource busy (errno 16)");
}

TEST(Refusal, IsOneLine) {
    for (int error = 1; error < 134; error++)
        EXPECT_EQ(refusal("it", error).value().message.find('\n'), std::string::npos) << error;
}

} // namespace
} // namespace sieve::kernel
