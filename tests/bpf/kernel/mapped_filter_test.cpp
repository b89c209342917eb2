// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The lines of a filter map in the controller's memory, and maps of the wrong shape.
#include "libsieve/kernel/maps/mapped_filter.hpp"

#include <cstring>

#include <bpf/bpf.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/scarce.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

void expect_refusal(std::uint32_t map, const std::string& words) {
    const auto filter = MappedFilter::open(map);
    ASSERT_FALSE(filter) << words;
    EXPECT_NE(filter.error().message.find(words), std::string::npos) << filter.error().message;
}

TEST(MappedFilter, IsTheFilterInForce) {
    const Image image = random_image(500, 2);
    const FilterMap map = map_of(image);
    MappedFilter filter = value_or_fail(MappedFilter::open(map.id()));
    EXPECT_EQ(std::memcmp(&filter.lookup(), &image.lookup(), sizeof(sieve_lookup)), 0);
    ASSERT_EQ(filter.filter().size(), image.filter().size());
    filter.filter()[0].word[0] = 42;
    const std::uint32_t first = SIEVE_FIRST_LINE;
    sieve_line line;
    ASSERT_EQ(bpf_map_lookup_elem(map.fd(), &first, &line), 0);
    EXPECT_EQ(line.word[0], 42U);
}

TEST(MappedFilter, OtherBytesAreNone) {
    const Image image = random_image(500, 2);
    const FilterMap map = map_of(image);
    const std::uint32_t header = 0;
    sieve_line line;
    ASSERT_EQ(bpf_map_lookup_elem(map.fd(), &header, &line), 0);

    sieve_lookup lookup = image.lookup();
    lookup.magic++;
    std::memcpy(&line, &lookup, sizeof(lookup));
    ASSERT_EQ(bpf_map_update_elem(map.fd(), &header, &line, BPF_ANY), 0);
    expect_refusal(map.id(), "is no filter");

    lookup = image.lookup();
    lookup.choices = 99;
    std::memcpy(&line, &lookup, sizeof(lookup));
    ASSERT_EQ(bpf_map_update_elem(map.fd(), &header, &line, BPF_ANY), 0);
    expect_refusal(map.id(), "is no filter");

    // More lines than the map has.
    lookup = image.lookup();
    lookup.buckets = static_cast<std::uint32_t>(image.lines().size());
    std::memcpy(&line, &lookup, sizeof(lookup));
    ASSERT_EQ(bpf_map_update_elem(map.fd(), &header, &line, BPF_ANY), 0);
    expect_refusal(map.id(), "is no filter");
}

TEST(MappedFilter, MapsOfAnotherShapeAreNone) {
    expect_refusal(0, "opening BPF map 0");
    const UniqueFd few = create_line_array("few", SIEVE_FIRST_LINE - 1);
    ASSERT_TRUE(few);
    bpf_map_info info{};
    __u32 length = sizeof(info);
    ASSERT_EQ(bpf_obj_get_info_by_fd(few.get(), &info, &length), 0);
    expect_refusal(info.id, "is no filter");

    const UniqueFd plain(bpf_map_create(BPF_MAP_TYPE_ARRAY, "plain", 4, sizeof(sieve_line), 100, nullptr));
    ASSERT_TRUE(plain);
    info = {};
    ASSERT_EQ(bpf_obj_get_info_by_fd(plain.get(), &info, &length), 0);
    expect_refusal(info.id, "BPF_F_MMAPABLE");

    const FilterMap frozen = map_of(random_image(500, 3));
    ASSERT_EQ(bpf_map_freeze(frozen.fd()), 0);
    expect_refusal(frozen.id(), "not frozen");
}

} // namespace
} // namespace sieve::kernel
