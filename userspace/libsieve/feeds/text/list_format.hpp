// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The formats in which lists of addresses are published, and how they are named.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/util/result.hpp"

namespace sieve {

enum class ListSyntax : std::uint8_t {
    automatic, // the first lines decide (detect_syntax())
    plain,     // one entry a line (feed.hpp)
    json,      // one document, such as a cloud provider's list of its networks
    hosts,     // an address and its names
    dshield,   // first address, last address, prefix length
    ipset,     // `ipset save`
    nft,       // `nft list set` and files of nft commands
    csv,       // columns with a header
    p2p,       // label:first-last, or eMule's first - last , level , label
    geo,       // countries and networks of addresses: MMDB, a registry's delegations, a table
};

// A format, and the parts of a list that are wanted: columns of csv, by name or by number from 1; members of
// json; the set of ipset and nft; countries and networks of geo. No parts: the reader chooses, and refuses
// what is ambiguous.
struct ListFormat {
    ListSyntax syntax = ListSyntax::automatic;
    std::vector<std::string> parts{};

    [[nodiscard]] friend bool operator==(const ListFormat&, const ListFormat&) = default;
};

struct ListSyntaxFacts {
    ListSyntax syntax;
    std::string_view name;
    std::string_view parts;   // what its parts are called; empty: it has none
    std::string_view summary; // a phrase, such as "DShield blocks"
};

// In the order in which help texts show them.
[[nodiscard]] std::span<const ListSyntaxFacts> list_syntaxes();
[[nodiscard]] const ListSyntaxFacts& facts_of(ListSyntax syntax);

// "auto, plain, json, ...".
[[nodiscard]] std::string names_of_syntaxes();

// Parses "NAME" or "NAME:PART+PART...", such as "csv:dst_ip+dst_port". invalid_request: the name is unknown,
// a part is empty, or the format has no such parts.
[[nodiscard]] Result<ListFormat> parse_list_format(std::string_view text);

// parse_list_format() reverses it.
[[nodiscard]] std::string format_list_format(const ListFormat& format);

} // namespace sieve
