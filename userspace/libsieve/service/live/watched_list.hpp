// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A list file that is followed: what came and went since it was last read, without reading all of it again.
//
// The text of the last version is kept. Of a new version, only the lines between the first and the last byte
// that differ are parsed: one more address in a list of 10^6 costs reading and comparing 14 MB, and parsing
// one line.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/service/live/claim.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::service::live {

// The part of two texts that differs, in whole lines.
struct ChangedLines {
    std::string_view before;
    std::string_view now;
};
[[nodiscard]] ChangedLines changed_lines(std::string_view before, std::string_view now);

class WatchedList {
  public:
    // `most_bytes`: a larger file is an error.
    WatchedList(std::string path, std::uint64_t most_bytes)
        : path_(std::move(path)), most_bytes_(most_bytes) {}

    [[nodiscard]] const std::string& path() const { return path_; }

    struct Difference {
        std::vector<Prefix> removed; // each as often as lines with it went
        std::vector<Prefix> added;
    };
    enum class Outcome : std::uint8_t {
        same,    // nothing has changed
        lines,   // `difference` says what has
        unknown, // the whole list must be read: it is the first time, or a changed line is no plain address
    };
    struct Look {
        Outcome outcome = Outcome::same;
        Difference difference{};
    };

    // Looks at the file. The new version counts once keep() is called. Errors: the file cannot be read, it is
    // too large, or it changed while it was read (changed_meanwhile).
    [[nodiscard]] Result<Look> look();
    // The list has what the last look() saw.
    void keep();
    // The text that the last look() saw.
    [[nodiscard]] std::string_view text() const { return next_ ? next_->text : kept_ ? kept_->text : ""; }

  private:
    struct Stamp {
        dev_t device = 0;
        ino_t inode = 0;
        off_t size = 0;
        std::int64_t modified = 0; // in nanoseconds since 1970
        std::int64_t changed = 0;
        friend bool operator==(const Stamp&, const Stamp&) = default;
    };
    struct Version {
        Stamp stamp;
        std::string text;
    };
    [[nodiscard]] Result<Version> read() const;

    std::string path_;
    std::uint64_t most_bytes_;
    std::optional<Version> kept_;
    std::optional<Version> next_;
};

} // namespace sieve::service::live
