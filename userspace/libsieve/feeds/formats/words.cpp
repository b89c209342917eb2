// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/formats/words.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "libsieve/feeds/text/key_text.hpp"

namespace sieve::formats {

namespace {

constexpr std::string_view blanks = " \t\r";

bool is_number(std::string_view word) {
    return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

} // namespace

std::string_view take_word(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(blanks));
    text.remove_prefix(word.size());
    return word;
}

bool starts_with_word(std::string_view line, std::string_view word) {
    return take_word(line) == word && !line.empty();
}

std::string_view take_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

std::string_view without_blanks(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    const std::size_t last = text.find_last_not_of(blanks);
    return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

std::optional<WordAddress> address_of(std::string_view word) {
    const char* const end = word.data() + word.size();
    if (std::uint32_t v4 = 0; entry::parse_ipv4(word.data(), end, v4) == end && !word.empty())
        return WordAddress{sieve_v4_mapped(v4), true};
    std::uint64_t upper = 0;
    std::uint64_t lower = 0;
    if (!word.empty() && entry::parse_ipv6(word.data(), end, upper, lower) == end)
        return WordAddress{static_cast<uint128>(upper) << 64 | lower, false};
    return std::nullopt;
}

std::optional<unsigned> small_number(std::string_view word, unsigned most) {
    if (!is_number(word) || word.size() > 3) return std::nullopt;
    unsigned value = 0;
    for (const char c : word) value = value * 10 + static_cast<unsigned>(c - '0');
    return value <= most ? std::optional(value) : std::nullopt;
}

entry::Fault fault_of(std::string sentence) {
    return {.kind = entry::FaultKind::sentence, .hint = std::move(sentence)};
}

bool order_components(std::span<const std::string> components, std::uint32_t fields, std::string& text,
                      entry::Fault& fault) {
    std::vector<std::string_view> addresses;
    std::vector<std::string_view> ports;
    std::vector<std::string_view> protocols;
    for (const std::string& component : components) {
        if (is_number(component))
            ports.push_back(component);
        else if (component.find_first_of(".:/") != std::string::npos)
            addresses.push_back(component);
        else
            protocols.push_back(component);
    }
    const auto count = [&](std::uint32_t of) { return static_cast<std::size_t>(std::popcount(fields & of)); };
    if (addresses.size() != count(SIEVE_FIELD_ADDRESSES) || ports.size() != count(SIEVE_FIELD_PORTS) ||
        protocols.size() != count(SIEVE_FIELD_PROTO)) {
        fault = fault_of(fmt::format("found {}, expected a value for each of {}",
                                     entry::quote(fmt::format("{}", fmt::join(components, " "))),
                                     format_fields(fields)));
        return false;
    }
    addresses.insert(addresses.end(), ports.begin(), ports.end());
    addresses.insert(addresses.end(), protocols.begin(), protocols.end());
    text = fmt::format("{}", fmt::join(addresses, " "));
    return true;
}

} // namespace sieve::formats
