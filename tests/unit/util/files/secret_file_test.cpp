// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/files/secret_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

class SecretFile : public testing::Test {
  protected:
    test::Files files;
    const std::string path = files.path("key");

    void write(const std::string& text, mode_t mode = 0600) const {
        std::ofstream(path, std::ios::binary) << text;
        ::chmod(path.c_str(), mode);
    }
    // Says the file and what was expected, and never what was found.
    void expect_fault() const {
        const auto line = read_secret_line(path, "a word");
        expect_error(line, ErrorKind::bad_input);
        ASSERT_FALSE(line);
        EXPECT_EQ(line.error().message.find(path + ": "), 0U) << line.error().message;
        EXPECT_EQ(line.error().message.find("s3cret"), std::string::npos) << line.error().message;
    }
};

TEST_F(SecretFile, HoldsOneLine) {
    for (const std::string text : {"s3 crét", "s3 crét\n", "s3 crét\r\n", "s3 crét\n\n"}) {
        write(text, 0640);
        EXPECT_EQ(read_secret_line(path, "a word"), "s3 crét");
    }
    for (const std::string& text : {std::string(), std::string("\n"), std::string("\r\n")}) {
        write(text);
        expect_fault();
    }
    write("s3cret\nmore\n");
    expect_fault();
    for (const std::string& text :
         {std::string("s3cret\0x", 8), std::string("s3cret\tx"), std::string("s3cret\x7f")}) {
        write(text);
        expect_fault();
    }
    write(std::string(1025, 'x'));
    expect_fault();
}

TEST_F(SecretFile, IsForItsOwnerAlone) {
    for (const mode_t mode : {0644, 0622, 0660, 0602}) {
        write("s3cret\n", mode);
        expect_fault();
    }
    if (::geteuid() != 0) return;
    write("s3cret\n");
    ASSERT_EQ(::chown(path.c_str(), 1, 1), 0);
    EXPECT_EQ(read_secret_line(path, "a word").error().kind, ErrorKind::bad_input);
}

TEST_F(SecretFile, IsARegularFile) {
    expect_fault();
    ::mkfifo(path.c_str(), 0600);
    expect_fault();
}

TEST_F(SecretFile, MayHaveManyLines) {
    write("a\nb\n");
    EXPECT_EQ(read_secret_file(path, "lines", 4), "a\nb\n");
    EXPECT_FALSE(read_secret_file(path, "lines", 3));
}

} // namespace
} // namespace sieve
