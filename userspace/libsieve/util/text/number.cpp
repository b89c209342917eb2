// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/text/number.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/core.h>

namespace sieve {

namespace {

constexpr double most_exact = 9007199254740992.0; // 2^53

template <class T>
std::optional<T> whole_text(const std::string& text) {
    T value{};
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || at != end) return std::nullopt;
    return value;
}

} // namespace

std::optional<double> parse_real(const std::string& text) {
    const std::optional<double> value = whole_text<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::uint64_t> parse_whole(const std::string& text) {
    if (const auto digits = whole_text<std::uint64_t>(text)) return digits;
    const std::optional<double> value = parse_real(text);
    if (!value || *value < 0 || *value > most_exact || *value != std::floor(*value)) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
}

Result<std::uint64_t> parse_bytes(const std::string& text) {
    const auto wrong = [&] {
        return invalid_request(
            fmt::format("{}: not a number of bytes, expected such as 65536, 512K, 64M or 1G", text));
    };
    int shift = 0;
    std::string number = text;
    if (!text.empty()) switch (text.back()) {
        case 'K':
            shift = 10;
            break;
        case 'M':
            shift = 20;
            break;
        case 'G':
            shift = 30;
            break;
        default:
            break;
        }
    if (shift > 0) number.pop_back();
    if (const auto whole = parse_whole(number)) {
        if (*whole > std::numeric_limits<std::uint64_t>::max() >> shift) return wrong();
        return *whole << shift;
    }
    const std::optional<double> real = parse_real(number);
    const double bytes = real ? std::ldexp(*real, shift) : -1;
    if (bytes < 0 || bytes > most_exact || shift == 0) return wrong();
    return static_cast<std::uint64_t>(bytes);
}

} // namespace sieve
