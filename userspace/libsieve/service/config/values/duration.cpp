// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/values/duration.hpp"

#include <charconv>
#include <cstdint>

#include <fmt/core.h>

namespace sieve::service {

namespace {

struct Unit {
    char letter;
    std::int64_t seconds;
};

// The longest first.
constexpr Unit units[] = {{'w', 7 * 86400}, {'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};

constexpr std::int64_t longest = std::int64_t{3650} * 86400;

} // namespace

std::optional<std::chrono::seconds> parse_duration(std::string_view text) {
    if (text.size() < 2) return std::nullopt;
    std::int64_t count = 0;
    const char* end = text.data() + text.size() - 1;
    const auto [at, error] = std::from_chars(text.data(), end, count);
    if (error != std::errc() || at != end || count < 0) return std::nullopt;
    for (const Unit& unit : units)
        if (text.back() == unit.letter && count <= longest / unit.seconds)
            return std::chrono::seconds(count * unit.seconds);
    return std::nullopt;
}

std::string duration_text(std::chrono::seconds span) {
    for (const Unit& unit : units)
        if (span.count() != 0 && span.count() % unit.seconds == 0)
            return fmt::format("{}{}", span.count() / unit.seconds, unit.letter);
    return "0s";
}

} // namespace sieve::service
