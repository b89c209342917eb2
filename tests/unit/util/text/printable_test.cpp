// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/text/printable.hpp"

#include <gtest/gtest.h>

namespace sieve {
namespace {

TEST(Printable, KnowsWhatControlsATerminal) {
    for (int byte = 0; byte < 256; byte++)
        EXPECT_EQ(is_control(static_cast<char>(byte)), byte < 0x20 || byte == 0x7f) << byte;
    EXPECT_FALSE(has_control(""));
    EXPECT_FALSE(has_control("Grüße, ~"));
    for (const char* text : {"\n", "a\tb", "a\x1b[2J", "a\x7f"}) EXPECT_TRUE(has_control(text)) << text;
    EXPECT_TRUE(has_control(std::string_view("a\0", 2)));
}

TEST(Printable, EscapesAndCuts) {
    EXPECT_EQ(printable("a b~"), "a b~");
    EXPECT_EQ(printable("\t\n\x7f\xff"), "\\t\\x0a\\x7f\\xff");
    EXPECT_EQ(printable("abcdef", 3), "abc...");
    EXPECT_EQ(printable("abc", 3), "abc");
}

} // namespace
} // namespace sieve
