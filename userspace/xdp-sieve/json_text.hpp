// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// JSON as text, whatever it was made of.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace sieve::cli {

inline constexpr int json_one_line = -1;

// Names of files and interfaces need not be UTF-8, and JSON must be: what is not becomes U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = 2);
std::string json_text(const nlohmann::ordered_json& value, int indent = 2);

} // namespace sieve::cli
