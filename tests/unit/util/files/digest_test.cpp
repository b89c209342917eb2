// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/files/digest.hpp"

#include <gtest/gtest.h>

namespace sieve {
namespace {

TEST(Digest, IsXxh3Of128Bits) {
    // The value that xxHash documents for empty input (XXH128 of 0 bytes, seed 0).
    EXPECT_EQ(digest_of(""), "99aa06d3014798d86001c324468d497f");
}

TEST(Digest, DoesNotDependOnHowTheTextComes) {
    const std::string text(100'000, 'x');
    Digest digest;
    digest.add(std::string_view(text).substr(0, 3));
    digest.add(std::string_view(text).substr(3));
    EXPECT_EQ(digest.hex(), digest_of(text));
    EXPECT_NE(digest_of(text), digest_of(text + "x"));
}

} // namespace
} // namespace sieve
