// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// How countries and networks are named: DE (ISO 3166), AS3320 (an autonomous system).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// The two letters as capitals; nothing if the text is anything else.
[[nodiscard]] std::optional<std::string> country_code(std::string_view text);

// The number in "AS3320" or "3320"; nothing if the text is anything else, or 0, which is no network.
[[nodiscard]] std::optional<std::uint32_t> network_number(std::string_view text);

// "AS3320"
[[nodiscard]] std::string network_code(std::uint32_t number);

// "DE" and "as3320" as this file's other functions write them. invalid_request: the text names neither.
[[nodiscard]] Result<std::string> parse_geo_code(std::string_view text);

// The code of a source that is named so: "country:DE", "asn:AS3320" or "asn:3320". Nothing: the source is
// something else. invalid_request: no code follows.
[[nodiscard]] Result<std::optional<std::string>> geo_code_of_source(std::string_view source);

} // namespace sieve
