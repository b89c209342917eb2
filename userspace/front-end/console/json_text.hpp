// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Turns JSON into text, whatever the JSON was made from.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace sieve::cli {

inline constexpr int json_one_line = -1;

// Names of files and interfaces need not be UTF-8, but JSON must be. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = 2);
std::string json_text(const nlohmann::ordered_json& value, int indent = 2);

} // namespace sieve::cli
