// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/detect_format.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <string>
#include <vector>

#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/formats/words.hpp"
#include "libsieve/feeds/text/entry.hpp"

namespace sieve {

namespace {

using namespace formats;

constexpr std::size_t entries_looked_at = 100;

// Whether the line begins with an entry. `rest` is what stands behind it.
bool begins_with_entry(std::string_view line, std::uint32_t fields, std::string_view& rest) {
    const char* p = line.data();
    const char* const end = p + line.size();
    sieve_key key{};
    entry::Fault fault;
    bool begins = entry::parse_entry(p, end, fields, key, fault) || entry::is_range(fault) ||
                  fault.kind == entry::FaultKind::host_bits;
    if (!begins && !entry::is_single_address(fields) && entry::may_be_key_range(fault)) {
        p = line.data();
        KeyRange range{};
        constexpr bool mask_host_bits = true;
        begins = entry::parse_key_range(p, end, fields, range, fault, mask_host_bits);
    }
    if (begins) rest = {p, end};
    return begins;
}

bool begins_with(std::string_view text, std::string_view lower_case) {
    return text.size() >= lower_case.size() &&
           std::equal(lower_case.begin(), lower_case.end(), text.begin(), [](char wanted, char found) {
               return wanted == (found >= 'A' && found <= 'Z' ? found - 'A' + 'a' : found);
           });
}

} // namespace

DetectedSyntax detect_syntax(std::string_view head, std::uint32_t fields) {
    if (head.find('\0') != std::string_view::npos) return {};
    if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
    const auto find = [](const auto& is_it) {
        for (const ListSyntaxFacts& facts : list_syntaxes() | std::views::reverse)
            if (is_it(reader_of(facts.syntax))) return facts.syntax;
        return ListSyntax::plain;
    };
    bool first_is_plain = true;
    std::vector<SampledLine> lines;
    for (std::string_view rest = head; !rest.empty() && lines.size() < entries_looked_at;) {
        const std::string_view line = without_blanks(take_line(rest));
        if (line.empty() || entry::is_comment(line[0])) continue;
        std::string_view columns;
        const bool has_entry = begins_with_entry(line, fields, columns);
        if (lines.empty()) {
            const ListSyntax syntax = find([&](const FormatReader& reader) {
                return reader.is_first_line != nullptr && reader.is_first_line(line, fields);
            });
            if (syntax != ListSyntax::plain) return {syntax};
            first_is_plain = line[0] == '{' || has_entry;
        }
        const ListSyntax syntax = find([&](const FormatReader& reader) {
            return reader.is_line != nullptr && reader.is_line(line, fields);
        });
        if (syntax != ListSyntax::plain) return {syntax};
        const bool is_plain = has_entry && entry::find_second_address(
                                               columns.data(), columns.data() + columns.size()) == nullptr;
        lines.push_back({line, is_plain});
    }
    Likeness likeness = Likeness::none;
    const ListSyntax like = find([&](const FormatReader& reader) {
        if (reader.likeness != nullptr) likeness = reader.likeness(lines, fields);
        return likeness != Likeness::none;
    });
    if (like != ListSyntax::plain) return {like, likeness == Likeness::doubtful};
    if (first_is_plain) return {};
    return {
        find([&](const FormatReader& reader) { return reader.is_head != nullptr && reader.is_head(head); })};
}

bool looks_like_html(std::string_view begin) {
    if (begin.starts_with("\xef\xbb\xbf")) begin.remove_prefix(3);
    const std::size_t text = begin.find_first_not_of(" \t\r\n");
    if (text == std::string_view::npos) return false;
    begin.remove_prefix(text);
    constexpr std::string_view beginnings[] = {"<!doctype", "<html", "<head", "<body",
                                               "<script",   "<!--",  "<?xml"};
    return std::any_of(std::begin(beginnings), std::end(beginnings),
                       [&](std::string_view beginning) { return begins_with(begin, beginning); });
}

} // namespace sieve
