// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/refusal.hpp"

#include <cerrno>

#include <gtest/gtest.h>

namespace sieve::kernel {
namespace {

TEST(Refusal, SaysWhatWhyAndWhatHelps) {
    for (const int error : {EINVAL, -EINVAL}) {
        const Error refused = refusal("loading it", error).value();
        EXPECT_EQ(refused.kind, ErrorKind::kernel_refused);
        EXPECT_EQ(refused.message.find("loading it: Invalid argument (errno 22); Linux"), 0U)
            << refused.message;
    }
    EXPECT_EQ(refusal("it", EBUSY, "wait").value().message, "it: Device or resource busy (errno 16); wait");
    EXPECT_EQ(refusal("it", EBUSY).value().message, "it: Device or resource busy (errno 16)");
}

// The front end advises which privileges a caller needs, and how to get them.
TEST(Refusal, ForLackOfRightsIsAKindOfItsOwn) {
    for (const int error : {EPERM, -EPERM, EACCES}) {
        const Error refused = refusal("loading it", error).value();
        EXPECT_EQ(refused.kind, ErrorKind::not_permitted);
        EXPECT_EQ(refused.message.find("root"), std::string::npos) << refused.message;
    }
}

TEST(Refusal, IsOneLine) {
    for (int error = 1; error < 134; error++)
        EXPECT_EQ(refusal("it", error).value().message.find('\n'), std::string::npos) << error;
}

} // namespace
} // namespace sieve::kernel
