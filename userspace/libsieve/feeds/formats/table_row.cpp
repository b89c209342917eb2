// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/formats/table_row.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "libsieve/feeds/formats/words.hpp"

namespace sieve::formats {

namespace {

constexpr std::string_view delimiters = ",;\t|";

} // namespace

bool same_word(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::optional<Row> split_row(std::string_view line, char delimiter) {
    Row row;
    for (;;) {
        line.remove_prefix(std::min(line.find_first_not_of(delimiter == '\t' ? " " : " \t"), line.size()));
        std::string cell;
        if (line.starts_with('"')) {
            line.remove_prefix(1);
            for (;;) {
                const std::size_t quote = line.find('"');
                if (quote == std::string_view::npos) return std::nullopt;
                cell += line.substr(0, quote);
                line.remove_prefix(quote + 1);
                if (!line.starts_with('"')) break;
                cell += '"'; // a doubled one stands for itself
                line.remove_prefix(1);
            }
        }
        const std::size_t end = std::min(line.find(delimiter), line.size());
        cell += without_blanks(line.substr(0, end));
        row.push_back(std::move(cell));
        if (end == line.size()) return row;
        line.remove_prefix(end + 1);
    }
}

char delimiter_of(std::string_view line) {
    std::array<std::size_t, delimiters.size()> counts{};
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') quoted = !quoted;
        const std::size_t which = delimiters.find(c);
        if (!quoted && which != std::string_view::npos) counts[which]++;
    }
    return delimiters[static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) -
                                               counts.begin())];
}

} // namespace sieve::formats
