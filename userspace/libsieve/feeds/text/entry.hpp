// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The grammar that keys on a command line and lines of a feed share, and the messages for text that does not
// fit it.
//
// The parsers work on a range of bytes. They stop at the first byte that they cannot use and never read
// beyond the range. They are written by hand, without the C library, because reading a feed of 10^8 lines
// spends most of its time here.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <sieve/prefix.h>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/keys/members.hpp"

namespace sieve::entry {

struct FieldName {
    std::uint32_t field;
    std::string_view name;      // in a field list
    std::string_view long_name; // in a sentence
};

// In the order of the fields in a written key.
inline constexpr std::array<FieldName, 5> field_names{{
    {SIEVE_FIELD_SRC, "src", "source address"},
    {SIEVE_FIELD_DST, "dst", "destination address"},
    {SIEVE_FIELD_SPORT, "sport", "source port"},
    {SIEVE_FIELD_DPORT, "dport", "destination port"},
    {SIEVE_FIELD_PROTO, "proto", "protocol"},
}};

// Whether a key of these fields is one address and nothing else. Only such a key may be written as a prefix
// or a range.
[[nodiscard]] constexpr bool is_single_address(std::uint32_t fields) {
    return fields == SIEVE_FIELD_SRC || fields == SIEVE_FIELD_DST;
}

enum class FaultKind : std::uint8_t {
    none,
    field,           // `found` is not a value of `field`
    missing,         // the text ended where `field` was expected
    surplus,         // `found` follows a complete key
    prefix_length,   // not a number up to `limit`
    host_bits,       // bits are set beyond the prefix length; `hint` is the prefix without them
    prefix,          // a prefix of more than one address (`span` + 1)
    range,           // a range of more than one address (`span` + 1)
    range_end,       // no address follows the dash
    range_backwards, // the end comes before the start
    range_families,  // from IPv4 to IPv6 or vice versa
    not_single,      // a prefix or a range among several fields
    extension,       // the protocol `found`, which no IPv6 packet has
    nul,             // a NUL byte
    too_long,        // a line of more than `limit` bytes
    json,            // not an object
    json_address,    // the address is missing, no string, or given twice
    json_twice,      // an object has the member `found` twice
    json_fields,     // JSON only works for single addresses
    second_address,  // another address behind a complete entry
    netmask,         // a netmask with a one behind a zero
    sentence,        // `hint` says it all
};

// Why a text is not a key. A Fault is cheap to make: describe() writes the sentence, and only for the faults
// that are shown.
struct Fault {
    FaultKind kind = FaultKind::none;
    std::uint32_t field = 0;
    std::uint32_t limit = 0;
    uint128 span = 0;
    std::string found{};
    std::string hint{};
};

// Whether the text was a whole prefix or range of addresses. Such a text is not a key, but it may be an entry
// of a prefix set.
[[nodiscard]] constexpr bool is_range(const Fault& fault) {
    return fault.kind == FaultKind::prefix || fault.kind == FaultKind::range;
}

// The range of addresses of such a fault, or of one of kind host_bits without these bits; `first` is the key
// that parse_entry stored.
[[nodiscard]] inline AddressRange range_of(const sieve_key& first, std::uint32_t fields, const Fault& fault) {
    const int word = sieve_address_word(fields);
    uint128 number = address_number(first.word[word], first.word[word + 1]);
    if (fault.kind == FaultKind::host_bits) number &= ~fault.span;
    return {number, number + fault.span};
}

// Says what was found, in quotation marks, and what was expected.
[[nodiscard]] std::string describe(const Fault& fault);

// Text from outside, made printable and put in quotation marks.
[[nodiscard]] std::string quote(std::string_view text, std::size_t longest = 64);

[[nodiscard]] constexpr bool is_blank(char c) {
    return c == ' ' || c == '\t';
}
[[nodiscard]] constexpr bool is_separator(char c) {
    return is_blank(c) || c == ',';
}
[[nodiscard]] constexpr bool is_comment(char c) {
    return c == '#' || c == ';';
}

// A strict dotted quad: four decimal numbers up to 255 without leading zeros. Returns a pointer to the byte
// after it, or null.
[[nodiscard]] inline const char* parse_ipv4(const char* p, const char* end, std::uint32_t& address) {
    std::uint32_t value = 0;
    for (int part = 0;;) {
        if (p == end) return nullptr;
        std::uint32_t octet = static_cast<unsigned char>(*p) - '0';
        if (octet > 9) return nullptr;
        ++p;
        if (p != end) {
            if (std::uint32_t digit = static_cast<unsigned char>(*p) - '0'; digit <= 9) {
                if (octet == 0) return nullptr;
                octet = octet * 10 + digit;
                if (++p != end && (digit = static_cast<unsigned char>(*p) - '0') <= 9) {
                    octet = octet * 10 + digit;
                    if (octet > 255) return nullptr;
                    ++p;
                }
            }
        }
        value = value << 8 | octet;
        if (++part == 4) break;
        if (p == end || *p != '.') return nullptr;
        ++p;
    }
    address = value;
    return p;
}

// An IPv6 address in any form of RFC 4291, including an embedded dotted quad. Returns a pointer to the byte
// after it, or null.
[[nodiscard]] const char* parse_ipv6(const char* p, const char* end, std::uint64_t& upper,
                                     std::uint64_t& lower);

// Parses one key from p on. On success p points behind the key's last field; further columns may follow. On
// failure `fault` says why. If the reason is that a single-address key is a whole prefix or range, `key`
// holds its first address.
[[nodiscard]] bool parse_entry(const char*& p, const char* end, std::uint32_t fields, sieve_key& key,
                               Fault& fault);

// Whether text that is no key, for this reason, may be a range of keys.
[[nodiscard]] constexpr bool may_be_key_range(const Fault& fault) {
    return fault.kind == FaultKind::not_single || (fault.kind == FaultKind::field && fault.found == "*");
}

// Parses an entry of several fields in which an address may be a prefix or a range and `*` stands for any
// value. With `mask_host_bits`, a prefix may have bits behind its length; fault.kind is then host_bits. On
// success p points behind the entry. On failure `fault` says why.
[[nodiscard]] bool parse_key_range(const char*& p, const char* end, std::uint32_t fields, KeyRange& range,
                                   Fault& fault, bool mask_host_bits = false);

// Whether the whole word is an address, a prefix, or a range of addresses.
[[nodiscard]] bool is_address_like(std::string_view word);

// The first column behind an entry that is an address, too, before a comment begins; null if there is none.
// Its author may have meant the end of a range, or one more entry: either would be lost without a word. A
// semicolon with an address directly behind it parts columns, and begins no comment.
[[nodiscard]] const char* find_second_address(const char* p, const char* end);
[[nodiscard]] Fault second_address(const char* p, const char* end);

// Parses the address of a line that is a JSON object, as Spamhaus and others publish them. A line of metadata
// has no address: the function then returns true and sets `has_key` to false. An address in a member of
// another name is a fault, unless it is the same once more: it may be the end of a range.
[[nodiscard]] bool parse_json(std::string_view line, std::uint32_t fields, sieve_key& key, bool& has_key,
                              Fault& fault);

} // namespace sieve::entry
