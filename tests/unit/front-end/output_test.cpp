// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/console/output.hpp"

#include <gtest/gtest.h>

namespace sieve::cli {
namespace {

std::string printed(const std::string& text) {
    testing::internal::CaptureStderr();
    print_error("xdp-sieve: {}\n", text);
    return testing::internal::GetCapturedStderr();
}

TEST(PrintError, ATerminalObeysNoByteFromOutside) {
    EXPECT_EQ(printed("interface eth0: no"), "xdp-sieve: interface eth0: no\n");
    EXPECT_EQ(printed("`b\x1b[31m`: no"), "xdp-sieve: `b\\x1b[31m`: no\n");
    EXPECT_EQ(printed("\r\b\a\x7f\x9b\t"), "xdp-sieve: \\x0d\\x08\\x07\\x7f\\x9b\\t\n");
    EXPECT_EQ(printed(std::string(1000, 'x')), "xdp-sieve: " + std::string(1000, 'x') + "\n");
}

// The verifier's log has several lines. A line from outside does not look like a message.
TEST(PrintError, FurtherLinesAreIndented) {
    EXPECT_EQ(printed("the log:\na\n"), "xdp-sieve: the log:\n  a\n  \n");
    EXPECT_EQ(printed("b\nxdp-sieve: loaded"), "xdp-sieve: b\n  xdp-sieve: loaded\n");
}

} // namespace
} // namespace sieve::cli
