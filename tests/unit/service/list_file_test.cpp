// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/list_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include <gtest/gtest.h>

#include "libsieve/util/unique_fd.hpp"
#include "unit/control/files.hpp"

namespace sieve::service {
namespace {

Feed list_of(const std::vector<std::string>& lines, std::uint32_t fields = SIEVE_FIELD_SRC) {
    const sieve::test::Files files;
    auto list = read_feed({files.feed("list", lines)}, fields, {.ranges = true, .threads = 1});
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

} // namespace
} // namespace sieve::service
