// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Archives made by the usual tools.
#include "libsieve/util/files/unpack.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve {
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
    [[nodiscard]] std::string unpacked(const std::string& name, const UnpackLimits& limits = ample,
                                       std::size_t piece = 100'000) const {
        const std::string bytes = read(name);
        std::size_t taken = 0;
        const auto give = [&](char* to, std::size_t size) -> Result<std::size_t> {
            size = std::min(size, bytes.size() - taken);
            std::memcpy(to, bytes.data() + taken, size);
            taken += size;
            return size;
        };
        const auto unpacker = Unpacker::of(packing_of(bytes), give, name, limits);
        if (!unpacker) return unpacker.error().message;
        std::string text;
        for (std::vector<char> buffer(piece);;) {
            const auto got = (*unpacker)->read(buffer.data(), buffer.size());
            if (!got) return got.error().message;
            if (*got == 0) break;
            text.append(buffer.data(), *got);
        }
        EXPECT_EQ((*unpacker)->consumed(), bytes.size());
        return text;
    }
    // Each prefix of the file, cut at some offsets, is refused.
    void refuse_every_cut(const std::string& name) const {
        const std::string whole = read(name);
        for (const std::size_t left : {whole.size() - 1, whole.size() - 4, whole.size() - 9, whole.size() / 2,
                                       whole.size() / 4, std::size_t{12}}) {
            write("cut", whole.substr(0, left));
            expect_says(unpacked("cut"));
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
        EXPECT_EQ(unpacked(name, ample, 1), numbers()) << name << " byte by byte";
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
    expect_says(unpacked("folder.zip"));
    shell("zip -q -P secret locked.zip a");
    expect_says(unpacked("locked.zip"));
    shell("ln -s a link; zip -q -y linked.zip link");
    expect_says(unpacked("linked.zip"));
}

// Each part's beginning is looked at, not only the first.
TEST_F(Unpack, AnArchiveWithinAnArchiveIsRefused) {
    write("a", "192.0.2.1\n");
    shell("gzip -k a; zstd -q a; xz -k a; printf BZh91AY >a.bz2; zip -q a.zip a; tar cf a.tar a");
    for (const std::string inner : {"gz", "zst", "xz", "bz2", "zip", "tar"}) {
        const std::string kind = inner == "gz"    ? "gzip"
                                 : inner == "zst" ? "zstd"
                                 : inner == "bz2" ? "bzip2"
                                                  : inner;
        shell("rm -f both.zip; gzip -c a." + inner + " >o.gz; xz -c a." + inner + " >o.xz; zstd -qfc a." +
              inner + " >o.zst; zip -q both.zip a a." + inner);
        for (const std::string outer : {"o.gz", "o.xz", "o.zst", "both.zip"}) expect_says(unpacked(outer));
    }
}

TEST_F(Unpack, AZipIsReadWholeUpToALimit) {
    write("list", numbers());
    shell("zip -q -0 list.zip list");
    const std::uint64_t size = read("list.zip").size();
    EXPECT_EQ(unpacked("list.zip", {.bytes = ample.bytes, .ratio = ample.ratio, .zip_bytes = size}),
              numbers());
    expect_says(unpacked("list.zip", {.bytes = ample.bytes, .ratio = ample.ratio, .zip_bytes = size - 1}));
}

TEST_F(Unpack, AnErrorOfTheSourceIsPassedOn) {
    write("list", numbers());
    shell("gzip -k list; zstd -q list; xz -k list; zip -q list.zip list");
    for (const char* name : {"list.gz", "list.zst", "list.xz", "list.zip"}) {
        const std::string bytes = read(name);
        bool begun = false;
        const auto give = [&](char* to, std::size_t) -> Result<std::size_t> {
            if (begun) return bad_input("the source failed");
            begun = true;
            std::memcpy(to, bytes.data(), 20);
            return std::size_t{20};
        };
        const auto unpacker = Unpacker::of(packing_of(bytes), give, name, ample);
        ASSERT_TRUE(unpacker);
        char buffer[100];
        const auto got = (*unpacker)->read(buffer, sizeof(buffer));
        ASSERT_FALSE(got) << name;
        EXPECT_EQ(got.error().message, "the source failed") << name;
    }
}

TEST_F(Unpack, AChangedByteIsNoticed) {
    write("list", numbers());
    shell("gzip -k list; zstd -q --check list; xz -k list; zip -q list.zip list");
    for (const char* name : {"list.gz", "list.zst", "list.xz", "list.zip"}) {
        std::string bytes = read(name);
        bytes[bytes.size() / 2] ^= 0x10;
        write(name, bytes);
        expect_says(unpacked(name));
    }
}

TEST_F(Unpack, WhatFollowsTheEndIsNoticed) {
    write("list", "192.0.2.1\n");
    shell("gzip -k list; zstd -q list; xz -k list; for f in list.*; do printf 192.0.2.2 >>$f; done");
    for (const char* name : {"list.gz", "list.zst", "list.xz"}) expect_says(unpacked(name));
}

// Its directory is at a zip archive's end, so nobody would read what is before it.
TEST_F(Unpack, AZipArchiveStandsAlone) {
    write("a", "192.0.2.1\n");
    write("b", "192.0.2.2\n");
    shell("zip -q a.zip a; zip -q b.zip b; cp b.zip told.zip; echo words | zip -q -z told.zip;"
          "zip -q - b <b >piped.zip; zip -q -fz long.zip b");
    for (const char* name : {"b.zip", "told.zip", "piped.zip", "long.zip"}) {
        EXPECT_EQ(unpacked(name), "192.0.2.2\n") << name;
        const std::string whole = read(name);
        for (const std::string& more : {read("a.zip") + whole, whole + read("a.zip"), whole + "\n",
                                        whole + std::string(512, '\0'), whole.substr(0, 4) + whole}) {
            write("more", more);
            expect_says(unpacked("more"));
        }
    }
    shell("mkdir d; zip -q -r none.zip d; zip -q -d none.zip d/; cat a.zip none.zip >more");
    expect_says(unpacked("more"));
}

TEST_F(Unpack, ABombIsPutOut) {
    shell("head -c 5000000 /dev/zero >zero; gzip -k zero; zstd -q zero; xz -k -0 zero; zip -q zero.zip zero");
    for (const std::string name : {"zero.gz", "zero.zst", "zero.xz", "zero.zip"}) {
        expect_says(unpacked(name, {.bytes = 4'999'999, .ratio = 1e9}));
        expect_says(unpacked(name, {.bytes = ample.bytes, .ratio = 200}));
        // In an archive, the last line of each file gets an end, too.
        EXPECT_EQ(unpacked(name).size(), 5'000'000U + (name == "zero.zip"s ? 1 : 0)) << name;
    }
    // A small list may shrink without limit.
    shell("head -c 1000000 /dev/zero | zstd -q >small.zst");
    EXPECT_EQ(unpacked("small.zst", {.bytes = ample.bytes, .ratio = 2}).size(), 1'000'000U);
}

} // namespace
} // namespace sieve
