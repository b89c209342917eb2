// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Packed lists, made by the usual tools, through the same reader as plain ones.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/find_keys.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

constexpr std::uint32_t src = SIEVE_FIELD_SRC;

class PackedFeed : public testing::Test {
  protected:
    // Runs a command in the folder.
    void shell(const std::string& command) const {
        const std::string line = "cd " + files.path("") + " && { " + command + "; } >/dev/null 2>&1";
        ASSERT_EQ(std::system(line.c_str()), 0) << command;
    }
    // The list in each packing.
    std::vector<std::string> pack(const std::string& name) const {
        shell("gzip -kf " + name + "; zstd -qf " + name + "; xz -kf " + name + "; zip -q " + name + ".zip " +
              name);
        std::vector<std::string> packed;
        for (const char* ending : {".gz", ".zst", ".xz", ".zip"}) packed.push_back(files.path(name + ending));
        return packed;
    }
    [[nodiscard]] std::string message(const Result<Feed>& feed) const {
        if (feed) return "no error";
        EXPECT_EQ(feed.error().kind, ErrorKind::bad_input);
        std::string text = feed.error().message;
        for (std::size_t at; (at = text.find(files.path(""))) != std::string::npos;)
            text.erase(at, files.path("").size());
        return text;
    }
    static std::vector<std::string> numbers(int count) {
        std::vector<std::string> lines;
        for (int i = 0; i < count; i++)
            lines.push_back(std::to_string(i * 7919 % 223 + 1) + "." + std::to_string(i / 65536) + "." +
                            std::to_string(i / 256 % 256) + "." + std::to_string(i % 256));
        return lines;
    }
    static void expect_same(const Feed& a, const Feed& b) {
        ASSERT_EQ(a.keys.size(), b.keys.size());
        for (std::size_t i = 0; i < a.keys.size(); i++)
            ASSERT_EQ(format_key(a.keys.at(i), src), format_key(b.keys.at(i), src)) << i;
        EXPECT_EQ(a.lines, b.lines);
        EXPECT_EQ(a.bytes, b.bytes);
    }

    test::Files files;
};

// More than a block, so that lines lie across what is unpacked at a time.
TEST_F(PackedFeed, IsReadLikeThePlainList) {
    const auto plain = read_feed({files.feed("list", numbers(60'000))}, src);
    ASSERT_TRUE(plain) << plain.error().message;
    for (const ListSyntax syntax : {ListSyntax::plain, ListSyntax::automatic})
        for (const std::string& path : pack("list")) {
            SCOPED_TRACE(path);
            double done = 0;
            FeedOptions options{.format = {syntax, {}}};
            options.progress = [&](std::string_view, double share) {
                EXPECT_GE(share, done);
                EXPECT_LE(share, 1);
                done = share;
            };
            const auto packed = read_feed({path}, src, options);
            ASSERT_TRUE(packed) << packed.error().message;
            expect_same(*packed, *plain);
            EXPECT_EQ(done, 1);
        }
}

// A pipe is read once, as it comes.
TEST_F(PackedFeed, MayComeThroughAPipe) {
    const auto plain = read_feed({files.feed("list", numbers(20'000))}, src);
    ASSERT_TRUE(plain);
    for (const std::string& path : pack("list")) {
        SCOPED_TRACE(path);
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        UniqueFd out(ends[1]);
        std::thread writer([&] {
            std::string bytes(1 << 20, '\0');
            const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
            const ssize_t size = ::read(file.get(), bytes.data(), bytes.size());
            for (ssize_t at = 0; at < size; at += 1000) // small pieces
                EXPECT_TRUE(
                    write_all(out.get(), std::string_view(bytes).substr(
                                             static_cast<std::size_t>(at),
                                             static_cast<std::size_t>(std::min<ssize_t>(1000, size - at)))));
            out = UniqueFd();
        });
        std::vector<Input> inputs;
        inputs.push_back(Input::of(UniqueFd(ends[0]), "a pipe").value());
        const auto packed = read_feed(inputs, src);
        writer.join();
        ASSERT_TRUE(packed) << packed.error().message;
        expect_same(*packed, *plain);
    }
}

TEST_F(PackedFeed, ItsFormatIsDecidedByWhatIsInIt) {
    files.feed("hosts", {"0.0.0.0 bad.example", "192.0.2.1 worse.example", "0.0.0.0 worst.example"});
    files.feed("cloud", {"{\"prefixes\": [", "{\"ip_prefix\": \"192.0.2.0/24\"},",
                         "{\"ip_prefix\": \"198.51.100.0/24\"}]}"});
    for (const std::string& path : pack("cloud")) {
        const auto feed = read_feed({path}, src, {.format = {}, .ranges = true});
        ASSERT_TRUE(feed) << feed.error().message;
        EXPECT_EQ(feed->ranges.size(), 2U) << path;
        ASSERT_EQ(feed->decided.size(), 1U);
        EXPECT_NE(feed->decided[0].find("(format json)"), std::string::npos) << feed->decided[0];
    }
    for (const std::string& path : pack("hosts")) {
        const auto feed = read_feed({path}, src, {.format = {}});
        ASSERT_TRUE(feed) << feed.error().message;
        EXPECT_EQ(feed->keys.size(), 1U) << path; // 0.0.0.0 leads nowhere
    }
}

TEST_F(PackedFeed, AZipsFilesAreOneListAndLinesAreCountedOverAll) {
    files.feed("a", {"192.0.2.1", "192.0.2.2"});
    files.feed("b", {"192.0.2.3"});
    files.feed("c", {"192.0.2.4", "nothing"});
    shell("mkdir folder; mv b folder; zip -q -r two.zip a folder; zip -q three.zip a folder/b c");
    const auto two = read_feed({files.path("two.zip")}, src);
    ASSERT_TRUE(two) << two.error().message;
    EXPECT_EQ(two->keys.size(), 3U);
    expect_error(read_feed({files.path("three.zip")}, src), ErrorKind::bad_input);
    const auto more = read_feed({files.path("two.zip"), files.feed("d", {"192.0.2.9"})}, src);
    ASSERT_TRUE(more);
    EXPECT_EQ(more->keys.size(), 4U);
}

TEST_F(PackedFeed, WhatIsNoPackedListSaysSo) {
    files.feed("list", {"192.0.2.1"});
    files.image("image", {"192.0.2.1"});
    shell("gzip -k list; gzip -k list.gz -c >twice; gzip -k image; tar cf - list | xz >tar.xz; : | gzip "
          ">empty.gz;"
          "head -c 20 list.gz >cut.gz; zip -q -P x locked.zip list; mkdir d; zip -q -r folder.zip d;"
          "head -c 100000000 /dev/zero | tr '\\0' '\\n' | zstd -q >bomb.zst; yes '#' | head -c 20000000 | "
          "gzip >dense.gz;"
          "head -c 100000000 /dev/zero | zstd -q >line.zst");
    const auto refused = [&](const std::string& name) {
        expect_error(read_feed({files.path(name)}, src), ErrorKind::bad_input);
    };
    refused("twice");
    refused("tar.xz");
    refused("image.gz");
    refused("empty.gz");
    refused("cut.gz");
    refused("locked.zip");
    refused("folder.zip");
    refused("bomb.zst");
    refused("line.zst");
    refused("dense.gz");
    // Malformed lines may be skipped; an archive that is none may not.
    expect_error(read_feed({files.path("cut.gz")}, src, {.skip_invalid = true}), ErrorKind::bad_input);
}

TEST_F(PackedFeed, KeysAreFoundInIt) {
    files.feed("list", {"# a comment", "192.0.2.1", "192.0.2.0/28"});
    KeySet keys(src);
    keys.add(parse_key("192.0.2.1", src).value());
    keys.add(parse_key("192.0.2.15", src).value());
    for (const std::string& path : pack("list")) {
        std::vector<Input> inputs = Input::of_all({path}).value();
        const auto found = find_keys(inputs, keys, {.ranges = true});
        ASSERT_TRUE(found) << found.error().message;
        EXPECT_EQ(*found, (std::vector<std::string>{path + ":2", path + ":3"}));
    }
}

} // namespace
} // namespace sieve
