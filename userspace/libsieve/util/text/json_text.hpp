// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// JSON to text, whatever the JSON was made from, and back. These are no templates in the header: what reads
// and writes text takes as long to compile as the rest of a source.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace sieve {

inline constexpr int json_one_line = -1;

// Names of files and interfaces need not be UTF-8, but JSON must be. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = 2);
std::string json_text(const nlohmann::ordered_json& value, int indent = 2);

// The same in one line of ASCII.
std::string json_line(const nlohmann::json& value);

// The discarded value, of which at() and get() throw, if the text is no JSON.
nlohmann::json parse_json(std::string_view text);

// The same; `twice` then names a member that an object has twice, if there is any.
nlohmann::json parse_json(std::string_view text, std::optional<std::string>& twice);

} // namespace sieve
