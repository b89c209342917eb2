// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/grace_period.hpp"

#include <gtest/gtest.h>

#include "bpf/scarce.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

// Waiting takes two descriptors and gives them back.
TEST(GracePeriod, NeedsTwoDescriptors) {
    for (const std::size_t left : {0, 1, 2}) {
        const rlim_t limit = descriptors_left(left);
        const Status passed = [&] {
            const Limit few(RLIMIT_NOFILE, limit);
            return grace_period();
        }();
        EXPECT_EQ(passed.has_value(), left == 2) << left;
        if (!passed) {
            EXPECT_NE(passed.error().message.find("a small BPF map to wait with"), std::string::npos)
                << passed.error().message;
        }
        EXPECT_EQ(descriptors_left(left), limit) << left;
    }
}

} // namespace
} // namespace sieve::kernel
