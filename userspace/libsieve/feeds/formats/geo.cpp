// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/formats/geo.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libsieve/feeds/formats/words.hpp"
#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/feeds/text/geo_code.hpp"
#include "libsieve/util/text/counted.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::formats {

namespace {

constexpr std::size_t longest_name = 80;

std::string text_of(uint128 address) {
    return format_address(static_cast<std::uint64_t>(address >> 64), static_cast<std::uint64_t>(address));
}

// "DE, AS3320 (Deutsche Telekom AG)"
std::string label_of(const GeoRecord& record) {
    std::string text = record.country;
    if (record.network == 0) return text;
    text += (text.empty() ? "" : ", ") + network_code(record.network);
    if (!record.name.empty()) text += fmt::format(" ({})", printable(record.name, longest_name));
    return text;
}

// The first line that is no comment.
std::string_view first_line(std::string_view document) {
    while (!document.empty()) {
        const std::string_view line = without_blanks(take_line(document));
        if (!line.empty() && !entry::is_comment(line[0])) return line;
    }
    return {};
}

// How much alike two codes of countries are: the same letters in another order, or one letter in its place.
int likeness(const std::string& a, const std::string& b) {
    if (a[0] == b[1] && a[1] == b[0]) return 3;
    return (a[0] == b[0] ? 2 : 0) + (a[1] == b[1] ? 1 : 0);
}

} // namespace

void GeoContents::add(GeoContents other) {
    countries.merge(other.countries);
    networks = networks || other.networks;
    found.merge(other.found);
}

GeoSink::GeoSink(const ListFormat& format, std::span<const uint128> addresses, const EntrySink& entries,
                 GeoContents& contents)
    : codes_(format.parts.begin(), format.parts.end()), addresses_(addresses), entries_(entries),
      contents_(contents) {}

bool GeoSink::wants(const GeoRecord& record) {
    bool wanted = !addresses_.empty() && (!record.country.empty() || record.network != 0);
    const auto look = [&](const std::string& code) {
        if (!codes_.contains(code)) return;
        contents_.found.insert(code);
        wanted = true;
    };
    if (!record.country.empty()) {
        contents_.countries.insert(record.country);
        look(record.country);
    }
    if (record.network != 0) {
        contents_.networks = true;
        look(network_code(record.network));
    }
    return wanted;
}

bool GeoSink::concerns(const AddressRange& range) const {
    return addresses_.empty() || std::ranges::any_of(addresses_, [&](uint128 address) {
               return address >= range.first && address <= range.last;
           });
}

void GeoSink::take(const GeoRecord& record, const AddressRange& range, std::uint64_t line) const {
    if (!concerns(range)) return;
    const Place place = addresses_.empty() ? Place{.line = line} : Place{.path = label_of(record)};
    const std::string first = text_of(range.first);
    entries_(place, Translated::entry,
             range.first == range.last ? first : fmt::format("{}-{}", first, text_of(range.last)), {});
}

void GeoSink::refuse(std::uint64_t line, std::string why) const {
    entries_({.line = line}, Translated::bad, {}, fault_of(std::move(why)));
}

Status translate_geo(const ListFormat& format, std::span<const uint128> addresses, std::string_view document,
                     const EntrySink& entries, GeoContents& contents) {
    if (format.parts.empty() && addresses.empty())
        return bad_input("has the addresses of many countries or networks, expected which of them, as in "
                         "geo:DE or geo:DE+AS3320");
    GeoSink sink(format, addresses, entries, contents);
    if (is_mmdb(document)) return read_mmdb(document, sink);
    if (document.find('\0') != std::string_view::npos)
        return bad_input("found neither text nor a whole MMDB file, expected data of countries or networks");
    return is_delegation(first_line(document)) ? read_delegations(document, sink)
                                               : read_geo_table(document, sink);
}

std::string why_without(const std::string& code, const GeoContents& contents) {
    const bool country = country_code(code).has_value();
    if (contents.countries.empty() && !contents.networks) return "it names neither countries nor networks";
    if (country && contents.countries.empty()) return "it names networks, and no countries";
    if (!country && !contents.networks) return "it names countries, and no networks";
    if (!country) return "it has other networks only";
    if (code == "UK" && contents.countries.contains("GB")) return "the United Kingdom is GB";
    std::vector<std::string> like(contents.countries.begin(), contents.countries.end());
    std::erase_if(like, [&](const std::string& other) { return likeness(code, other) == 0; });
    std::ranges::sort(like, [&](const std::string& a, const std::string& b) {
        return std::pair(-likeness(code, a), a) < std::pair(-likeness(code, b), b);
    });
    constexpr std::size_t most = 5;
    if (like.size() > most) like.resize(most);
    return like.empty() ? fmt::format("it has {}",
                                      counted(contents.countries.size(), "other country", "other countries"))
                        : fmt::format("the nearest of its {}: {}",
                                      counted(contents.countries.size(), "country", "countries"),
                                      fmt::join(like, ", "));
}

// A list's reader keeps the contents, for messages (translate_geo()).
const FormatReader geo_format = {
    .is_first_line = [](std::string_view line, std::uint32_t) { return is_delegation(line); },
    .document = [](const ListFormat& format, std::uint32_t, std::string_view document,
                   const EntrySink& sink) -> Status {
        GeoContents contents;
        return translate_geo(format, {}, document, sink, contents);
    },
};

} // namespace sieve::formats
