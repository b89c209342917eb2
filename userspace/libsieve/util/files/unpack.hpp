// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Compressed lists to text: gzip, zstd, xz and zip, told by their first bytes and not by a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libsieve/util/results/result.hpp"

namespace sieve {

enum class Packing : std::uint8_t { none, gzip, zstd, xz, zip };

// The bytes that packing_of() wants to see, where there are so many.
inline constexpr std::size_t packing_bytes = 8;

// How content that begins with these bytes is packed.
[[nodiscard]] Packing packing_of(std::string_view begin);

struct UnpackLimits {
    std::uint64_t bytes = std::uint64_t{2} << 30; // unpacked
    double ratio = 500; // bytes unpacked for each packed byte read so far; the first MiB is free
    // A zip archive is read as a whole, because its directory is at its end.
    std::uint64_t zip_bytes = std::uint64_t{512} << 20;
};

// Unpacks a stream while it is read. gzip, zstd and xz: parts that follow one another are one text. zip: all
// regular files are parts of the text, in the order of the directory, and each of them ends in a newline;
// folders are left out. Bytes before or behind a zip archive, such as another one, and an archive within an
// archive are refused.
class Unpacker {
  public:
    // Gives up to `bytes` packed bytes; 0 at the end.
    using Source = std::function<Result<std::size_t>(char* to, std::size_t bytes)>;

    // Errors of this and of read(), as bad_input that names `name`: the content is damaged, cut short or
    // encrypted, holds no file or another archive, or unpacks to more than the limits say; and errors of the
    // source.
    [[nodiscard]] static Result<std::unique_ptr<Unpacker>> of(Packing packing, Source source,
                                                              std::string name, const UnpackLimits& limits);

    virtual ~Unpacker() = default;

    // Gives up to `bytes` unpacked bytes; 0 at the end.
    [[nodiscard]] virtual Result<std::size_t> read(char* to, std::size_t bytes) = 0;

    // The number of packed bytes taken from the source.
    [[nodiscard]] virtual std::uint64_t consumed() const = 0;
};

} // namespace sieve
