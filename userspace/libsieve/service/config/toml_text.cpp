// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/toml_text.hpp"

#include <limits>

#include <fmt/format.h>

#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += fmt::format("\\{}", c);
        else if (is_control(c))
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
            out += c;
    }
    return out + '"';
}

std::string list_of(const std::vector<std::string>& texts) {
    std::vector<std::string> all;
    for (const std::string& text : texts) all.push_back(quoted(text));
    return fmt::format("[{}]", fmt::join(all, ", "));
}

std::string whole_of(std::uint64_t value) {
    const std::string digits = fmt::format("{}", value);
    return value > std::numeric_limits<std::int64_t>::max() ? quoted(digits) : digits;
}

void TomlText::key(std::string_view name, const std::string& value) {
    keys_.push_back({fmt::format("{} = {}", name, value), true});
}

void TomlText::none(std::string_view name, std::string_view meaning) {
    keys_.push_back({fmt::format("# {}: {}", name, meaning), false});
}

std::string TomlText::lines() const {
    std::string text;
    for (const Key& key : keys_) text += key.line + '\n';
    return text;
}

std::string TomlText::inline_table() const {
    std::string text;
    for (const Key& key : keys_)
        if (key.has_value) text += (text.empty() ? "" : ", ") + key.line;
    return fmt::format("{{ {} }}", text);
}

} // namespace sieve::service
