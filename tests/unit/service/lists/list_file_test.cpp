// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/list_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include <gtest/gtest.h>

#include "libsieve/util/system/unique_fd.hpp"
#include "unit/control/files.hpp"

namespace sieve::service {
namespace {

Feed list_of(const std::vector<std::string>& lines, std::uint32_t fields = SIEVE_FIELD_SRC) {
    const sieve::test::Files files;
    auto list =
        read_feed({files.feed("list", lines)}, fields, {.ranges = true, .key_ranges = true, .threads = 1});
    if (!list) throw std::runtime_error(list.error().message);
    return std::move(*list);
}

class ListFile : public testing::Test {
  protected:
    void write(const Feed& list) const {
        ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
        ASSERT_EQ(::lseek(file_.get(), 0, SEEK_SET), 0);
        ASSERT_TRUE(write_list_file(list, file_.get()));
    }
    // Alters eight bytes.
    void poke(off_t at, std::uint64_t value) const {
        ASSERT_EQ(::pwrite(file_.get(), &value, sizeof(value), at), 8);
    }
    [[nodiscard]] std::string bytes() const {
        std::string bytes(static_cast<std::size_t>(::lseek(file_.get(), 0, SEEK_END)), '\0');
        EXPECT_EQ(::pread(file_.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
        return bytes;
    }
    [[nodiscard]] bool fits(std::uint32_t fields = SIEVE_FIELD_SRC) const {
        return read_list_file(file_.get(), fields).has_value();
    }

    UniqueFd file_{::memfd_create("list", MFD_CLOEXEC)};
};

constexpr off_t header_bytes = 64;
constexpr off_t key_bytes = 16; // of an address

TEST_F(ListFile, ComesBackAsItWas) {
    std::vector<std::string> lines{"# comment", "192.0.2.0/24", "2001:db8::/32", "198.51.100.1-198.51.100.9"};
    for (int i = 0; i < 10000; i++)
        lines.push_back("10.1." + std::to_string(i / 256) + "." + std::to_string(i % 256));
    const Feed list = list_of(lines);
    write(list);
    const auto read = read_list_file(file_.get(), SIEVE_FIELD_SRC);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->keys.size(), 10000U);
    EXPECT_EQ(read->ranges, list.ranges);
    EXPECT_EQ(read->comments, 1U);
    EXPECT_EQ(read->lines, 10004U);
    EXPECT_EQ(read->bytes, list.bytes);
    for (std::size_t i = 0; i < list.keys.size(); i++) {
        const sieve_key a = list.keys.at(i);
        const sieve_key b = read->keys.at(i);
        ASSERT_EQ(std::memcmp(&a, &b, sizeof(a)), 0) << i;
    }
    constexpr std::uint32_t flow = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO;
    write(list_of({"192.0.2.1 443 tcp"}, flow));
    EXPECT_TRUE(fits(flow));
}

TEST_F(ListFile, AnythingElseIsRefused) {
    EXPECT_FALSE(fits()) << "empty";
    const Feed list = list_of({"192.0.2.1", "192.0.2.2", "192.0.2.0/24"});
    const auto altered = [&](off_t at, std::uint64_t value) {
        write(list);
        poke(at, value);
        return fits();
    };
    write(list);
    EXPECT_TRUE(fits());
    EXPECT_FALSE(fits(SIEVE_FIELD_DST));
    EXPECT_FALSE(altered(0, 1)) << "magic";
    EXPECT_FALSE(altered(16, 3)) << "more keys than there are";
    EXPECT_FALSE(altered(16, ~std::uint64_t{0} / key_bytes)) << "a product that overflows";
    EXPECT_FALSE(altered(24, 0)) << "fewer ranges than there are";
    const off_t range = header_bytes + 2 * key_bytes;
    EXPECT_FALSE(altered(range, 0xffffc0000300ULL)) << "a range that goes downwards";
    EXPECT_FALSE(altered(range + 24, 1)) << "a range into the other family";
    write(list);
    ASSERT_EQ(::ftruncate(file_.get(), range + 31), 0);
    EXPECT_FALSE(fits()) << "cut";
}

TEST_F(ListFile, AKeyHasNoFieldThatWasNotSelected) {
    constexpr std::uint32_t flow = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    write(list_of({"192.0.2.1 443"}, flow));
    EXPECT_TRUE(fits(flow));
    const std::uint64_t ports = std::uint64_t{443} << SIEVE_DPORT_SHIFT;
    poke(header_bytes + 16, ports);
    EXPECT_TRUE(fits(flow));
    poke(header_bytes + 16, ports | 17); // a protocol
    EXPECT_FALSE(fits(flow));
}

constexpr std::uint32_t any_flow = SIEVE_FIELD_SRC | SIEVE_FIELD_DST | SIEVE_FIELD_DPORT;
const std::vector<std::string> flows{"192.0.2.1 192.0.2.2 443",
                                     "10.0.0.0/8 192.0.2.2 443",
                                     "* 192.0.2.1-192.0.2.9 53",
                                     "2001:db8::/32 ::/0 *",
                                     "192.0.2.1 * *",
                                     "* * 22",
                                     "10.0.0.1-10.9.0.3 10.0.0.0/8 *"};

TEST_F(ListFile, RangesOfKeysComeBackAsTheyWere) {
    const Feed list = list_of(flows, any_flow);
    ASSERT_EQ(list.key_ranges.size(), flows.size() - 1);
    write(list);
    const auto read = read_list_file(file_.get(), any_flow);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->keys.size(), 1U);
    EXPECT_EQ(read->key_ranges, list.key_ranges);
    EXPECT_FALSE(fits(any_flow | SIEVE_FIELD_PROTO));
}

TEST_F(ListFile, ARangeOfKeysThatIsNoneIsRefused) {
    constexpr std::uint32_t flow = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
    enum Word : off_t { first, last = 2, destination = 4, transport = 8, fields = 9 };
    const auto altered = [&](const std::string& entry, Word word, std::uint64_t value, off_t half = 1) {
        write(list_of({entry}, flow));
        EXPECT_TRUE(fits(flow)) << entry;
        poke(header_bytes + 8 * (word + (word < transport ? half : 0)), value);
        return fits(flow);
    };
    const auto ipv4 = [](std::uint32_t address) { return sieve_v4_mapped(address); };
    const std::uint64_t https = std::uint64_t{443} << SIEVE_DPORT_SHIFT;
    EXPECT_TRUE(altered("10.0.0.0/8 443", first, ipv4(0x0a000001)));
    EXPECT_TRUE(altered("10.0.0.0/8 443", first, ipv4(0x0affffff))) << "one address";
    EXPECT_FALSE(altered("10.0.0.0/8 443", first, ipv4(0x0b000000))) << "it goes downwards";
    EXPECT_FALSE(altered("10.0.0.0/8 443", last, 1, 0)) << "into the other family";
    EXPECT_FALSE(altered("10.0.0.0/8 443", destination, 1)) << "an address that is not selected";
    EXPECT_FALSE(altered("10.0.0.0/8 443", transport, https | 6)) << "a protocol that is not selected";
    EXPECT_FALSE(altered("10.0.0.0/8 *", transport, https)) << "a port that does not matter";
    EXPECT_FALSE(altered("* 443", first, 1)) << "an address that does not matter";
    EXPECT_FALSE(altered("* 0", fields, 0)) << "nothing matters";
    EXPECT_FALSE(altered("* 443", fields, SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO)) << "a field of no key";
    EXPECT_FALSE(altered("* 443", fields, SIEVE_FIELD_DPORT | std::uint64_t{1} << 32)) << "no field";
    constexpr std::uint32_t pair = SIEVE_FIELD_SRC | SIEVE_FIELD_DST;
    write(list_of({"10.0.0.0/8 192.0.2.0/24"}, pair));
    EXPECT_TRUE(fits(pair));
    poke(header_bytes + 8 * destination, 1);
    poke(header_bytes + 8 * (destination + 2), 1);
    EXPECT_FALSE(fits(pair)) << "addresses of two families";
}

// Whatever is written over a word: the file is refused, or it says what the list says that was read.
TEST_F(ListFile, WhatIsReadIsWrittenBackAsItWas) {
    const Feed list = list_of(flows, any_flow);
    write(list);
    const std::string right = bytes();
    std::size_t read_again = 0;
    for (std::size_t at = 0; at < right.size(); at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, &right[at], sizeof(word));
        std::vector<std::uint64_t> others{0, 1, word + 1, word - 1, ~word, ~std::uint64_t{0}};
        for (int bit = 0; bit < 64; bit++) others.push_back(word ^ std::uint64_t{1} << bit);
        for (const std::uint64_t other : others) {
            write(list);
            poke(static_cast<off_t>(at), other);
            const std::string altered = bytes();
            const auto read = read_list_file(file_.get(), any_flow);
            if (!read) continue;
            write(*read);
            ASSERT_EQ(bytes(), altered) << "word " << at / 8 << ": " << other;
            read_again++;
        }
    }
    EXPECT_GT(read_again, 500U);
}

} // namespace
} // namespace sieve::service
