// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/list_stream.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "libsieve/util/system/unique_fd.hpp"
#include "unit/control/files.hpp"

namespace sieve::service {
namespace {

constexpr std::uint32_t flow = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO;

Feed list_of(const std::vector<std::string>& lines, std::uint32_t fields = SIEVE_FIELD_SRC) {
    const sieve::test::Files files;
    auto list =
        read_feed({files.feed("list", lines)}, fields, {.ranges = true, .key_ranges = true, .threads = 1});
    if (!list) throw std::runtime_error(list.error().message);
    return std::move(*list);
}

// What a sender makes of the list.
std::string bytes_of(const FoundList& list) {
    const UniqueFd file(::memfd_create("list", MFD_CLOEXEC));
    const ListSender sender(file.get());
    EXPECT_TRUE(sender.send_keys(list.feed.keys));
    EXPECT_TRUE(sender.send_rest(list));
    std::string bytes(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)), '\0');
    EXPECT_EQ(::pread(file.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return bytes;
}

std::string piece(std::uint32_t kind, std::string_view bytes) {
    const std::uint32_t head[] = {kind, static_cast<std::uint32_t>(bytes.size())};
    return std::string(reinterpret_cast<const char*>(head), sizeof(head)).append(bytes);
}
std::string piece(std::uint32_t kind, const std::vector<std::uint64_t>& words) {
    return piece(kind, std::string_view(reinterpret_cast<const char*>(words.data()), words.size() * 8));
}

bool is_taken(std::string_view bytes, std::uint32_t fields = SIEVE_FIELD_SRC) {
    FoundList list{Feed(fields)};
    ListReceiver receiver(list, 1, 1);
    return receiver.take(bytes);
}

std::vector<std::vector<std::uint64_t>> words_of(const KeySet& keys) {
    std::vector<std::vector<std::uint64_t>> all;
    for (std::size_t i = 0; i < keys.size(); i++) {
        const sieve_key key = keys.at(i);
        all.emplace_back(std::begin(key.word), std::end(key.word));
    }
    return all;
}

TEST(ListStream, ComesAsItWasSentWhereverItIsCut) {
    // The last two end with the v4-mapped addresses.
    FoundList addresses{list_of({"192.0.2.1", "192.0.2.0/24", "2001:db8::1", "192.0.2.2", "::5-::9",
                                 "::fffe:ffff:fff0-::1:0:0:5", "::/0", "::/80", "::fffe:0:0/95"})};
    addresses.feed.decided = {"a: read as b"};
    addresses.feed.skipped_first = {"a:1: \x1b", "a:2: why"};
    addresses.places = {"", "a:3"};
    const FoundList flows{
        list_of({"192.0.2.1 443 tcp", "* 53 udp", "2001:db8::1 1 udp", "::/80 1 udp"}, flow)};
    for (const FoundList* const sent : {&std::as_const(addresses), &flows}) {
        const std::string bytes = bytes_of(*sent);
        for (const std::size_t each : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
            FoundList got{Feed(sent->feed.keys.fields())};
            ListReceiver receiver(got, 2, 2);
            for (std::size_t i = 0; i < bytes.size(); i += each) {
                ASSERT_TRUE(receiver.take(std::string_view(bytes).substr(i, each)));
                ASSERT_EQ(receiver.is_whole(), i + each >= bytes.size() || receiver.is_whole());
            }
            EXPECT_TRUE(receiver.is_whole());
            EXPECT_EQ(words_of(got.feed.keys), words_of(sent->feed.keys));
            EXPECT_EQ(got.feed.ranges, sent->feed.ranges);
            EXPECT_EQ(got.feed.key_ranges, sent->feed.key_ranges);
            EXPECT_EQ(got.feed.decided, sent->feed.decided);
            EXPECT_EQ(got.places, sent->places);
            ASSERT_EQ(got.feed.skipped_first.size(), sent->feed.skipped_first.size());
            if (sent == &addresses) {
                EXPECT_EQ(got.feed.skipped_first[0], "a:1: \\x1b");
            }
        }
    }
    // Cut short, it is not whole.
    FoundList got{Feed(SIEVE_FIELD_SRC)};
    ListReceiver receiver(got, 2, 2);
    const std::string bytes = bytes_of(addresses);
    EXPECT_TRUE(receiver.take(std::string_view(bytes).substr(0, bytes.size() - 1)));
    EXPECT_FALSE(receiver.is_whole());
}

TEST(ListStream, MoreKeysThanAPieceHolds) {
    FoundList sent{Feed(SIEVE_FIELD_SRC)};
    for (std::uint32_t i = 0; i < 600'000; i++) sent.feed.keys.add_ipv4(i * 7);
    FoundList got{Feed(SIEVE_FIELD_SRC)};
    ListReceiver receiver(got, 0, 0);
    ASSERT_TRUE(receiver.take(bytes_of(sent)));
    EXPECT_TRUE(std::ranges::equal(got.feed.keys.addresses(), sent.feed.keys.addresses()));
}

TEST(ListStream, AnythingElseIsRefused) {
    EXPECT_TRUE(is_taken(piece(1, "abcd")));
    EXPECT_FALSE(is_taken(piece(1, "abc")));        // no whole address
    EXPECT_FALSE(is_taken(piece(1, "abcd"), flow)); // flows are no addresses
    EXPECT_TRUE(is_taken(piece(2, {1, 2})));
    EXPECT_FALSE(is_taken(piece(2, {1})));
    EXPECT_TRUE(is_taken(piece(2, {1, 2, 0}), flow));
    EXPECT_FALSE(is_taken(piece(2, {1, 2, ~0ULL}), flow)); // a source port
    EXPECT_TRUE(is_taken(piece(3, {1, 1, 2, 1})));
    EXPECT_FALSE(is_taken(piece(3, {2, 1, 1, 1})));                 // downwards
    EXPECT_FALSE(is_taken(piece(3, {1, 1, 1, 1})));                 // one address
    EXPECT_FALSE(is_taken(piece(3, {1, 0, 0xffff00000001ULL, 0}))); // of two families
    EXPECT_TRUE(is_taken(piece(3, {1, 0, 0xffffffffffffULL, 0})));
    EXPECT_FALSE(is_taken(piece(3, {0xffffffffffffULL, 0, 0, 1})));
    EXPECT_FALSE(is_taken(piece(3, {1, 1, 2, 1}), flow));
    EXPECT_FALSE(is_taken(piece(4, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), flow)); // no field
    EXPECT_FALSE(is_taken(piece(4, {0, 0, 0, 0, 0, 0, 0, 0, 0, SIEVE_FIELD_SRC})));
    EXPECT_FALSE(is_taken(piece(0, "abcd")));
    EXPECT_FALSE(is_taken(piece(8, "abcd")));
    EXPECT_FALSE(is_taken(piece(1, std::string((1 << 20) + 4, 'x'))));
    // More lines and places than were asked for.
    EXPECT_TRUE(is_taken(piece(6, "a")));
    EXPECT_FALSE(is_taken(piece(6, "a") + piece(6, "a")));
    EXPECT_FALSE(is_taken(piece(7, "") + piece(7, "")));
}

} // namespace
} // namespace sieve::service
