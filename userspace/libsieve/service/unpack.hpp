// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Compressed lists to text: gzip, zstd, xz and zip, told by their first bytes and not by a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "libsieve/util/result.hpp"

namespace sieve::service {

enum class Packing : std::uint8_t { none, gzip, zstd, xz, zip };

// Bytes that packing_of() and looks_like_html() want to see, where there are so many.
inline constexpr std::size_t first_bytes = 512;

// How content that begins with these bytes is packed.
[[nodiscard]] Packing packing_of(std::string_view begin);

// True for what servers, proxies and captive portals send when they have no list. No list begins so.
[[nodiscard]] bool looks_like_html(std::string_view begin);

struct UnpackLimits {
    std::uint64_t bytes = 0; // unpacked
    double ratio = 0;        // bytes unpacked for a packed one; the first MiB is free
};

// Unpacks the regular file `from`, from its beginning, and appends the text to `to`. Of a zip archive all
// regular files are parts of the list; each part ends in a newline. Returns the bytes written. bad_input,
// naming `name`: the content is damaged, cut short, encrypted, holds no file, or unpacks to more than the
// limits say.
[[nodiscard]] Result<std::uint64_t> unpack(Packing packing, int from, int to, const std::string& name,
                                           const UnpackLimits& limits);

} // namespace sieve::service
