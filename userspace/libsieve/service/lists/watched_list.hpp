// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A list file that is followed: what came and went since it was last read, without reading all of it again.
//
// The text of the last version is kept. A new version is compared with it block by block from both ends, so
// only what is between the first and the last byte that differ is kept in memory twice, and only those lines
// are parsed, by the smallest of readers (plain_addresses.hpp). Otherwise nobody here looks into the text.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/service/lists/timed_entry.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service::live {

// Reads `bytes` bytes of a text at an offset. False: it cannot be read.
using ReadAt = std::function<bool(std::uint64_t offset, char* to, std::size_t bytes)>;

// The part of two texts that differs, in whole lines: text[begin, before_end) became `now`.
struct ChangedLines {
    std::size_t begin = 0;
    std::size_t before_end = 0;
    std::string now{};
};
// Compares a text with a version of it that has so many bytes. Nothing: that version cannot be read.
[[nodiscard]] std::optional<ChangedLines> changed_lines(std::string_view before, std::uint64_t now_bytes,
                                                        const ReadAt& now);

class WatchedList {
  public:
    // `most_bytes`: a larger file is an error. `plain`: the list is one of lines. Of any other format, each
    // change is Outcome::unknown.
    WatchedList(std::string path, std::uint64_t most_bytes, bool plain = true)
        : path_(std::move(path)), most_bytes_(most_bytes), plain_(plain) {}

    [[nodiscard]] const std::string& path() const { return path_; }

    struct Difference {
        std::vector<Prefix> removed; // each as often as lines with it went
        std::vector<Prefix> added;
    };
    enum class Outcome : std::uint8_t {
        same,    // nothing has changed
        lines,   // `difference` says what has
        unknown, // the whole list must be read: it is the first time, much has changed, or a changed line is
                 // no plain address
    };
    struct Look {
        Outcome outcome = Outcome::same;
        Difference difference{};
    };

    // Looks at the file. The new version counts once keep() is called. Errors: the file cannot be read, it is
    // too large, or it changed while it was read (changed_meanwhile).
    // `whole`: as if it were the first time.
    [[nodiscard]] Result<Look> look(bool whole = false);
    // The list has what the last look() saw.
    void keep();
    // It may lack something: the next look() is as the first.
    void forget() { kept_.reset(); }
    // The whole text that the last look() saw, for whoever must read all of it. Only after Outcome::unknown.
    [[nodiscard]] std::string_view text() const { return next_ ? std::string_view(next_->lines.now) : ""; }

  private:
    struct Stamp {
        dev_t device = 0;
        ino_t inode = 0;
        off_t size = 0;
        std::int64_t modified = 0; // in nanoseconds since 1970
        std::int64_t changed = 0;
        friend bool operator==(const Stamp&, const Stamp&) = default;
    };
    // A version that is not kept yet, as what becomes of the kept one.
    struct Version {
        Stamp stamp;
        ChangedLines lines;
    };
    // `whole`: of all the text. Nothing: the version is the kept one.
    [[nodiscard]] Result<std::optional<Version>> read(bool whole) const;

    std::string path_;
    std::uint64_t most_bytes_;
    bool plain_;
    std::optional<Stamp> kept_;
    std::string kept_text_;
    std::optional<Version> next_;
};

} // namespace sieve::service::live
