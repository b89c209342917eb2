// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tables of comma-separated values (RFC 4180), also separated by semicolons, tabs or bars. The heading is the
// first line, or the last comment before the first row, as abuse.ch writes it. A cell may name its scope, as
// CrowdSec writes it: "Ip:192.0.2.1". A row is one line. Where no column is named, an address beside its
// netmask, its length or the end of its range is refused.
#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libsieve/feeds/formats/table_row.hpp"
#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/formats/words.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/feeds/text/range_part.hpp"

namespace sieve::formats {

namespace {

constexpr std::size_t rows_sampled = 100;

std::string_view without_scope(std::string_view cell) {
    const std::size_t colon = cell.find(':');
    if (colon != std::string_view::npos &&
        (same_word(cell.substr(0, colon), "ip") || same_word(cell.substr(0, colon), "range")))
        cell.remove_prefix(colon + 1);
    return cell;
}

// An address, prefix or range; or an address with a port.
bool holds_address(std::string_view cell) {
    cell = without_scope(cell);
    if (is_address_like(cell)) return true;
    const std::size_t colon = cell.rfind(':');
    if (colon == std::string_view::npos || colon + 1 == cell.size() ||
        cell.find_first_not_of("0123456789", colon + 1) != std::string_view::npos)
        return false;
    std::string_view host = cell.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return address_of(host).has_value();
}

// Whether the cell was meant as an address, though it may be none: two numbers around a dot, or two colons
// among hexadecimal digits.
bool begins_like_address(std::string_view cell) {
    cell = without_scope(cell);
    if (cell.starts_with('[')) cell.remove_prefix(1);
    const std::size_t number = cell.find_first_not_of("0123456789");
    if (number > 0 && number < cell.size() && cell.substr(number).find_first_of("0123456789") == 1 &&
        cell[number] == '.')
        return true;
    const std::string_view groups = cell.substr(0, cell.find_first_not_of("0123456789abcdefABCDEF:"));
    return std::ranges::count(groups, ':') >= 2;
}

// The beginning of a table.
struct Head {
    char delimiter = ',';
    std::string heading; // the whole line, if the heading is a row of its own
    Row names;           // of the columns; empty if there is no heading
    std::vector<Row> rows;
    std::size_t columns = 0;
};

Head read_head(std::string_view text) {
    Head head;
    std::string_view comment;
    bool first = true;
    while (!text.empty() && head.rows.size() < rows_sampled) {
        const std::string_view line = without_blanks(take_line(text));
        if (line.empty()) continue;
        if (line.starts_with('#')) {
            if (first)
                comment = without_blanks(line.substr(std::min(line.find_first_not_of('#'), line.size())));
            continue;
        }
        if (first) head.delimiter = delimiter_of(line);
        std::optional<Row> row = split_row(line, head.delimiter);
        if (!row) continue;
        head.columns = std::max(head.columns, row->size());
        const bool is_heading = first && std::none_of(row->begin(), row->end(), [](const auto& cell) {
                                    return holds_address(cell) || begins_like_address(cell);
                                });
        first = false;
        if (is_heading) {
            head.heading = line;
            head.names = std::move(*row);
        } else {
            head.rows.push_back(std::move(*row));
        }
    }
    if (head.names.empty() && !comment.empty()) {
        std::optional<Row> names = split_row(comment, head.delimiter);
        if (names && names->size() == head.columns) head.names = std::move(*names);
    }
    return head;
}

std::string name_of(const Head& head, std::size_t column) {
    return column < head.names.size()
               ? fmt::format("column {} ({})", column + 1, entry::quote(head.names[column]))
               : fmt::format("column {}", column + 1);
}

Result<std::size_t> column_of(const Head& head, const std::string& part) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error == std::errc() && end == part.data() + part.size()) {
        if (number >= 1 && number <= head.columns) return number - 1;
        return bad_input(fmt::format("has no column {}: it has {}", number, head.columns));
    }
    const auto is_called = [&](const std::string& name) { return same_word(name, part); };
    const auto found = std::ranges::find_if(head.names, is_called);
    if (found != head.names.end()) {
        const auto columns = std::count_if(found, head.names.end(), is_called);
        if (columns == 1) return static_cast<std::size_t>(found - head.names.begin());
        return bad_input(fmt::format("has {} columns that are called {}; give the column's number", columns,
                                     entry::quote(part)));
    }
    if (head.names.empty())
        return bad_input(fmt::format("has no heading, so no column is called {}; give the column's number",
                                     entry::quote(part)));
    return bad_input(fmt::format("has no column {}; its columns are {}", entry::quote(part),
                                 entry::quote(fmt::format("{}", fmt::join(head.names, ", ")), 200)));
}

// The columns that hold an address in every row.
std::vector<std::size_t> address_columns(const Head& head) {
    std::vector<std::size_t> found;
    for (std::size_t column = 0; column < head.columns && !head.rows.empty(); column++)
        if (std::all_of(head.rows.begin(), head.rows.end(),
                        [&](const Row& row) { return column < row.size() && holds_address(row[column]); }))
            found.push_back(column);
    return found;
}

// The columns that may make ranges of the addresses in another one.
std::vector<std::size_t> range_parts(const Head& head) {
    std::vector<std::size_t> found;
    for (std::size_t column = 0; column < head.names.size(); column++)
        if (entry::names_range_part(head.names[column])) found.push_back(column);
    return found;
}

Result<std::size_t> only_address_column(const Head& head) {
    const std::vector<std::size_t> found = address_columns(head);
    if (found.size() == 1) return found.front();
    if (found.empty())
        return bad_input(
            fmt::format("no column holds an address in each of the first {} rows; choose one, as "
                        "in csv:{}",
                        head.rows.size(), head.names.empty() ? "2" : "NAME"));
    const std::vector<std::size_t> parts = range_parts(head);
    if (std::ranges::find_first_of(found, parts) != found.end())
        return bad_input(
            fmt::format("{} and {} both hold addresses, expected prefixes and ranges in one column",
                        name_of(head, found[0]), name_of(head, found[1])));
    return bad_input(fmt::format("{} and {} both hold addresses; choose one, as in csv:{}",
                                 name_of(head, found[0]), name_of(head, found[1]), found[0] + 1));
}

class Csv : public LineTranslator {
  public:
    // `parts`: columns that must not make a range of a row's address.
    Csv(Head head, std::vector<std::size_t> columns, std::vector<std::size_t> parts)
        : head_(std::move(head)), columns_(std::move(columns)), parts_(std::move(parts)) {}

    Translated translate(std::string_view line, std::string& text, entry::Fault& fault) const override {
        line = without_blanks(line);
        if (line == head_.heading) return Translated::nothing;
        const std::optional<Row> row = split_row(line, head_.delimiter);
        if (!row) {
            fault = fault_of(
                fmt::format("found {}, whose quotation does not end on its line", entry::quote(line)));
            return Translated::bad;
        }
        text.clear();
        for (const std::size_t column : columns_) {
            if (column >= row->size()) {
                fault = fault_of(fmt::format("found a row of {} columns, expected {}", row->size(),
                                             name_of(head_, column)));
                return Translated::bad;
            }
            const std::string_view cell = without_scope(row->at(column));
            if (cell.empty()) {
                fault = fault_of(fmt::format("found nothing in {}", name_of(head_, column)));
                return Translated::bad;
            }
            for (const std::size_t part : parts_) {
                if (part == column || part >= row->size()) continue;
                if (!entry::widens(head_.names[part], row->at(part), cell)) continue;
                fault = fault_of(fmt::format("found {} in {} beside {}, expected a prefix or a range in one "
                                             "column",
                                             entry::quote(row->at(part)), name_of(head_, part),
                                             entry::quote(cell)));
                return Translated::bad;
            }
            if (!text.empty()) text += ' ';
            text += cell;
        }
        return Translated::entry;
    }

    std::string remark() const override {
        std::vector<std::string> names;
        for (const std::size_t column : columns_) names.push_back(name_of(head_, column));
        return fmt::format("{}", fmt::join(names, ", "));
    }

  private:
    Head head_;
    std::vector<std::size_t> columns_;
    std::vector<std::size_t> parts_;
};

// Whether rows of several columns follow a heading, and a column holds an address in each of them.
bool is_table(std::string_view head_text) {
    const Head head = read_head(head_text);
    return head.columns > 1 && !address_columns(head).empty();
}

Result<std::unique_ptr<const LineTranslator>> make_csv(const ListFormat& format, std::uint32_t fields,
                                                       std::string_view head_text) {
    Head head = read_head(head_text);
    std::vector<std::size_t> columns;
    std::vector<std::size_t> parts; // of no account where columns are named
    for (const std::string& part : format.parts) {
        SIEVE_ASSIGN(const std::size_t column, column_of(head, part));
        columns.push_back(column);
    }
    if (columns.empty()) {
        if (!entry::is_single_address(fields))
            return bad_input(fmt::format("the columns for {} are to be named, as in csv:dst_ip+dst_port",
                                         format_fields(fields)));
        SIEVE_ASSIGN(const std::size_t column, only_address_column(head));
        columns.push_back(column);
        parts = range_parts(head);
    }
    return std::make_unique<Csv>(std::move(head), std::move(columns), std::move(parts));
}

} // namespace

const FormatReader csv_format = {.is_head = is_table, .lines = make_csv};

} // namespace sieve::formats
