// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Rows of separated values, each with a range or a prefix and what is said of it. Without a heading:
//
//     192.0.2.0,192.0.2.255,DE                       DB-IP's countries
//     192.0.2.0,192.0.2.255,64500,"Example AG"       DB-IP's networks
//     192.0.2.0  192.0.2.255  64500  DE  EXAMPLE     iptoasn.com, with tabs
//
// With a heading, columns are known by their names: those of MaxMind's table of networks, and of IPinfo's.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "libsieve/feeds/formats/geo.hpp"
#include "libsieve/feeds/formats/table_row.hpp"
#include "libsieve/feeds/formats/words.hpp"
#include "libsieve/feeds/text/geo_code.hpp"
#include "libsieve/feeds/text/range_part.hpp"

namespace sieve::formats {

namespace {

constexpr std::size_t none = SIZE_MAX;

// Which column has what.
struct Columns {
    std::size_t prefix = none;
    std::size_t first = none;
    std::size_t last = none;
    std::size_t country = none;
    std::size_t network = none;
    std::size_t name = none;
};

constexpr std::string_view expected_rows =
    "expected rows of FIRST,LAST,COUNTRY or FIRST,LAST,NUMBER,NAME or FIRST,LAST,NUMBER,COUNTRY,NAME, or a "
    "heading that names network, country_code or asn";

// By a heading. Nothing: it has a column twice, so that nobody knows which one counts.
std::optional<Columns> named_columns(const Row& heading) {
    bool doubled = false;
    const auto column = [&](std::initializer_list<std::string_view> names) {
        for (const std::string_view name : names) {
            const auto is_called = [&](const auto& text) { return same_word(text, name); };
            const auto found = std::ranges::find_if(heading, is_called);
            if (found == heading.end()) continue;
            doubled = doubled || std::any_of(found + 1, heading.end(), is_called);
            return static_cast<std::size_t>(found - heading.begin());
        }
        return none;
    };
    const Columns columns{.prefix = column({"network", "prefix", "cidr"}),
                          .first = column({"start_ip", "ip_range_start", "range_start"}),
                          .last = column({"end_ip", "ip_range_end", "range_end"}),
                          .country = column({"country_code", "country_iso_code", "country"}),
                          .network = column({"asn", "autonomous_system_number", "as_number"}),
                          .name = column({"as_name", "autonomous_system_organization", "as_organization"})};
    return doubled ? std::nullopt : std::optional(columns);
}

// By the first row, if there is no heading.
Columns usual_columns(const Row& row) {
    Columns columns{.first = 0, .last = 1};
    switch (row.size()) {
    case 3:
        (country_code(row[2]) ? columns.country : columns.network) = 2;
        break;
    case 4:
        columns.network = 2;
        columns.name = 3;
        break;
    case 5:
        columns.network = 2;
        columns.country = 3;
        columns.name = 4;
        break;
    default:
        break;
    }
    return columns;
}

std::string_view cell(const Row& row, std::size_t column) {
    return column < row.size() ? std::string_view(row[column]) : std::string_view();
}

// What tables have where they know nothing.
bool is_unknown(std::string_view text) {
    constexpr std::array<std::string_view, 6> words{"", "-", "0", "AS0", "ZZ", "None"};
    return std::ranges::find(words, text) != words.end();
}

std::optional<AddressRange> range_in(const Row& row, const Columns& columns) {
    if (columns.prefix == none) {
        const auto first = address_of(cell(row, columns.first));
        const auto last = address_of(cell(row, columns.last));
        if (!first || !last || first->v4 != last->v4 || first->number > last->number) return std::nullopt;
        return AddressRange{first->number, last->number};
    }
    const std::string_view text = cell(row, columns.prefix);
    const std::size_t slash = std::min(text.find('/'), text.size());
    const auto first = address_of(text.substr(0, slash));
    if (!first) return std::nullopt;
    const unsigned bits = first->v4 ? 32 : 128;
    const auto length =
        slash == text.size() ? std::optional(bits) : small_number(text.substr(slash + 1), bits);
    if (!length) return std::nullopt;
    const uint128 span =
        *length == 0 ? (first->v4 ? uint128{0xffffffff} : ~uint128{0}) : (uint128{1} << (bits - *length)) - 1;
    if ((first->number & span) != 0) return std::nullopt;
    return AddressRange{first->number, first->number + span};
}

// Whether another cell makes more of the row's address, which has no length, than itself.
bool is_widened(const Row& row, const Row& heading, const Columns& columns) {
    for (std::size_t i = 0; i < heading.size() && columns.prefix != none; i++)
        if (i != columns.prefix && entry::widens(heading[i], cell(row, i), cell(row, columns.prefix)))
            return true;
    return false;
}

// Nothing: a cell is neither a code nor empty.
std::optional<GeoRecord> record_of(const Row& row, const Columns& columns) {
    GeoRecord record;
    if (const std::string_view text = cell(row, columns.country); !is_unknown(text)) {
        const auto code = country_code(text);
        if (!code) return std::nullopt;
        record.country = *code;
    }
    if (const std::string_view text = cell(row, columns.network); !is_unknown(text)) {
        const auto number = network_number(text);
        if (!number) return std::nullopt;
        record.network = *number;
        record.name = cell(row, columns.name);
    }
    return record;
}

} // namespace

Status read_geo_table(std::string_view document, GeoSink& sink) {
    std::optional<Columns> columns;
    Row names;
    char delimiter = ',';
    for (std::uint64_t at = 1; !document.empty(); at++) {
        const std::string_view line = without_blanks(take_line(document));
        if (line.empty() || entry::is_comment(line[0])) continue;
        if (!columns) delimiter = delimiter_of(line);
        const std::optional<Row> row = split_row(line, delimiter);
        if (!columns) {
            const bool heading = row && !entry::is_address_like(row->front());
            columns = !row ? Columns{} : heading ? named_columns(*row) : usual_columns(*row);
            if (!columns)
                return bad_input(
                    fmt::format("found the heading {}, which names a column twice, expected each once",
                                entry::quote(line)));
            const bool place = columns->prefix != none || (columns->first != none && columns->last != none);
            if (!place || (columns->country == none && columns->network == none))
                return bad_input(fmt::format("found {}, {}", entry::quote(line), expected_rows));
            if (heading) names = *row;
            if (heading) continue;
        }
        const bool whole = row && !is_widened(*row, names, *columns);
        const std::optional<AddressRange> range = whole ? range_in(*row, *columns) : std::nullopt;
        const std::optional<GeoRecord> record = row ? record_of(*row, *columns) : std::nullopt;
        if (!range || !record)
            sink.refuse(at, fmt::format("found {}, expected addresses and a country's two letters or a "
                                        "network's number, as in the rows before",
                                        entry::quote(line)));
        else if (sink.wants(*record))
            sink.take(*record, *range, at);
    }
    return {};
}

} // namespace sieve::formats
