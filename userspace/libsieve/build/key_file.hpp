// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Keys on disk, for a build that may have to hash them again.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/files/temporary_file.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// A temporary file of keys (util/files/temporary_file.hpp), with their repetitions. An IPv4 address takes 4
// bytes, any other key what it takes in a KeySet. Errors are those of the file.
class KeyFile {
  public:
    // For keys of these fields.
    [[nodiscard]] static Result<KeyFile> create(std::uint32_t fields);

    [[nodiscard]] Status append(const KeySet& keys);

    // Reads all keys in the order in which they were appended, and passes them on in portions. An error of
    // `visit` ends it and is returned.
    [[nodiscard]] Status for_each(const std::function<Status(const KeySet&)>& visit) const;

  private:
    struct Portion {
        std::uint32_t keys = 0;
        bool ipv4 = false; // addresses of 4 bytes
    };

    KeyFile(TemporaryFile file, std::uint32_t fields) : file_(std::move(file)), fields_(fields) {}

    TemporaryFile file_;
    std::uint32_t fields_;
    std::uint64_t bytes_ = 0;
    std::vector<Portion> portions_{}; // side by side in the file
};

} // namespace sieve
