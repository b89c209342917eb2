// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/filter_map.hpp"

#include <cerrno>
#include <cstring>

#include <bpf/bpf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/scarce.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

TEST(FilterMap, HoldsTheImage) {
    const Image image = random_image(500, 1);
    const FilterMap map = value_or_fail(FilterMap::create(image, "bad"));
    for (std::uint32_t i = 0; i < image.lines().size(); i++) {
        sieve_line line;
        ASSERT_EQ(bpf_map_lookup_elem(map.fd(), &i, &line), 0);
        ASSERT_EQ(std::memcmp(&line, &image.lines()[i], sizeof(line)), 0) << i;
    }
    EXPECT_EQ(UniqueFd(bpf_map_get_fd_by_id(map.id())) ? 0 : errno, 0);
}

TEST(FilterMap, NamesAreTheKernels) {
    EXPECT_EQ(map_name("bad-list.1"), "bad_list.1");
    EXPECT_EQ(map_name("a name that is far too long"), "a_name_that_is_");
}

TEST(FilterMap, NoDescriptorIsARefusal) {
    const Image image = random_image(500, 1);
    const rlim_t limit = descriptors_left(0);
    const auto map = [&] {
        const Limit none(RLIMIT_NOFILE, limit);
        return FilterMap::create(image, "bad");
    }();
    ASSERT_FALSE(map);
    EXPECT_EQ(map.error().kind, ErrorKind::kernel_refused);
    EXPECT_NE(map.error().message.find("for set bad"), std::string::npos) << map.error().message;
    EXPECT_NE(map.error().message.find(fmt::format("errno {}", EMFILE)), std::string::npos)
        << map.error().message;
}

// The map can be made, but not filled.
TEST(FilterMap, NoAddressesAreARefusal) {
    constexpr std::uint64_t lines = std::uint64_t{1} << 18;
    const Image image = value_or_fail(Image::create(lines, 0));
    const auto map = [&] {
        const Limit little(RLIMIT_AS, addresses_left(lines * sizeof(sieve_line) / 2));
        return FilterMap::create(image, "bad");
    }();
    ASSERT_FALSE(map);
    EXPECT_EQ(map.error().kind, ErrorKind::kernel_refused);
    EXPECT_NE(map.error().message.find("mapping the BPF map of set bad"), std::string::npos)
        << map.error().message;
}

} // namespace
} // namespace sieve::kernel
