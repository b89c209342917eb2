// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A temporary file for data that is too large for memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve {

// An open file without a name: nobody else can open it, and nothing is left behind, whatever ends the
// process. It lies in $TMPDIR, or in /var/tmp, which unlike /tmp is on a disk everywhere. Errors (of kind
// bad_input) name the directory: it cannot hold the file, the disk is full, the disk cannot be read.
class TemporaryFile {
  public:
    // `content` says in errors what the file holds, such as "hashes".
    [[nodiscard]] static Result<TemporaryFile> create(std::string_view content);

    // Any number of threads may call these.
    [[nodiscard]] Status write(std::uint64_t at, const void* bytes, std::size_t count) const;
    [[nodiscard]] Status read(std::uint64_t at, void* bytes, std::size_t count) const;

  private:
    TemporaryFile(UniqueFd file, std::string directory, std::string_view content)
        : file_(std::move(file)), directory_(std::move(directory)), content_(content) {}
    [[nodiscard]] tl::unexpected<Error> fault(const char* what, int error) const;

    UniqueFd file_;
    std::string directory_;
    std::string content_;
};

} // namespace sieve
