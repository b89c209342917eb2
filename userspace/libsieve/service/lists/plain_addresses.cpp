// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/plain_addresses.hpp"

#include <algorithm>

#include "libsieve/feeds/text/entry.hpp"

namespace sieve::service::live {

namespace {

constexpr std::size_t longest_address = 45; // "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255"
constexpr std::string_view address_characters = "0123456789abcdefABCDEF.:";

bool is_space(char c) {
    return entry::is_blank(c) || c == '\r';
}

std::string_view without_leading_space(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    return text;
}

// A line without its end. False: it is neither an address nor a comment.
bool take_line(std::string_view line, std::vector<Prefix>& to) {
    line = without_leading_space(line);
    if (line.empty() || entry::is_comment(line.front())) return true;
    const std::string_view address =
        line.substr(0, std::min(line.find_first_not_of(address_characters), line.size()));
    const std::string_view rest = without_leading_space(line.substr(address.size()));
    if (address.size() > longest_address) return false;
    if (!rest.empty() && !entry::is_comment(rest.front())) return false;
    if (entry::find_second_address(rest.data(), rest.data() + rest.size()) != nullptr) return false;
    sieve_key key{};
    entry::Fault fault;
    const char* at = address.data();
    const char* const end = address.data() + address.size();
    if (!entry::parse_entry(at, end, SIEVE_FIELD_SRC, key, fault) || at != end) return false;
    to.push_back({address_number(key.word[0], key.word[1])});
    return true;
}

} // namespace

bool take_plain_addresses(std::string_view lines, std::vector<Prefix>& to) {
    if (lines.size() > most_plain_bytes) return false;
    while (!lines.empty()) {
        const std::size_t end = std::min(lines.find('\n'), lines.size());
        if (!take_line(lines.substr(0, end), to)) return false;
        lines.remove_prefix(std::min(end + 1, lines.size()));
    }
    return true;
}

} // namespace sieve::service::live
