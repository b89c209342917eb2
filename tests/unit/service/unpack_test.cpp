// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Archives made by the usual tools.
#include "libsieve/service/unpack.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "libsieve/util/unique_fd.hpp"
#include "unit/control/files.hpp"

namespace sieve::service {
namespace {

using namespace std::string_literals;

constexpr UnpackLimits ample{.bytes = 100'000'000, .ratio = 1e9};

class Unpack : public testing::Test {
  protected:
    void shell(const std::string& command) const {
        const std::string line = "cd " + files_.path("") + " && { " + command + "; } >/dev/null 2>shell.log";
        ASSERT_EQ(std::system(line.c_str()), 0) << read("shell.log");
    }
    void write(const std::string& name, const std::string& content) const {
        std::ofstream(files_.path(name), std::ios::binary) << content;
    }
    [[nodiscard]] std::string read(const std::string& name) const {
        std::ostringstream text;
        text << std::ifstream(files_.path(name), std::ios::binary).rdbuf();
        return text.str();
    }
    // The unpacked file, or the reason why not.
    [[nodiscard]] std::string unpacked(const std::string& name, const UnpackLimits& limits = ample) const {
        const UniqueFd from(::open(files_.path(name).c_str(), O_RDONLY | O_CLOEXEC));
        const UniqueFd to(::memfd_create("to", MFD_CLOEXEC));
        const auto done = unpack(packing_of(read(name)), from.get(), to.get(), name, limits);
        if (!done) return done.error().message;
        std::string text(*done + 1, '\0'); // one more than there must be
        const ssize_t got = ::pread(to.get(), text.data(), text.size(), 0);
        text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        return text;
    }
    // Each prefix of the file, cut at some offsets, is refused.
    void refuse_every_cut(const std::string& name) const {
        const std::string whole = read(name);
        for (const std::size_t left : {whole.size() - 1, whole.size() - 4, whole.size() - 9, whole.size() / 2,
                                       whole.size() / 4, std::size_t{12}}) {
            write("cut", whole.substr(0, left));
            EXPECT_NE(unpacked("cut").find("cut: damaged or cut short: "), std::string::npos)
                << name << " " << left << " of " << whole.size() << ": " << unpacked("cut").substr(0, 100);
        }
    }
    [[nodiscard]] static std::string numbers() {
        std::string text;
        for (int i = 0; i < 20000; i++) text += std::to_string(i * 7919 % 100003) + "\n";
        return text;
    }

    sieve::test::Files files_;
};

TEST_F(Unpack, EveryPackingIsToldByItsFirstBytes) {
    write("list", numbers());
    shell("gzip -k list; zstd -q list; xz -k list; zip -q list.zip list");
    EXPECT_EQ(packing_of(read("list")), Packing::none);
    EXPECT_EQ(packing_of(read("list.gz")), Packing::gzip);
    EXPECT_EQ(packing_of(read("list.zst")), Packing::zstd);
    EXPECT_EQ(packing_of(read("list.xz")), Packing::xz);
    EXPECT_EQ(packing_of(read("list.zip")), Packing::zip);
    EXPECT_EQ(packing_of(""), Packing::none);
    EXPECT_EQ(packing_of("\x1f"), Packing::none);
    for (const char* name : {"list.gz", "list.zst", "list.xz", "list.zip"}) {
        EXPECT_EQ(unpacked(name), numbers()) << name;
        refuse_every_cut(name);
    }
}

TEST_F(Unpack, SeveralPiecesOneAfterTheOther) {
    write("a", "192.0.2.1\n");
    write("b", "192.0.2.2\n");
    shell("for f in a b; do gzip -k $f; zstd -q $f; xz -k $f; done");
    shell("cat a.gz b.gz >ab.gz; cat a.zst b.zst >ab.zst; cat a.xz b.xz >ab.xz");
    for (const char* name : {"ab.gz", "ab.zst", "ab.xz"})
        EXPECT_EQ(unpacked(name), "192.0.2.1\n192.0.2.2\n") << name;
}

TEST_F(Unpack, AZipsFilesAreOneListAndLinesStayWhole) {
    write("a", "192.0.2.1");
    write("empty", "");
    write("b", "192.0.2.2\n");
    shell("mkdir folder; printf 192.0.2.3 >folder/c; zip -q -r all.zip a empty b folder");
    EXPECT_EQ(unpacked("all.zip"), "192.0.2.1\n192.0.2.2\n192.0.2.3\n");
    shell("zip -q folder.zip folder");
    EXPECT_EQ(unpacked("folder.zip"), "folder.zip: the zip archive holds no file");
    shell("zip -q -P secret locked.zip a");
    EXPECT_NE(unpacked("locked.zip").find("damaged or cut short: zip"), std::string::npos);
}

TEST_F(Unpack, AChangedByteIsNoticed) {
    write("list", numbers());
    shell("gzip -k list; zstd -q --check list; xz -k list; zip -q list.zip list");
    for (const char* name : {"list.gz", "list.zst", "list.xz", "list.zip"}) {
        std::string bytes = read(name);
        bytes[bytes.size() / 2] ^= 0x10;
        write(name, bytes);
        EXPECT_NE(unpacked(name).find("damaged or cut short"), std::string::npos) << name;
    }
}

TEST_F(Unpack, WhatFollowsTheEndIsNoticed) {
    write("list", "192.0.2.1\n");
    shell("gzip -k list; zstd -q list; xz -k list; for f in list.*; do printf 192.0.2.2 >>$f; done");
    for (const char* name : {"list.gz", "list.zst", "list.xz"})
        EXPECT_NE(unpacked(name).find("damaged or cut short"), std::string::npos) << name << unpacked(name);
}

TEST_F(Unpack, ABombIsPutOut) {
    shell("head -c 5000000 /dev/zero >zero; gzip -k zero; zstd -q zero; xz -k -0 zero; zip -q zero.zip zero");
    for (const std::string name : {"zero.gz", "zero.zst", "zero.xz", "zero.zip"}) {
        EXPECT_EQ(unpacked(name, {.bytes = 4'999'999, .ratio = 1e9}),
                  name + ": unpacks to more than 4999999 bytes, the limit"s);
        EXPECT_NE(unpacked(name, {.bytes = ample.bytes, .ratio = 200}).find("more than 200 times as many"),
                  std::string::npos)
            << name;
        // In an archive, the last line of each file gets an end, too.
        EXPECT_EQ(unpacked(name).size(), 5'000'000U + (name == "zero.zip"s ? 1 : 0)) << name;
    }
    // A small list may shrink without limit.
    shell("head -c 1000000 /dev/zero | zstd -q >small.zst");
    EXPECT_EQ(unpacked("small.zst", {.bytes = ample.bytes, .ratio = 2}).size(), 1'000'000U);
}

TEST(Html, IsToldFromLists) {
    for (const char* page : {"<!DOCTYPE html>", "<!doctype HTML PUBLIC", "<html lang=en>", "\r\n \t<HTML>",
                             "\xef\xbb\xbf<html>", "<head>", "<?xml version", "<!-- saved -->"})
        EXPECT_TRUE(looks_like_html(page)) << page;
    for (const char* list : {"", "192.0.2.1\n", "# <html>\n", "<", "{\"cidr\":\"192.0.2.0/24\"}", "\n\n"})
        EXPECT_FALSE(looks_like_html(list)) << list;
}

} // namespace
} // namespace sieve::service
