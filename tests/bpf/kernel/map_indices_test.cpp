// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/map_indices.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace sieve::kernel {
namespace {

TEST(MapIndices, OnlyWhatDiffersChanges) {
    const std::vector<std::uint32_t> present = {7, 8, 0, 9};
    const std::vector<std::uint32_t> target = {7, 5, 6, 0};
    const MapChange change = change_of(32, present, target);
    EXPECT_EQ(change.indices, (std::vector<std::uint32_t>{33, 34}));
    EXPECT_EQ(change.ids, (std::vector<std::uint32_t>{5, 6}));
    EXPECT_EQ(change.gone, (std::vector<std::uint32_t>{35}));
    // Nothing is known of the old content, so all map indices are written.
    EXPECT_EQ(change_of(0, {}, target).indices.size(), 3U);
    EXPECT_EQ(change_of(0, {}, target).gone, (std::vector<std::uint32_t>{3}));
}

TEST(MapIndices, WhatTheKernelRefusesIsSaid) {
    constexpr int closed = -1;
    const Status gone = put_maps(closed, {.indices = {0}, .ids = {0}, .gone = {}});
    ASSERT_FALSE(gone);
    EXPECT_NE(gone.error().message.find("opening BPF map 0"), std::string::npos) << gone.error().message;
    const Status clear = clear_map(closed, 0);
    ASSERT_FALSE(clear);
    EXPECT_NE(clear.error().message.find("clearing an index"), std::string::npos) << clear.error().message;
    EXPECT_TRUE(put_maps(closed, {}));
}

} // namespace
} // namespace sieve::kernel
