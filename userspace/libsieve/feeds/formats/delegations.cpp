// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a regional registry (AFRINIC, APNIC, ARIN, LACNIC, RIPE NCC) has delegated to holders in which
// country:
//
//     2|ripencc|1767312000|148731|19830705|20260102|+0100     the first line: how many rows, and the date
//     ripencc|*|ipv4|*|86777|summary                          how many rows of this type
//     ripencc|DE|ipv4|193.0.0.0|768|19930901|allocated        so many addresses; any number of them
//     ripencc|DE|ipv6|2001:db8::|32|20010903|allocated|...    a prefix of that length
//
// Numbers of networks have rows, too, which say nothing of addresses. Addresses that are available or
// reserved are rows that count. Files may follow one another.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <system_error>

#include <fmt/core.h>

#include "libsieve/feeds/formats/geo.hpp"
#include "libsieve/feeds/formats/words.hpp"
#include "libsieve/feeds/text/geo_code.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::formats {

namespace {

// Version or registry, country, type, start, number, date and status; an extended row has more.
enum Column : std::size_t { registry, country, type, start, number, date, status, columns };
using Columns = std::array<std::string_view, columns>;

// What the line lacks is empty.
Columns split(std::string_view line) {
    Columns row;
    for (std::string_view& cell : row) {
        const std::size_t bar = std::min(line.find('|'), line.size());
        cell = line.substr(0, bar);
        line.remove_prefix(std::min(bar + 1, line.size()));
    }
    return row;
}

bool is_first(const Columns& row) {
    return !row[registry].empty() && row[registry].find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_type(std::string_view word) {
    return word == "ipv4" || word == "ipv6" || word == "asn";
}

bool is_summary(const Columns& row) {
    return row[date] == "summary";
}

std::optional<std::uint64_t> count_of(std::string_view cell) {
    std::uint64_t count = 0;
    const char* const end = cell.data() + cell.size();
    const auto parsed = std::from_chars(cell.data(), end, count);
    if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
    return count;
}

std::optional<AddressRange> range_of_row(const Columns& row) {
    const std::optional<WordAddress> first = address_of(row[start]);
    const std::optional<std::uint64_t> count = count_of(row[number]);
    if (!first || first->v4 != (row[type] == "ipv4") || !count || *count == 0) return std::nullopt;
    if (first->v4) {
        if (*count - 1 > static_cast<std::uint64_t>(all_ipv4.last - first->number)) return std::nullopt;
        return AddressRange{first->number, first->number + (*count - 1)};
    }
    if (*count > 128) return std::nullopt;
    const uint128 span = *count == 128 ? 0 : ~uint128{0} >> *count;
    if ((first->number & span) != 0) return std::nullopt;
    return AddressRange{first->number, first->number + span};
}

// How many rows a registry's file has, and how many its first lines say that it has. The statistics exchange
// format counts each row but these lines.
class RowCount {
  public:
    void begin(const Columns& first) {
        *this = {};
        registry_ = first[country];
        told_all_ = count_of(first[start]);
    }
    void add(const Columns& row) {
        if (!is_summary(row)) {
            rows_[row[type]]++;
            all_++;
        } else if (const auto count = count_of(row[number])) {
            told_[row[type]] = *count;
        }
    }
    // Whether the rows since begin() are all.
    [[nodiscard]] Status check() const {
        for (const auto& [type, count] : told_) {
            const auto found = rows_.find(type);
            SIEVE_TRY(compare(found == rows_.end() ? 0 : found->second, count,
                              fmt::format("{} rows", printable(type, 16)), "summary"));
        }
        if (told_.empty() && told_all_) SIEVE_TRY(compare(all_, *told_all_, "rows", "first line"));
        return {};
    }

  private:
    [[nodiscard]] Status compare(std::uint64_t found, std::uint64_t told, const std::string& which,
                                 std::string_view teller) const {
        if (found == told) return {};
        return bad_input(fmt::format("damaged or cut short: {} of {}: found {}, expected {}, as the {} says",
                                     which, printable(registry_, 16), found, told, teller));
    }

    std::string_view registry_;
    std::map<std::string_view, std::uint64_t> rows_; // by type
    std::map<std::string_view, std::uint64_t> told_; // by summaries
    std::uint64_t all_ = 0;
    std::optional<std::uint64_t> told_all_; // by the first line
};

} // namespace

bool is_delegation(std::string_view line) {
    const Columns row = split(line);
    constexpr std::array<std::string_view, 5> registries{"afrinic", "apnic", "arin", "lacnic", "ripencc"};
    const std::string_view name = is_first(row) ? row[country] : row[registry];
    return std::ranges::find(registries, name) != registries.end() && (is_first(row) || is_type(row[type]));
}

Status read_delegations(std::string_view document, GeoSink& sink) {
    RowCount rows;
    for (std::uint64_t at = 1; !document.empty(); at++) {
        const std::string_view line = without_blanks(take_line(document));
        if (line.empty() || entry::is_comment(line[0])) continue;
        const Columns row = split(line);
        if (is_first(row)) {
            SIEVE_TRY(rows.check());
            rows.begin(row);
            sink.say(fmt::format("delegations of {} of {}", printable(row[country], 16),
                                 printable(row[date], 16)));
            continue;
        }
        rows.add(row);
        if (is_summary(row)) continue;
        const bool whole = is_type(row[type]) && !row[status].empty();
        const bool unused = row[status] == "available" || row[status] == "reserved";
        if (whole && (unused || row[type] == "asn")) continue;
        const std::optional<AddressRange> range = whole ? range_of_row(row) : std::nullopt;
        if (!range) {
            sink.refuse(at, fmt::format("found {}, expected REGISTRY|COUNTRY|ipv4|FIRST|COUNT|DATE|STATUS or "
                                        "REGISTRY|COUNTRY|ipv6|PREFIX|LENGTH|DATE|STATUS",
                                        entry::quote(line)));
            continue;
        }
        const GeoRecord record{.country = country_code(row[country]).value_or("")};
        if (sink.wants(record)) sink.take(record, *range, at);
    }
    return rows.check();
}

} // namespace sieve::formats
