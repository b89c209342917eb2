// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_depth.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/core.h>

namespace sieve::service {

namespace {

// Behind the string that begins at `begin`. One that is not closed is a mistake, and the parser goes no
// further.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
    const char quote = text[begin];
    const std::string three(3, quote);
    const bool is_long = text.substr(begin).starts_with(three);
    for (std::size_t at = begin + (is_long ? 3 : 1); at < text.size(); at++) {
        if (text[at] == '\\' && quote == '"') {
            at++;
        } else if (is_long && text.substr(at).starts_with(three)) {
            std::size_t end = at + 3;
            while (end < std::min(at + 5, text.size()) && text[end] == quote)
                end++; // they belong to the text
            return end;
        } else if (!is_long && (text[at] == quote || text[at] == '\n')) {
            return at + 1;
        }
    }
    return text.size();
}

Mistake mistake_at(std::string_view text, std::size_t at, std::string message) {
    const std::string_view before = text.substr(0, at);
    const std::size_t line = before.rfind('\n') + 1; // of npos: 0
    return {.line = static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n') + 1),
            .column = static_cast<std::uint32_t>(at - line + 1),
            .key = {},
            .message = std::move(message)};
}

} // namespace

std::optional<Mistake> find_depth(std::string_view text) {
    std::size_t brackets = 0;
    std::size_t dots = 0;
    for (std::size_t at = 0; at < text.size(); at++) {
        switch (text[at]) {
        case '#':
            at = std::min(text.find('\n', at), text.size()) - 1;
            break;
        case '"':
        case '\'':
            at = end_of_string(text, at) - 1;
            break;
        case '.':
            if (++dots == most_key_parts)
                return mistake_at(text, at,
                                  fmt::format("a key of over {} parts, expected fewer", most_key_parts));
            break;
        case '[':
        case '{':
            dots = 0;
            if (++brackets > most_brackets)
                return mistake_at(
                    text, at, fmt::format("nested deeper than {} brackets, expected less", most_brackets));
            break;
        case ']':
        case '}':
            dots = 0;
            brackets -= std::min<std::size_t>(brackets, 1);
            break;
        case '=':
        case ',':
        case '\n':
            dots = 0;
            break;
        default:
            break;
        }
    }
    return std::nullopt;
}

} // namespace sieve::service
