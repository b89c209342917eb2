// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/system/small_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "libsieve/util/system/unique_fd.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

class SmallFile : public testing::Test {
  protected:
    test::Files files;
    const std::string path = files.path("file");

    void write(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }
};

TEST_F(SmallFile, TheWholeText) {
    for (const std::string& text : {std::string(), std::string("a\0b\n", 4), std::string(200000, 'x')}) {
        write(text);
        EXPECT_EQ(read_small_file(path, 200000).value(), text);
    }
}

TEST_F(SmallFile, NothingIsThere) {
    EXPECT_EQ(read_small_file(path, 8).value(), std::nullopt);
    write("");
    EXPECT_EQ(read_small_file(path + "/below", 8).value(), std::nullopt);
}

TEST_F(SmallFile, AFileWithoutASizeIsReadToItsEnd) {
    EXPECT_NE(read_small_file("/proc/self/status", 1 << 20).value().value().find("\nPid:"),
              std::string::npos);
}

TEST_F(SmallFile, TheLimit) {
    write("12345678");
    EXPECT_EQ(read_small_file(path, 8).value(), "12345678");
    write("123456789");
    expect_error(read_small_file(path, 8), ErrorKind::bad_input);
}

TEST_F(SmallFile, WhatIsNoFileIsNotWaitedFor) {
    std::filesystem::create_directory(path);
    expect_error(read_small_file(path, 8), ErrorKind::bad_input);
    std::filesystem::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    expect_error(read_small_file(path, 8), ErrorKind::bad_input);
}

TEST_F(SmallFile, AnErrorOfReadingIsAnError) {
    // The memory at address 0 is nobody's.
    expect_error(read_small_file("/proc/self/mem", 8), ErrorKind::kernel_refused);
}

} // namespace
} // namespace sieve
