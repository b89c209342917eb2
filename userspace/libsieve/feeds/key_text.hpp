// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Flow keys as people write them: on a command line, in an answer, in a message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sieve/key.h>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

// The field set that a comma list such as "src,dport,proto" names. The names stand in the order src, dst,
// sport, dport, proto, each at most once; everything else is a usage error, since feeds and keys are written
// in that order and a list that is silently put in order would make them mean something else.
[[nodiscard]] Result<std::uint32_t> parse_fields(std::string_view list);

// The comma list of a field set; parse_fields gives the set back.
[[nodiscard]] std::string format_fields(std::uint32_t fields);

// The key that `text` names: the set's fields in their order, separated by blanks, tabs or commas (a run
// counts as one).
//   addresses   IPv4 as four decimal numbers without leading zeros; IPv6 in every form of RFC 4291, without a
//   zone.
//               ::ffff:a.b.c.d is the IPv4 address a.b.c.d
//   ports       0 to 65535
//   protocol    0 to 255, or a name such as tcp, in either case
// For a set of one address, prefixes and ranges that hold a single address (a/32, a-a) are that address.
[[nodiscard]] Result<sieve_key> parse_key(std::string_view text, std::uint32_t fields);

// What an entry of a feed stands for: one key, or a run of addresses.
struct MemberText {
    sieve_key key{};                   // the run's first address, if it is one
    std::optional<AddressRange> range; // a prefix or range of more than one address
};

// Like parse_key, but a set of one address also takes whole prefixes and ranges.
[[nodiscard]] Result<MemberText> parse_member(std::string_view text, std::uint32_t fields);

// The key's selected fields separated by single blanks; parse_key gives the key back. IPv6 as RFC 5952 has
// it, v4-mapped addresses as IPv4, protocols by name where they have a common one.
[[nodiscard]] std::string format_key(const sieve_key& key, std::uint32_t fields);

} // namespace sieve
