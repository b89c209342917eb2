// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/html.hpp"

#include <cstddef>
#include <cstdint>

namespace sieve::service::watching {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd"; // U+FFFD

struct Character {
    char32_t code = 0;
    std::size_t bytes = 1;
    bool valid = false;
};

// The first character of UTF-8 text: RFC 3629.
Character first_of(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return {lead, 1, true};
    const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
    char32_t code = lead & (0x7fU >> bytes);
    for (std::size_t i = 1; i < bytes; i++) {
        if ((byte(i) & 0xc0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3f);
    }
    constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < least[bytes] || code > 0x10ffff || surrogate) return {};
    return {code, bytes, true};
}

bool harmless(char32_t code) {
    const bool control = (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0);
    const bool turns = (code >= 0x200e && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
                       (code >= 0x2066 && code <= 0x2069) || code == 0x61c;
    return !control && !turns;
}

} // namespace

std::string escape_html(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Character first = first_of(text);
        switch (first.code) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '"':
            out += "&quot;";
            break;
        case '\'':
            out += "&#39;";
            break;
        default:
            out += first.valid && harmless(first.code) ? text.substr(0, first.bytes) : replacement;
        }
        text.remove_prefix(first.bytes);
    }
    return out;
}

void Html::append(std::string_view markup, std::span<const std::string> texts) {
    for (const std::string& text : texts) {
        const std::size_t hole = markup.find("{}");
        if (hole == std::string_view::npos) break;
        text_ += markup.substr(0, hole);
        text_ += text;
        markup.remove_prefix(hole + 2);
    }
    text_ += markup;
}

} // namespace sieve::service::watching
