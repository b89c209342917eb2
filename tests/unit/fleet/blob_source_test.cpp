// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/blob_source.hpp"

#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "unit/control/files.hpp"

namespace sieve::fleet {
namespace {

std::string text_of(const BlobSource& blob) {
    std::array<char, 256> text{};
    const ssize_t bytes = ::pread(blob.content.get(), text.data(), text.size(), 0);
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(0, bytes))};
}

TEST(BlobSource, EntriesOfSeveralFieldsMayBeRanges) {
    const sieve::test::Files files;
    control::SetSpec set = sieve::test::Files::set("bad", files.feed("bad.txt", {"10.0.0.0/8 443", "* 22"}));
    set.feed.fields = parse_fields("src,dport").value();
    const auto feed = make_blob(set, BlobKind::feed, {});
    ASSERT_TRUE(feed) << feed.error().message;
    EXPECT_EQ(feed->set.entries, 2U);
    EXPECT_EQ(text_of(*feed), "10.0.0.0/8 443\n* 22\n");
    const auto image = make_blob(set, BlobKind::image, {});
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_EQ(image->set.entries, 2U);
}

} // namespace
} // namespace sieve::fleet
