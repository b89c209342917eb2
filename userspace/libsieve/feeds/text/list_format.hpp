// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The formats in which lists of addresses are published, and how they are named.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/util/results/result.hpp"

namespace sieve {

// Every format but the plain one: FORMAT(NAME, what its parts are called, whether one list may be read for
// several of them, a phrase for what it is). A format without parts calls them "". formats/NAME.cpp
// recognises and reads it. Help texts show the formats in this order. A list is tried for the last one first:
// a format stands in front of those whose lists it would also take for its own.
#define SIEVE_LIST_FORMATS(FORMAT)                                                                           \
    FORMAT(json, "MEMBER", true, "a JSON document")                                                          \
    FORMAT(hosts, "", false, "a hosts file")                                                                 \
    FORMAT(ipset, "SET", false, "`ipset save`")                                                              \
    FORMAT(nft, "SET", false, "an nftables set")                                                             \
    FORMAT(csv, "COLUMN", true, "columns with a header")                                                     \
    FORMAT(p2p, "", false, "labelled ranges (P2P, eMule)")                                                   \
    FORMAT(dshield, "", false, "DShield blocks")                                                             \
    FORMAT(geo, "CODE", true, "countries and networks of addresses")

enum class ListSyntax : std::uint8_t {
    automatic, // the first lines decide (detect_syntax())
    plain,     // one entry a line (feed.hpp)
#define SIEVE_ENUMERATOR(name, parts, several, summary) name,
    SIEVE_LIST_FORMATS(SIEVE_ENUMERATOR)
#undef SIEVE_ENUMERATOR
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
    std::string_view parts; // what its parts are called; empty: it has none
    bool several;           // of them in one format
    std::string_view summary;
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
