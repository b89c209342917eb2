// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a line of a feed and a key on the command line mean, written from the description in feeds/feed.hpp
// and feeds/key_text.hpp, over strings, with the C library's inet_pton for addresses. Of the code under test
// it takes the table of protocol names alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sieve/key.h>

namespace sieve::model {

enum class Meaning { key, range, comment, bad, unknown };

struct Entry {
    Meaning meaning = Meaning::bad;
    std::array<std::uint64_t, 5> key{};  // of a range its first address
    std::array<std::uint64_t, 2> last{}; // of a range
    std::string_view rest{};             // of a key, what stands behind its last field
};

// The entry at the start of `text`, which has no line end. Fields are SIEVE_FIELD bits.
[[nodiscard]] Entry read_entry(std::string_view text, std::uint32_t fields);

// One line of a feed, without its newline. Unknown: JSON, of which this model knows nothing.
[[nodiscard]] Entry read_line(std::string_view line, std::uint32_t fields);

// The lines of a feed's text, without their newlines and the byte order mark.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

} // namespace sieve::model
