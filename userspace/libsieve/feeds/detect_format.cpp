// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/detect_format.hpp"

#include <atomic>
#include <cctype>
#include <string>

#include "libsieve/feeds/formats/geo.hpp"
#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/formats/words.hpp"
#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/util/first_use.hpp"

namespace sieve {

namespace {

using namespace formats;

constexpr std::size_t entries_looked_at = 100;

bool starts_with_word(std::string_view line, std::string_view word) {
    return take_word(line) == word && !line.empty();
}

// A heading of DShield, or its three columns.
bool is_dshield(std::string_view line) {
    static std::atomic<const std::unique_ptr<const LineTranslator>*> known = nullptr;
    const auto& dshield = first_use(known, dshield_translator);
    std::string text;
    entry::Fault fault;
    return dshield->translate(line, text, fault) == Translated::entry;
}

// Ranges with labels. A plain range may be followed by columns, but not by an access level of three digits.
bool is_p2p(std::string_view line) {
    static std::atomic<const std::unique_ptr<const LineTranslator>*> known = nullptr;
    const auto& p2p = first_use(known, p2p_translator);
    std::string text;
    entry::Fault fault;
    return p2p->translate(line, text, fault) != Translated::bad;
}

// An address that leads nowhere, and a name.
bool is_hosts(std::string_view line) {
    static std::atomic<const std::unique_ptr<const LineTranslator>*> known = nullptr;
    const auto& hosts = first_use(known, hosts_translator);
    std::string text;
    entry::Fault fault;
    if (hosts->translate(line, text, fault) != Translated::nothing) return false;
    (void)take_word(line);
    const std::string_view name = take_word(line);
    return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0;
}

bool is_plain(std::string_view line, std::uint32_t fields) {
    const char* p = line.data();
    sieve_key key{};
    entry::Fault fault;
    return entry::parse_entry(p, line.data() + line.size(), fields, key, fault) || entry::is_range(fault) ||
           fault.kind == entry::FaultKind::host_bits;
}

// The beginning of a JSON document; a line that is one JSON object with an address belongs to a plain list.
bool is_json(std::string_view line, std::uint32_t fields) {
    if (line[0] == '{') {
        sieve_key key{};
        bool has_key = false;
        entry::Fault fault;
        return !entry::parse_json(line, fields, key, has_key, fault) && !entry::is_range(fault) &&
               fault.kind != entry::FaultKind::host_bits;
    }
    // "[2001:db8::1]:443" begins like an array, too.
    return line[0] == '[' && (line.size() == 1 || line.find(']') == std::string_view::npos ||
                              !address_of(line.substr(1, line.find(']') - 1)));
}

// The commands of nft that name sets.
bool is_nft(std::string_view line) {
    for (const std::string_view word : {"table", "set", "define", "flush"})
        if (starts_with_word(line, word)) return true;
    if (!starts_with_word(line, "add") && !starts_with_word(line, "create"))
        return line.starts_with("elements");
    (void)take_word(line);
    const std::string_view what = take_word(line);
    return what == "element" || what == "table" || what == "set";
}

bool is_ipset(std::string_view line) {
    return starts_with_word(line, "create") || starts_with_word(line, "add");
}

bool begins_with(std::string_view text, std::string_view lower_case) {
    return text.size() >= lower_case.size() &&
           std::equal(lower_case.begin(), lower_case.end(), text.begin(), [](char wanted, char found) {
               return wanted == (found >= 'A' && found <= 'Z' ? found - 'A' + 'a' : found);
           });
}

} // namespace

ListSyntax detect_syntax(std::string_view head, std::uint32_t fields) {
    if (head.find('\0') != std::string_view::npos) return ListSyntax::plain;
    if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
    bool first = true;
    bool first_is_plain = true;
    std::size_t entries = 0;
    for (std::string_view rest = head; !rest.empty() && entries < entries_looked_at;) {
        const std::string_view line = without_blanks(take_line(rest));
        if (line.empty() || entry::is_comment(line[0])) continue;
        ++entries;
        if (first) {
            if (is_json(line, fields)) return ListSyntax::json;
            if (is_nft(line)) return ListSyntax::nft;
            if (is_ipset(line)) return ListSyntax::ipset;
            if (is_delegation(line)) return ListSyntax::geo;
            first_is_plain = line[0] == '{' || is_plain(line, fields);
            first = false;
        }
        if (is_dshield(line)) return ListSyntax::dshield;
        if (is_p2p(line)) return ListSyntax::p2p;
        if (is_hosts(line)) return ListSyntax::hosts;
    }
    return !first_is_plain && is_table(head) ? ListSyntax::csv : ListSyntax::plain;
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
