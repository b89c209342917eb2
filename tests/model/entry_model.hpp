// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The meaning of a feed's line and of a key on the command line. The model is written from the descriptions
// in feeds/feed.hpp and feeds/key_text.hpp. It works on strings and reads addresses with the C library's
// inet_pton. Of the code under test, it uses only the table of protocol names.
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
    std::array<std::uint64_t, 5> key{};  // for a range, its first address
    std::array<std::uint64_t, 2> last{}; // for a range, its last address
    std::string_view rest{};             // for a key, the text behind its last field
};

// The entry at the start of `text`, which has no line end. Fields are sieve_field bits.
[[nodiscard]] Entry read_entry(std::string_view text, std::uint32_t fields);

// One line of a feed, without its newline. Unknown: JSON, which this model does not read.
[[nodiscard]] Entry read_line(std::string_view line, std::uint32_t fields);

// The lines of a feed's text, without their newlines and the byte order mark.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

} // namespace sieve::model
