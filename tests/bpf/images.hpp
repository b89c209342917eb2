// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Small sets for tests. They are built like any other set, but with a seed, so that a test always sees the
// same filter.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "libsieve/image/image.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/keys/key_set.hpp"

namespace sieve::test {

// The value that a test cannot go on without. GoogleTest reports the exception as the test's failure.
template <class T>
T value_or_fail(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
}

inline void ok_or_fail(const Status& status) {
    if (!status) throw std::runtime_error(status.error().message);
}

// The set of these keys as text ("10.0.0.1", or "10.0.0.1 443" for the fields src,dport).
[[nodiscard]] Image image_of(const std::vector<std::string>& keys, const std::string& fields = "src",
                             double bits_per_key = 32);

// A set of random IPv4 source addresses below 224.0.0.0.
[[nodiscard]] Image random_image(std::size_t keys, std::uint64_t seed, double bits_per_key = 16,
                                 sieve_kind kind = SIEVE_KIND_BLOCKED);

// The set of these keys, built with the kind's defaults.
[[nodiscard]] Image image_of_keys(KeySet keys, std::uint64_t seed, double bits_per_key, sieve_kind kind);

// A copy of the bytes, to be damaged.
[[nodiscard]] Image copy_of(const Image& image);

// The map of a set; fails the test if the kernel refuses it.
[[nodiscard]] kernel::FilterMap map_of(const Image& image, const std::string& name = "test");

} // namespace sieve::test
