// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/geo_code.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/core.h>

#include "libsieve/util/text/printable.hpp"

namespace sieve {

namespace {

constexpr std::string_view country_prefix = "country:";
constexpr std::string_view network_prefix = "asn:";

char capital(char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

} // namespace

std::optional<std::string> country_code(std::string_view text) {
    std::string code(text);
    std::ranges::transform(code, code.begin(), capital);
    const bool letters = std::ranges::all_of(code, [](char c) { return c >= 'A' && c <= 'Z'; });
    return code.size() == 2 && letters ? std::optional(code) : std::nullopt;
}

std::optional<std::uint32_t> network_number(std::string_view text) {
    if (text.size() > 2 && capital(text[0]) == 'A' && capital(text[1]) == 'S') text.remove_prefix(2);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole && number != 0 ? std::optional(number) : std::nullopt;
}

std::string network_code(std::uint32_t number) {
    return fmt::format("AS{}", number);
}

Result<std::string> parse_geo_code(std::string_view text) {
    if (std::optional<std::string> country = country_code(text)) return *std::move(country);
    if (text.starts_with('A') || text.starts_with('a'))
        if (const auto number = network_number(text)) return network_code(*number);
    return invalid_request(fmt::format(
        "expected a country's two letters, such as DE, or a network, such as AS3320, found \"{}\"",
        printable(text, 64)));
}

Result<std::optional<std::string>> geo_code_of_source(std::string_view source) {
    if (source.starts_with(country_prefix)) {
        if (auto code = country_code(source.substr(country_prefix.size()))) return code;
        return invalid_request(
            fmt::format("\"{}\": expected a country's two letters, as in country:DE", printable(source, 64)));
    }
    if (source.starts_with(network_prefix)) {
        if (const auto number = network_number(source.substr(network_prefix.size())))
            return std::optional(network_code(*number));
        return invalid_request(fmt::format("\"{}\": expected the number of an autonomous system, as in "
                                           "asn:AS3320",
                                           printable(source, 64)));
    }
    return std::optional<std::string>();
}

} // namespace sieve
