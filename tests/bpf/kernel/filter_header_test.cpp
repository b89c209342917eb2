// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/filter_header.hpp"

#include <cstring>

#include <bpf/bpf.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "libsieve/kernel/programs/bpf_object.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

TEST(FilterHeader, IsTheImagesHeader) {
    const Image image = random_image(1000, 4);
    const FilterMap map = map_of(image);
    const auto filter = read_filter_header(map.id());
    ASSERT_TRUE(filter) << filter.error().message;
    EXPECT_EQ(std::memcmp(&filter->lookup, &image.lookup(), sizeof(sieve_lookup)), 0);
    EXPECT_EQ(std::memcmp(&filter->file, &image.file(), sizeof(sieve_file)), 0);
    EXPECT_EQ(filter->bytes, image.bytes());
}

TEST(FilterHeader, OtherMapsAreNone) {
    const BpfObject object = value_or_fail(BpfObject::load({}));
    bpf_map_info info{};
    __u32 length = sizeof(info);
    ASSERT_EQ(bpf_obj_get_info_by_fd(object.instance().stats_fd(), &info, &length), 0);
    EXPECT_FALSE(read_filter_header(info.id));
    EXPECT_FALSE(read_filter_header(0));
}

} // namespace
} // namespace sieve::kernel
