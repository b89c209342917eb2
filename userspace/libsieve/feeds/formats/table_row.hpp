// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One row of a table of separated values (RFC 4180), which is one line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sieve::formats {

using Row = std::vector<std::string>;

// The cells of a row; nothing if a quotation does not end.
[[nodiscard]] std::optional<Row> split_row(std::string_view line, char delimiter);

// The delimiter that the line has most of, outside of quotations: a comma, a semicolon, a tab or a bar.
[[nodiscard]] char delimiter_of(std::string_view line);

// Whether two words are the same but for the case of their letters.
[[nodiscard]] bool same_word(std::string_view a, std::string_view b);

} // namespace sieve::formats
