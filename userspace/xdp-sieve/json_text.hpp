// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// JSON as text, whatever it was made of.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace sieve::cli {

// Names of files and interfaces need not be UTF-8, and JSON must be: what is not becomes U+FFFD.
template <class Json>
std::string json_text(const Json& value, int indent = 2) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

inline constexpr int json_one_line = -1;

} // namespace sieve::cli
