// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/range_part.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

#include "libsieve/feeds/text/entry.hpp"

namespace sieve::entry {

namespace {

// The name's letters and digits, in lower case.
std::string letters_of(std::string_view name) {
    std::string letters;
    for (const unsigned char c : name)
        if (std::isalnum(c) != 0) letters += static_cast<char>(std::tolower(c));
    return letters;
}

// The words of "end_ip", "IP end" and "endIp", with a blank before and behind each.
std::string words_of(std::string_view name) {
    std::string words = " ";
    bool was_lower = false;
    for (const unsigned char c : name) {
        if (was_lower && std::isupper(c) != 0) words += ' ';
        words += std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : ' ';
        was_lower = std::islower(c) != 0;
    }
    return words + ' ';
}

bool names_length(std::string_view name) {
    const std::string letters = letters_of(name);
    if (letters == "length" || letters == "len") return true;
    constexpr std::array<std::string_view, 7> ends{"prefix",  "prefixlen",  "prefixlength", "mask",
                                                   "masklen", "masklength", "cidr"};
    return std::ranges::any_of(ends, [&](std::string_view end) { return letters.ends_with(end); });
}

bool names_last(std::string_view name) {
    const std::string words = words_of(name);
    constexpr std::array<std::string_view, 9> lasts{" end ",  " last ",  " to ",     " endip ", " lastip ",
                                                    " toip ", " ipend ", " iplast ", " ipto "};
    return std::ranges::any_of(lasts,
                               [&](std::string_view last) { return words.find(last) != std::string::npos; });
}

struct Single {
    std::uint32_t v4 = 0;
    std::uint64_t upper = 0;
    std::uint64_t lower = 0;
    unsigned bits = 0;

    bool operator==(const Single&) const = default;
};

std::optional<Single> single_of(std::string_view text) {
    if (text.empty()) return std::nullopt;
    const char* const end = text.data() + text.size();
    Single one{.bits = 32};
    if (parse_ipv4(text.data(), end, one.v4) == end) return one;
    one = {.bits = 128};
    if (parse_ipv6(text.data(), end, one.upper, one.lower) == end) return one;
    return std::nullopt;
}

// The length of a prefix that the text is, or that it is the netmask of.
std::optional<unsigned> length_of(std::string_view text) {
    if (const auto mask = single_of(text); mask && mask->bits == 32) {
        const auto ones = static_cast<unsigned>(std::countl_one(mask->v4));
        if (ones == 32 || mask->v4 << ones == 0) return ones;
    }
    if (text.starts_with('/')) text.remove_prefix(1);
    unsigned length = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, length);
    if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
    return length;
}

} // namespace

bool names_range_part(std::string_view name) {
    return names_length(name) || names_last(name);
}

bool widens(std::string_view name, std::string_view value, std::string_view address) {
    const std::optional<Single> single = single_of(address);
    if (!single) return false;
    if (names_last(name)) {
        const std::optional<Single> last = single_of(value);
        return last && *last != *single;
    }
    const std::optional<unsigned> length = names_length(name) ? length_of(value) : std::nullopt;
    return length && *length < single->bits;
}

} // namespace sieve::entry
