// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/feed.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include "libsieve/feeds/read_any.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

constexpr std::uint32_t src = SIEVE_FIELD_SRC;
constexpr std::uint32_t dst = SIEVE_FIELD_DST;
constexpr std::uint32_t src_dport_proto = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO;

// Each test has its own folder, which is removed with the test.
class FeedTest : public testing::Test {
  protected:
    FeedTest() {
        std::string name = fs::temp_directory_path() / "sieve-feed-XXXXXX";
        folder_ = ::mkdtemp(name.data());
    }
    ~FeedTest() override { fs::remove_all(folder_); }

    std::string file(std::string_view text, const std::string& name = "list") {
        const std::string path = folder_ / name;
        std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
        return path;
    }

    // The error's message, without the folder's name.
    std::string message(const Result<Feed>& feed) {
        if (feed) return "no error";
        EXPECT_EQ(feed.error().kind, ErrorKind::bad_input);
        std::string text = feed.error().message;
        const std::string prefix = folder_.string() + "/";
        for (std::size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
        return text;
    }

    fs::path folder_;
};

std::string text_of(const KeySet& keys) {
    std::string text;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i > 0) text += "; ";
        text += format_key(keys.at(i), keys.fields());
    }
    return text;
}

bool same(const KeySet& a, const KeySet& b) {
    if (a.size() != b.size() || a.fields() != b.fields()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const sieve_key x = a.at(i);
        const sieve_key y = b.at(i);
        if (std::memcmp(&x, &y, sizeof(x)) != 0) return false;
    }
    return true;
}

// Standard input is a pipe. A thread fills it with `text`, `piece` bytes at a time if that is set.
class PipedInput {
  public:
    PipedInput(std::string text, std::size_t piece) : saved_(::dup(STDIN_FILENO)) {
        ::signal(SIGPIPE, SIG_IGN); // a reader that gives up is a failed test and not a dead one
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
        ::dup2(ends[0], STDIN_FILENO);
        ::close(ends[0]);
        writer_ = std::jthread([text = std::move(text), piece, end = UniqueFd(ends[1])] {
            for (std::size_t at = 0; at < text.size(); at += piece)
                if (::write(end.get(), text.data() + at, std::min(piece, text.size() - at)) < 0) return;
        });
    }
    ~PipedInput() {
        ::dup2(saved_.get(), STDIN_FILENO); // closes the pipe, so that a writer that is still at it ends
    }

  private:
    UniqueFd saved_;
    std::jthread writer_;
};

TEST_F(FeedTest, GoodFeeds) {
    struct {
        std::uint32_t fields;
        std::string text;
        std::string keys;
        std::uint64_t comments;
    } const cases[] = {
        {src, "1.2.3.4\n", "1.2.3.4", 0},
        {dst, "1.2.3.4\n", "1.2.3.4", 0},
        {src, "1.2.3.4", "1.2.3.4", 0},
        {src, "1.2.3.4\n5.6.7.8", "1.2.3.4; 5.6.7.8", 0},
        {src, "1.2.3.4\r\n\r\n::1\r\n5.6.7.8\r\n", "1.2.3.4; ::1; 5.6.7.8", 1},
        {src, "1.2.3.4\r", "1.2.3.4", 0},
        {src,
         "\xef\xbb\xbf"
         "1.2.3.4\n::1\n",
         "1.2.3.4; ::1", 0},
        {src, "\xef\xbb\xbf# comment\n1.2.3.4\n", "1.2.3.4", 1},
        {src, "\n \t\n#\n;\n  # x\n\t; 9.9.9.9\n1.2.3.4\n", "1.2.3.4", 6},
        {src, "1.2.3.4#x\n1.2.3.5;x\n1.2.3.6 # x\n::7#x\n::8\t;x\n", "1.2.3.4; 1.2.3.5; 1.2.3.6; ::7; ::8",
         0},
        {src, "1.2.3.4\t7\n1.2.3.5,x\n1.2.3.6  x \n::7 5.5.5\n", "1.2.3.4; 1.2.3.5; 1.2.3.6; ::7", 0},
        {src, " 1.2.3.4 \n\t::5\t\n ,1.2.3.6,\n", "1.2.3.4; ::5; 1.2.3.6", 0},
        {src, "1.2.3.4 - - [10/Oct/2000] \"GET /\" 200\n", "1.2.3.4", 0}, // an access log
        {src,
         "1.2.3.4 /32\n::5\t/\t128\n1.2.3.6 / 255.255.255.255 x\n1.2.3.7 /path\n1.2.3.8 /\n1.2.3.9 /7x\n",
         "1.2.3.4; ::5; 1.2.3.6; 1.2.3.7; 1.2.3.8; 1.2.3.9", 0},
        {src, "1.2.3.4/32\n::5/128\n1.2.3.6-1.2.3.6\n1.2.3.7 - 1.2.3.7\n", "1.2.3.4; ::5; 1.2.3.6; 1.2.3.7",
         0},
        {src, "1.2.3.4\n1.2.3.4\n", "1.2.3.4; 1.2.3.4", 0},
        {src, "1.2.3.4 caf\xc3\xa9\n", "1.2.3.4", 0},
        {src_dport_proto, "1.2.3.4 443 tcp\n::1,53,\t17 further ; columns\n1.2.3.5\t, 80 ,TCP#x",
         "1.2.3.4 443 tcp; ::1 53 udp; 1.2.3.5 80 tcp", 0},
        {SIEVE_FIELD_SPORT, "1\n65535 x\n", "1; 65535", 0},
        {src,
         R"({"cidr":"1.10.16.7/32","sblid":"SBL256894","rir":"apnic"})"
         "\n"
         R"(  {"ip":"::5"})"
         "\r\n"
         R"({"note":"# ; , {}", "ipv4" : "1.2.3.4", "ipv6":null})"
         "\n"
         R"({"ipv6":"2001:db8::1"})"
         "\n"
         R"({"type":"metadata","timestamp":1699574400,"records":4,"terms":"https://example.org/#x"})",
         "1.10.16.7; ::5; 1.2.3.4; 2001:db8::1", 1},
        {src_dport_proto, "{\"type\":\"metadata\"}\n1.2.3.4 1 tcp\n", "1.2.3.4 1 tcp", 1},
    };
    for (const auto& c : cases) {
        const auto feed = read_feed({file(c.text)}, c.fields, {.threads = 1});
        ASSERT_TRUE(feed) << c.text << ": " << feed.error().message;
        EXPECT_EQ(text_of(feed->keys), c.keys) << c.text;
        EXPECT_EQ(feed->comments, c.comments) << c.text;
        EXPECT_EQ(feed->skipped, 0U);
        EXPECT_EQ(feed->lines, feed->keys.size() + feed->comments) << c.text;
    }
}

TEST_F(FeedTest, BadLinesAreNamedQuotedAndExplained) {
    struct {
        std::uint32_t fields;
        std::string text;
    } const cases[] = {
        {src, "1.2.3\n"},
        {src, "# x\n1.2.3.4\n\n1.2.3.256 x"},
        {src, "1.2.3.4\r\nx\r\n"},
        {src, "1.1.1.1\r2.2.2.2\r"},
        {src, "\xef\xbb\xbf\xef\xbb\xbf"
              "1.2.3.4\n"},
        {src, "1.2.3.4\n\xef\xbb\xbf"
              "1.2.3.4\n"},
        {src, "1.2.3.4\n10.0.0.0/8 x\n"},
        {src, "10.0.0.1/8"},
        {src, "1.2.3.4 - 1.2.3.5\n"},
        {src, "1.2.3.0 /24\n"},
        {src, "1.2.3.4\n1.2.3.0 / 33 x\n"},
        {src, "1.2.3.1 / 24\n"},
        {src_dport_proto, "1.2.3.0 /24 80 tcp\n"},
        {src, "1.2.3.4\nan \x1b[31m evil \x07 line\n"},
        {src, "\x1b[31m\n"},
        {src, ",,\n"},
        {src, "1.2.3.4\0\n"s},
        {src, "1.2.3.4\n# comment \0\n"s},
        {src, "1.2.3.4\nx\n# comment \0\n"s},
        {src, "\xff\xfe"
              "1\0.\0"s},
        {src, "\xff\xfe\0\0"s + "1\0\0\0"s},
        {src, "\0\0\xfe\xff"s + "\0\0\0" + "1"s},
        {src_dport_proto, "2001:db8::1 80 17\n2001:db8::1 80 51\n"},
        {src_dport_proto, "1.2.3.4 80 tcp\n1.2.3.4 80\n"},
        {src_dport_proto, "1.2.3.4 80:tcp\n"},
        {src_dport_proto, "1.2.3.4 80 # tcp\n"},
        {src, "{\"cidr\":\"1.2.3.0/24\"}\n"},
        {src, "{\"ip\":\"1.2.3\"}\n"},
        {src, "{\"ip\":\"1.2.3.4 x\"}\n"},
        {src, "{\"ip\":\"1.2.3.4\"\n"},
        {src, "{\"ip\":\"1.2.3.4\",\"last\":{\"is\":[1,\"1.2.3.9\"]}}\n"},
        {src, "1.2.3.0;1.2.3.255;24\n"},
        {src, "1.2.3.0 x;a network;::1/64\r\n"},
        {src, "{\n"},
        {src, "{\"ip\":1}\n"},
        {src, "{\"asn\":1}\n"},
        {src, "{\"ipv4\":\"1.2.3.4\",\"ipv6\":\"::1\"}\n"},
        {src_dport_proto, "{\"ip\":\"1.2.3.4\"}\n"},
        {src, "\x1f\x8b\x08\n1.2.3.4\n"},
        {src, "BZh91AY"},
    };
    for (const auto& c : cases)
        expect_error(read_feed({file(c.text)}, c.fields, {.threads = 1}), ErrorKind::bad_input);
}

TEST_F(FeedTest, FilesThatAreNoFeeds) {
    expect_error(read_feed({folder_ / "none"}, src), ErrorKind::bad_input);
    fs::create_directory(folder_ / "folder");
    expect_error(read_feed({file("1.2.3.4\n"), folder_ / "folder"}, src), ErrorKind::bad_input);
    // A missing file is found before a bad line of another file.
    expect_error(read_feed({file("x\n"), folder_ / "none"}, src), ErrorKind::bad_input);
    // Opening works, but reading fails.
    expect_error(read_feed({"/proc/self/mem"}, src), ErrorKind::bad_input);
    if (::geteuid() != 0) {
        const std::string path = file("1.2.3.4\n", "secret");
        ::chmod(path.c_str(), 0);
        EXPECT_EQ(read_feed({path}, src).error().kind, ErrorKind::bad_input);
    }
    expect_error(read_feed({folder_ / "a\nb\x1b"}, src), ErrorKind::bad_input);
}

TEST_F(FeedTest, FeedsWithoutKeys) {
    const std::string empty = file("", "empty");
    const std::string comments = file("# nothing\n\n", "comments");
    for (unsigned threads : {1U, 3U}) {
        expect_error(read_feed({empty}, src, {.threads = threads}), ErrorKind::bad_input);
        expect_error(read_feed({comments}, dst, {.threads = threads}), ErrorKind::bad_input);
        expect_error(read_feed({comments, empty, file("", "void")}, src_dport_proto, {.threads = threads}),
                     ErrorKind::bad_input);
        const auto one = read_feed({empty, file("1.2.3.4", "one"), comments}, src, {.threads = threads});
        ASSERT_TRUE(one);
        EXPECT_EQ(text_of(one->keys), "1.2.3.4");
        EXPECT_EQ(one->lines, 3U);
    }
    expect_error(read_feed({file("x\n1.2.3.4\n")}, SIEVE_FIELD_SPORT, {.skip_invalid = true}),
                 ErrorKind::bad_input);
}

TEST_F(FeedTest, CallsThatMakeNoSenseAreUsageErrors) {
    const std::string path = file("1.2.3.4\n");
    struct {
        std::vector<std::string> paths;
        std::uint32_t fields;
    } const cases[] = {
        {{}, src},
        {{"-", path, "-"}, src},
        {{path}, 0},
        {{path}, 1 << 5},
    };
    for (const auto& c : cases) {
        expect_error(read_feed(c.paths, c.fields), ErrorKind::invalid_request);
    }
}

TEST_F(FeedTest, SkippedLinesAreCountedAndTheFirstAreShown) {
    std::string text;
    for (int i = 0; i < 100; ++i) text += i % 10 == 3 ? "bad" + std::to_string(i) + "\n" : "1.2.3.4\n";
    for (unsigned threads : {1U, 4U}) {
        const auto feed = read_feed({file("::1\nworse\n", "first"), file(text, "second")}, src,
                                    {.skip_invalid = true, .threads = threads});
        ASSERT_TRUE(feed);
        EXPECT_EQ(feed->keys.size(), 91U);
        EXPECT_EQ(feed->skipped, 11U);
        EXPECT_EQ(feed->lines, 102U);
        ASSERT_EQ(feed->skipped_first.size(), 5U);
        const std::string dir = folder_.string();
        EXPECT_EQ(feed->skipped_first[0].substr(0, dir.size() + 25), dir + "/first:2: found \"worse\", ");
        EXPECT_EQ(feed->skipped_first[1].substr(0, dir.size() + 25), dir + "/second:4: found \"bad3\", ");
        EXPECT_EQ(feed->skipped_first[4].substr(0, dir.size() + 27), dir + "/second:34: found \"bad33\", ");
    }
    const auto wide =
        read_feed({file("10.0.0.0/8\n1.2.3.4\n1.0.0.0-1.0.0.3\n")}, src, {.skip_invalid = true});
    ASSERT_TRUE(wide);
    EXPECT_EQ(wide->skipped, 2U);
    EXPECT_EQ(text_of(wide->keys), "1.2.3.4");
}

// The end of a line that is too long may never come: the line fails as soon as it is too long.
TEST_F(FeedTest, AnEndlessLineIsNotReadToItsEnd) {
    for (const std::string& before : {""s, "1.2.3.4\n"s}) {
        auto inputs = Input::of_all({file(before + std::string(std::size_t{4} << 20, 'x'))});
        ASSERT_TRUE(inputs);
        const auto feed = read_feed(*inputs, src, {.threads = 1, .block_bytes = 16 << 10});
        expect_error(feed, ErrorKind::bad_input);
        EXPECT_EQ(inputs->front().taken(), std::uint64_t{16} << 10) << "one block";
    }
    // A malformed line before it comes first.
    const auto feed = read_feed({file("bad\n" + std::string(100'000, 'x')), file("::1", "next")}, src,
                                {.threads = 1, .block_bytes = 16 << 10});
    expect_error(feed, ErrorKind::bad_input);
}

// Lines at the limit, just beyond it and far beyond it, at every offset in a block.
TEST_F(FeedTest, LongLines) {
    const std::string longest = "1.2.3.4 " + std::string(feed_line_limit - 8, 'x');
    for (const std::string& end : {"\n"s, "\r\n"s, ""s}) {
        const auto feed = read_feed({file(longest + end)}, src);
        ASSERT_TRUE(feed) << feed.error().message;
        EXPECT_EQ(feed->keys.size(), 1U);
        expect_error(read_feed({file("::1\n" + longest + "x" + end)}, src), ErrorKind::bad_input);
    }
    expect_error(read_feed({file("#" + std::string(feed_line_limit, '-') + "\n")}, src),
                 ErrorKind::bad_input);
    for (std::size_t length :
         {4095U, 4096U, 4097U, 4098U, 4099U, 16383U, 16384U, 16385U, 40'000U, 1'000'000U})
        for (std::size_t before : {1U, 700U, 1400U, 1700U, 1820U})
            for (unsigned threads : {1U, 2U}) {
                std::string text;
                for (std::size_t i = 0; i < before; ++i) text += "1.2.3.4\r\n";
                text += "::5 " + std::string(length - 4, 'y') + "\n::6\nbad\n::7";
                const auto feed = read_feed(
                    {file(text)}, src, {.skip_invalid = true, .threads = threads, .block_bytes = 16 << 10});
                ASSERT_TRUE(feed);
                const bool fits = length <= feed_line_limit;
                ASSERT_EQ(feed->lines, before + 4) << length << " behind " << before;
                ASSERT_EQ(feed->keys.size(), before + 2 + fits) << length << " behind " << before;
                ASSERT_EQ(feed->skipped, 2U - fits);
                ASSERT_EQ(format_key(feed->keys.at(feed->keys.size() - 2), src), "::6");
                const std::string bad =
                    folder_.string() + "/list:" + std::to_string(before + 3) + ": found \"bad\"";
                ASSERT_EQ(feed->skipped_first.back().substr(0, bad.size()), bad);
            }
    const auto cut_at_end = read_feed({file("::1\n" + std::string(100'000, 'z')), file("::2", "next")}, src,
                                      {.skip_invalid = true, .block_bytes = 16 << 10});
    ASSERT_TRUE(cut_at_end);
    EXPECT_EQ(text_of(cut_at_end->keys), "::1; ::2");
    EXPECT_EQ(cut_at_end->lines, 3U);
}

TEST_F(FeedTest, StandardInput) {
    std::string text = "# piped\n";
    for (int i = 0; i < 60'000; ++i)
        text += "10.0." + std::to_string(i / 256) + '.' + std::to_string(i % 256) + "\n";
    for (std::size_t piece : {std::size_t{7'919}, text.size()}) {
        PipedInput input(text, piece);
        const auto feed =
            read_feed({file("::1\n", "before"), "-", file("::2\n", "behind")}, src, {.threads = 2});
        ASSERT_TRUE(feed) << feed.error().message;
        ASSERT_EQ(feed->keys.size(), 60'002U);
        EXPECT_EQ(format_key(feed->keys.at(0), src), "::1");
        EXPECT_EQ(format_key(feed->keys.at(1), src), "10.0.0.0");
        EXPECT_EQ(format_key(feed->keys.at(60'000), src), "10.0.234.95");
        EXPECT_EQ(format_key(feed->keys.at(60'001), src), "::2");
        EXPECT_EQ(feed->comments, 1U);
    }
    {
        PipedInput input("::1\n::x\n", 1);
        expect_error(read_feed({"-"}, src), ErrorKind::bad_input);
    }
    PipedInput input("", 1);
    expect_error(read_feed({"-"}, src), ErrorKind::bad_input);
}

TEST_F(FeedTest, TheFirstErrorIsTheOneReported) {
    std::string text;
    for (int i = 1; i <= 200'000; ++i)
        text += i > 150'000 && i % 1000 == 7 ? "bad" + std::to_string(i) + "\n" : "1.2.3.4\n";
    const std::string path = file(text);
    const std::string behind = file("bad1\n", "behind");
    for (unsigned threads : {1U, 2U, 8U})
        for (std::size_t block : {std::size_t{16'384}, std::size_t{70'001}, std::size_t{8} << 20})
            expect_error(read_feed({path, behind}, src, {.threads = threads, .block_bytes = block}),
                         ErrorKind::bad_input);
}

// A check that looked at a feed before it was read must not have consumed any of it. The counts must add up.
TEST_F(FeedTest, TakesEveryByteOfAnyInput) {
    std::string text = "# piped\n";
    for (int i = 0; i < 9'000; ++i)
        text += "10.0." + std::to_string(i / 256) + '.' + std::to_string(i % 256) + "\r\n";
    const std::string fifo = folder_ / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    for (const std::size_t piece : {std::size_t{1}, std::size_t{4'096}, text.size()})
        for (const unsigned threads : {1U, 8U}) {
            std::jthread writer([&] {
                std::ofstream out(fifo, std::ios::binary);
                for (std::size_t at = 0; at < text.size(); at += piece)
                    out.write(text.data() + at,
                              static_cast<std::streamsize>(std::min(piece, text.size() - at)))
                        .flush();
            });
            auto inputs = Input::of_all({file("::1\n", "before"), fifo});
            ASSERT_TRUE(inputs);
            const auto looked = (*inputs)[1].peek(10);
            ASSERT_TRUE(looked);
            EXPECT_EQ(*looked, "# piped\n10");
            const auto feed = read_feed(*inputs, src, {.threads = threads, .block_bytes = 16 << 10});
            ASSERT_TRUE(feed) << feed.error().message;
            EXPECT_EQ(feed->keys.size(), 9'001U);
            EXPECT_EQ(feed->lines, 9'002U);
            EXPECT_EQ(feed->bytes, text.size() + 4);
        }
}

TEST_F(FeedTest, RefusesOneInputByTwoNames) {
    const std::string list = file("1.2.3.4\n");
    fs::create_symlink("list", folder_ / "alias");
    expect_error(read_feed({list, folder_ / "alias"}, src), ErrorKind::invalid_request);
    const std::string fifo = folder_ / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    expect_error(read_feed({fifo, list, folder_ / "." / "fifo"}, src), ErrorKind::invalid_request);
}

TEST_F(FeedTest, RefusesAnImage) {
    expect_error(read_feed({file("1.2.3.4\n", "good"), file("SIEV" + std::string(400, '\0'))}, src,
                           {.skip_invalid = true}),
                 ErrorKind::bad_input);
}

// A feed with every sort of line. The expected keys are made beside it, not read from it.
struct Sample {
    std::string text;
    KeySet keys{src};
    std::uint64_t comments = 0;
};

Sample make_sample(std::size_t lines) {
    Sample sample;
    std::mt19937_64 random(5);
    char line[128];
    for (std::size_t i = 0; i < lines; ++i) {
        const std::uint64_t bits = random();
        const char* const ends[] = {"\n", "\n", "\r\n", " \n", "\t7\n", ",x,y\n", " # c\n", ";c\n"};
        const char* end = ends[bits >> 3 & 7];
        if ((bits & 7) == 0) {
            const char* const comments[] = {"\n", "\r\n", "# a comment of some length\n", "  \t; 1.2.3.4\n"};
            sample.text += comments[bits >> 6 & 3];
            ++sample.comments;
            continue;
        }
        if ((bits & 7) == 1) {
            const std::uint64_t lower = random();
            std::snprintf(line, sizeof(line), "2001:db8::%x:%x:%x:%x%s", static_cast<unsigned>(lower >> 48),
                          static_cast<unsigned>(lower >> 32 & 0xffff),
                          static_cast<unsigned>(lower >> 16 & 0xffff), static_cast<unsigned>(lower & 0xffff),
                          end);
            sample.keys.add(sieve_key{{0x2001'0db8'0000'0000, lower, 0, 0, 0}});
        } else {
            const auto v4 = static_cast<std::uint32_t>(bits >> 32);
            std::snprintf(line, sizeof(line), "%s%u.%u.%u.%u%s", bits & 256 ? "" : " ", v4 >> 24,
                          v4 >> 16 & 255, v4 >> 8 & 255, v4 & 255, end);
            sample.keys.add(sieve_key{{0, sieve_v4_mapped(v4), 0, 0, 0}});
        }
        sample.text += line;
    }
    return sample;
}

TEST_F(FeedTest, AMillionLinesInAnyCutAndOnAnyThreads) {
    const Sample sample = make_sample(1'000'000);
    const std::string path = file(sample.text);
    struct {
        unsigned threads;
        std::size_t block;
    } const cases[] = {{1, 262'144}, {1, 16'384},   {2, 16'411}, {3, 65'537},
                       {8, 99'991},  {2, 64 << 20}, {0, 1}};
    for (const auto& c : cases) {
        const auto feed = read_feed({path}, src, {.threads = c.threads, .block_bytes = c.block});
        ASSERT_TRUE(feed) << feed.error().message;
        EXPECT_EQ(feed->lines, 1'000'000U);
        EXPECT_EQ(feed->comments, sample.comments);
        EXPECT_TRUE(same(feed->keys, sample.keys)) << c.threads << " threads, blocks of " << c.block;
    }
}

TEST_F(FeedTest, ProgressRisesFromNothingToAll) {
    std::string text;
    for (int i = 0; i < 20'000; ++i) text += "1.2.3.4\n";
    std::vector<double> shares;
    const auto feed = read_feed({file(text), file(text, "more")}, src,
                                {.threads = 2,
                                 .progress =
                                     [&](std::string_view stage, double share) {
                                         EXPECT_EQ(stage, "reading");
                                         shares.push_back(share);
                                     },
                                 .block_bytes = 16 << 10});
    ASSERT_TRUE(feed);
    ASSERT_GE(shares.size(), 20U);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_NEAR(shares.front(), 0.05, 0.02);
    EXPECT_NEAR(shares[shares.size() / 2], 0.5, 0.06);
    EXPECT_EQ(shares.back(), 1.0);
}

// A list that must not be held as a whole: all keys arrive in their order, and the numbers add up.
TEST_F(FeedTest, PassesOnWhatIsTooMuchToHold) {
    std::string text = "# a comment\n";
    for (int i = 0; i < 50'000; ++i)
        text += "10.0." + std::to_string(i / 256 % 256) + "." + std::to_string(i % 256) + "\n";
    const auto whole = read_feed({file(text)}, src);
    ASSERT_TRUE(whole);
    for (const unsigned threads : {1U, 3U}) {
        KeySet passed(src);
        std::size_t calls = 0;
        FeedOptions options{.threads = threads, .block_bytes = 16 << 10, .most_entries = 10'000};
        options.overflow = [&](Feed& feed) -> Status {
            EXPECT_GE(feed.keys.size(), 10'000U);
            EXPECT_LT(feed.keys.size(), 12'000U);
            passed.append(feed.keys);
            calls++;
            return {};
        };
        const auto feed = read_feed({file(text)}, src, options);
        ASSERT_TRUE(feed) << feed.error().message;
        EXPECT_GE(calls, 4U);
        EXPECT_EQ(feed->overflowed, passed.size());
        EXPECT_LT(feed->keys.size(), 10'000U);
        passed.append(feed->keys);
        EXPECT_TRUE(same(passed, whole->keys));
        EXPECT_EQ(feed->lines, 50'001U);

        options.overflow = [](Feed&) -> Status { return bad_input("no room"); };
        EXPECT_EQ(message(read_feed({file(text)}, src, options)), "no room");
    }
    // Ranges count as well. Nothing is passed on below the limit.
    std::size_t ranges = 0;
    const auto few = read_feed({file("10.0.0.0/8\n192.0.2.0/24\n")}, src,
                               {.ranges = true, .most_entries = 2, .overflow = [&](Feed& feed) -> Status {
                                    ranges = feed.ranges.size();
                                    return bad_input("prefixes");
                                }});
    EXPECT_EQ(message(few), "prefixes");
    EXPECT_EQ(ranges, 2U);
    EXPECT_TRUE(read_feed({file("::1\n")}, src, {.most_entries = 2, .overflow = [](Feed&) -> Status {
                                                     return bad_input("why?");
                                                 }}));
}

// A real list that has a second column.
TEST(Feed, ReadsIpsum) {
    const auto feed = read_feed({"tests/data/ipsum.txt"}, src);
    ASSERT_TRUE(feed) << feed.error().message;
    EXPECT_EQ(feed->keys.size(), 120'430U);
    EXPECT_EQ(feed->comments, 7U);
    EXPECT_EQ(format_key(feed->keys.at(0), src), "77.90.185.20");
    EXPECT_EQ(format_key(feed->keys.at(120'429), src), "162.251.62.103");
}

// Whatever format was asked for.
TEST_F(FeedTest, AnHtmlPageIsNoList) {
    const std::string page = file("\n <!DOCTYPE html>\n<title>192.0.2.1</title>\n", "page");
    for (const ListSyntax syntax : {ListSyntax::plain, ListSyntax::automatic, ListSyntax::hosts})
        expect_error(read_feed({page}, src, {.format = {syntax, {}}, .skip_invalid = true}),
                     ErrorKind::bad_input);
}

TEST_F(FeedTest, MayBeEmptyIfThatIsSaid) {
    for (const char* text : {"", "\n\n", "# none\n"}) {
        EXPECT_FALSE(read_feed({file(text)}, src)) << text;
        Input input = std::move(*Input::of(file(text)));
        const auto feed = read_feed_if_any({&input, 1}, src);
        ASSERT_TRUE(feed) << feed.error().message;
        EXPECT_EQ(feed->entries(), 0U);
    }
}

} // namespace
} // namespace sieve
