// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Small sets for tests: built as any other, with a seed, so that a test sees the same filter every time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/image/image.hpp"
#include "libsieve/kernel/filter_map.hpp"

namespace sieve::test {

// The set of these keys as text ("10.0.0.1", or "10.0.0.1 443" for the fields src,dport).
[[nodiscard]] Image image_of(const std::vector<std::string>& keys, const std::string& fields = "src",
                             double bits_per_key = 32);

// A set of random IPv4 source addresses below 224.0.0.0.
[[nodiscard]] Image random_image(std::size_t keys, std::uint64_t seed, double bits_per_key = 16);

// The map of a set; ends the test program if the kernel does not want it.
[[nodiscard]] kernel::FilterMap map_of(const Image& image, const std::string& name = "test");

} // namespace sieve::test
