// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "unit/messages.hpp"

#include <filesystem>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace sieve {
namespace {

TEST(Messages, AreOfTestsThatExist) {
    EXPECT_EQ(test::stale_messages(), std::vector<std::string>{});
}

TEST(Messages, AreLinesThatDoNotVary) {
    const std::string folder = std::filesystem::temp_directory_path();
    EXPECT_EQ(
        test::entry_of({folder + "/sieve-1/a.txt:1: no", folder + "/b: " + folder + "/c", "two\nlines"}),
        (std::vector<std::string>{"DIR/a.txt:1: no", "DIR: DIR", "two\\nlines"}));
    EXPECT_EQ(test::entry_of({"a", "a", "b", "a"}), (std::vector<std::string>{"2 times a", "b", "a"}));
    EXPECT_EQ(test::entry_of({std::filesystem::current_path() / "x", "a: damaged or cut short: zip: bad CRC",
                              "a: damaged or cut short: zip: no end"}),
              (std::vector<std::string>{"HERE/x", "2 times a: damaged or cut short: zip: ..."}));
}

TEST(Messages, DifferInOneLine) {
    EXPECT_EQ(test::difference({"a", "b"}, {"a", "b"}), "");
    EXPECT_EQ(test::difference({"a", "b", "c"}, {"a", "x", "c"}), "- b\n+ x\n");
    EXPECT_EQ(test::difference({"a", "b"}, {"a"}), "- b\n");
    EXPECT_EQ(test::difference({"a"}, {"a", "a"}), "+ a\n");
    EXPECT_EQ(test::difference({}, {"a"}), "+ a\n");
}

TEST(Messages, AreNotedWithTheirKind) {
    EXPECT_NONFATAL_FAILURE(expect_error(Error{.message = "x"}, ErrorKind::busy), "expected busy");
    EXPECT_NONFATAL_FAILURE(expect_error(Result<int>(1), ErrorKind::busy), "no error");
    EXPECT_NONFATAL_FAILURE(expect_says(std::string()), "no message");
}

} // namespace
} // namespace sieve
