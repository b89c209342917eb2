// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Flow keys as text: on a command line, in an answer, in a message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sieve/key.h>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// Parses a comma-separated list such as "src,dport,proto" into a field set. The names come in the order src,
// dst, sport, dport, proto, each at most once. Any other order is a usage error: feeds and keys are written
// in the order of the list, so reordering it silently would change their meaning.
[[nodiscard]] Result<std::uint32_t> parse_fields(std::string_view list);

// The comma-separated list of a field set. parse_fields() reverses it.
[[nodiscard]] std::string format_fields(std::uint32_t fields);

// Parses the key that `text` names: the set's fields in their order, separated by blanks, tabs or commas (a
// run counts as one).
//   addresses   IPv4: four decimal numbers without leading zeros
//               IPv6: every form of RFC 4291, without a zone; ::ffff:a.b.c.d is the IPv4 address a.b.c.d
//   ports       0 to 65535
//   protocol    0 to 255, or a name such as tcp, in either case
// In a set of one address, a prefix or range that holds a single address (a/32, a-a) is that address.
[[nodiscard]] Result<sieve_key> parse_key(std::string_view text, std::uint32_t fields);

// What an entry of a feed means: one key, or a range of addresses or keys.
struct MemberText {
    sieve_key key{};                   // if `range` is set, its first address
    std::optional<AddressRange> range; // a prefix or range of more than one address
    std::optional<KeyRange> key_range; // likewise among several fields, or * for any value of a field
};

// Like parse_key(), but it also takes whole prefixes and ranges of addresses, and among several fields *.
[[nodiscard]] Result<MemberText> parse_member(std::string_view text, std::uint32_t fields);

// Adds it to members with these fields.
void add_member(const MemberText& text, Members& members);

// The key's selected fields, separated by single blanks. parse_key() reverses it. IPv6 addresses are written
// as in RFC 5952, v4-mapped addresses as IPv4, and common protocols by name.
[[nodiscard]] std::string format_key(const sieve_key& key, std::uint32_t fields);

} // namespace sieve
