// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "model/entry_model.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "libsieve/feeds/text/protocols.hpp"

namespace sieve::model {

namespace {

using Words = std::array<std::uint64_t, 2>;

constexpr std::size_t longest_line = 4096;
constexpr std::string_view blanks = " \t";
constexpr std::string_view separators = " \t,";
constexpr std::string_view ends_of_token = " \t,#;";

struct Address {
    Words words{};
    bool dotted = false;

    [[nodiscard]] bool is_ipv4() const { return words[0] == 0 && words[1] >> 32 == 0xffff; }
};

std::optional<Address> address_of(std::string_view text) {
    // inet_pton stops at a NUL byte.
    if (text.find('\0') != std::string_view::npos) return std::nullopt;
    const std::string copy(text);
    std::uint8_t bytes[16] = {};
    Address address;
    if (::inet_pton(AF_INET, copy.c_str(), bytes + 12) == 1) {
        bytes[10] = bytes[11] = 0xff;
        address.dotted = true;
    } else if (::inet_pton(AF_INET6, copy.c_str(), bytes) != 1) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < 16; i++) address.words[i / 8] = address.words[i / 8] << 8 | bytes[i];
    return address;
}

std::optional<unsigned> number_of(std::string_view text, unsigned most) {
    if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
    unsigned value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + static_cast<unsigned>(c - '0');
    }
    return value <= most ? std::optional(value) : std::nullopt;
}

// The length of a netmask; nothing if the text is none.
std::optional<unsigned> netmask_of(std::string_view text) {
    const auto mask = address_of(text);
    if (!mask || !mask->dotted) return std::nullopt;
    const std::uint64_t bits = mask->words[1] & 0xffffffff;
    for (unsigned length = 0; length <= 32; length++)
        if (bits == (0xffffffff00000000 >> length & 0xffffffff)) return length;
    return std::nullopt;
}

std::string_view take_token(std::string_view& text, std::string_view ends) {
    const std::size_t size = std::min(text.find_first_of(ends), text.size());
    const std::string_view token = text.substr(0, size);
    text.remove_prefix(size);
    return token;
}

void skip(std::string_view& text, std::string_view what) {
    text.remove_prefix(std::min(text.find_first_not_of(what), text.size()));
}

// A single-address key: an address, a prefix, or a range.
Entry read_single(std::string_view text, std::size_t word) {
    Entry entry;
    const std::string_view token = take_token(text, ends_of_token);
    const std::size_t cut = std::min(token.find_first_of("/-"), token.size());
    const auto first = address_of(token.substr(0, cut));
    if (!first) return entry;
    entry.key[word] = first->words[0];
    entry.key[word + 1] = first->words[1];
    Words last = first->words;
    // The text behind the address. A slash there makes a prefix if a length follows.
    std::string_view behind{token.data() + cut, token.size() - cut + text.size()};
    std::optional<std::string_view> prefix;
    if (cut < token.size() && token[cut] == '/') {
        prefix = token.substr(cut + 1);
    } else if (std::string_view slash = behind; skip(slash, blanks), slash.starts_with('/')) {
        slash.remove_prefix(1);
        skip(slash, blanks);
        const std::string_view column = take_token(slash, ends_of_token);
        if (!column.empty() && column.find_first_not_of("0123456789.") == std::string_view::npos) {
            prefix = column;
            text = slash;
        }
    }
    if (prefix) {
        const unsigned bits = first->dotted ? 32 : 128;
        auto length = number_of(*prefix, bits);
        if (!length && first->dotted) length = netmask_of(*prefix);
        if (!length) return entry;
        for (unsigned bit = *length + (128 - bits); bit < 128; bit++) {
            const std::uint64_t mask = std::uint64_t{1} << (63 - bit % 64);
            if ((first->words[bit / 64] & mask) != 0) return entry; // bits are set behind the prefix
            last[bit / 64] |= mask;
        }
        entry.rest = text;
    } else {
        // A dash there makes a range if an address follows.
        entry.rest = behind;
        skip(behind, blanks);
        if (behind.starts_with('-')) {
            behind.remove_prefix(1);
            skip(behind, blanks);
            const auto to = address_of(take_token(behind, ends_of_token));
            if (!to && cut < token.size()) return entry;
            if (to) {
                if (to->is_ipv4() != first->is_ipv4() || to->words < first->words) return entry;
                last = to->words;
                entry.rest = behind;
            }
        }
    }
    entry.meaning = last == first->words ? Meaning::key : Meaning::range;
    entry.last = last;
    return entry;
}

} // namespace

Entry read_entry(std::string_view text, std::uint32_t fields) {
    if (fields == SIEVE_FIELD_SRC || fields == SIEVE_FIELD_DST) {
        skip(text, separators);
        return read_single(text, fields == SIEVE_FIELD_SRC ? 0 : 2);
    }
    Entry entry;
    for (unsigned field = 0; field < 5; field++) {
        if ((fields >> field & 1) == 0) continue;
        skip(text, separators);
        const std::string_view behind = text;
        const std::string_view token = take_token(text, ends_of_token);
        if (field < 2) {
            auto address = address_of(token);
            if (!address) {
                // "ADDRESS:PORT" and "[ADDRESS]:PORT": the port is the next token.
                const std::size_t colon = token.rfind(':');
                const unsigned next = field == 0 && (fields & 2) != 0 ? 1
                                      : (fields & 4) != 0             ? 2
                                      : (fields & 8) != 0             ? 3
                                                                      : 4;
                if (colon == std::string_view::npos || (next != 2 && next != 3)) return entry;
                if (colon + 1 == token.size() || token[colon + 1] < '0' || token[colon + 1] > '9')
                    return entry;
                std::string_view host = token.substr(0, colon);
                const bool bracketed = host.size() > 1 && host.front() == '[' && host.back() == ']';
                if (bracketed) host = host.substr(1, host.size() - 2);
                address = address_of(host);
                if (!address || address->dotted == bracketed) return entry;
                text = behind.substr(colon + 1);
            }
            entry.key[2 * field] = address->words[0];
            entry.key[2 * field + 1] = address->words[1];
            continue;
        }
        auto number = number_of(token, field == 4 ? 255 : 65535);
        if (!number && field == 4) {
            const int named = protocol_number(token);
            if (named >= 0) number = static_cast<unsigned>(named);
        }
        if (!number) return entry;
        entry.key[4] += static_cast<std::uint64_t>(*number) << (field == 2 ? 24 : field == 3 ? 8 : 0);
    }
    // In IPv6, these numbers are extension headers.
    const auto is_ipv6 = [&](unsigned field) {
        return (fields >> field & 1) != 0 &&
               (entry.key[2 * field] != 0 || entry.key[2 * field + 1] >> 32 != 0xffff);
    };
    const std::uint64_t number = entry.key[4] & 0xff;
    const bool extension = number == 0 || number == 43 || number == 44 || number == 51 || number == 60;
    if ((fields & 16) != 0 && extension && (is_ipv6(0) || is_ipv6(1))) return entry;
    entry.rest = text;
    entry.meaning = Meaning::key;
    return entry;
}

namespace {

// Whether the column that begins the text is an address, or begins with one and goes on with a sign that may
// follow one. Takes the column off the text.
bool takes_address(std::string_view& text) {
    const std::string_view token = take_token(text, ends_of_token);
    if (address_of(token.substr(0, token.find_first_of("/-")))) return true;
    const auto cut = address_of(token.substr(0, token.find(':')));
    return cut && cut->dotted;
}

bool has_address(std::string_view text) {
    for (;;) {
        skip(text, separators);
        if (text.empty() || text[0] == '#') return false;
        if (text[0] == ';') break;
        if (takes_address(text)) return true;
    }
    for (std::size_t at = 0; (at = text.find(';', at)) != std::string_view::npos;) {
        std::string_view column = text.substr(++at);
        if (takes_address(column)) return true;
    }
    return false;
}

} // namespace

Entry read_line(std::string_view line, std::uint32_t fields) {
    Entry entry;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > longest_line || line.find('\0') != std::string_view::npos) return entry;
    skip(line, blanks);
    if (line.empty() || line[0] == '#' || line[0] == ';')
        entry.meaning = Meaning::comment;
    else if (line[0] == '{')
        entry.meaning = Meaning::unknown;
    else
        entry = read_entry(line, fields);
    if ((entry.meaning == Meaning::key || entry.meaning == Meaning::range) && has_address(entry.rest))
        entry.meaning = Meaning::bad;
    return entry;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t size = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, size));
        text.remove_prefix(std::min(size + 1, text.size()));
    }
    return lines;
}

} // namespace sieve::model
