// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What is remembered about a source's list: where it came from, which content it was, and what tells whether
// the list has changed since.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace sieve::service {

// What the file system says of a file. All zero: the content came from no file.
struct FileStamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t status_changed = 0; // nanoseconds since 1970

    [[nodiscard]] friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

[[nodiscard]] FileStamp stamp_of(const struct stat& info);

struct SourceProvenance {
    std::string source{}; // the origin's identity (origin_identity()); holds no credentials
    std::string digest{}; // of the bytes as they came (digest.hpp); empty: they came through a pipe
    std::uint64_t bytes = 0;
    std::string etag{};          // as the server wrote it; empty: none
    std::string last_modified{}; // likewise
    std::int64_t asked = 0;      // seconds since 1970: when the source last gave or confirmed this content
    std::int64_t changed = 0; // seconds since 1970: when this content was first seen, or the file's own time
    FileStamp stamp{};
    std::int64_t read = 0; // seconds since 1970: when the digest was made

    [[nodiscard]] friend bool operator==(const SourceProvenance&, const SourceProvenance&) = default;
};

[[nodiscard]] std::set<std::string> identities_of(const std::vector<SourceProvenance>& sources);

// Whether something that the origin said is among these; a list may do without one that has never answered.
[[nodiscard]] bool has_said(const std::vector<SourceProvenance>& sources, const std::string& origin);
// Whether an origin has answered for the first time that the list before had to do without.
[[nodiscard]] bool has_first_answer(const std::vector<SourceProvenance>& before,
                                    const std::vector<SourceProvenance>& now);

} // namespace sieve::service
