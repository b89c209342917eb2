// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Spans of time as people write them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace sieve::service {

// "30s", "5m", "1h", "2d" or "1w": a whole number and a unit; nothing for any other text, and for more than
// ten years.
[[nodiscard]] std::optional<std::chrono::seconds> parse_duration(std::string_view text);

// The shortest such text: "90s", "1h".
[[nodiscard]] std::string duration_text(std::chrono::seconds span);

} // namespace sieve::service
