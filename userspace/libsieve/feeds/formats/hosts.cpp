// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Hosts files: an address, then its names. A hosts file that blocks names points them at addresses that lead
// nowhere; such a line holds no address to filter by.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/formats/words.hpp"

namespace sieve::formats {

namespace {

// The addresses of this host, of its links, and of nobody.
bool leads_nowhere(const WordAddress& address) {
    if (address.v4) {
        const auto number = static_cast<std::uint32_t>(address.number);
        return number >> 24 == 0 || number >> 24 == 127 || number >> 28 >= 14; // 0/8, 127/8, 224/4, 240/4
    }
    const auto top = static_cast<std::uint32_t>(address.number >> 112);
    return address.number <= 1 || top >> 8 == 0xff || top >> 6 == 0xfe80 >> 6;
}

class Hosts : public LineTranslator {
  public:
    Translated translate(std::string_view line, std::string& text, entry::Fault& fault) const override {
        line = line.substr(0, line.find('#'));
        std::string_view rest = line;
        std::string_view word = take_word(rest);
        const std::string_view unzoned = word.substr(0, word.find('%'));
        const auto address = address_of(unzoned);
        if (!address || (unzoned.size() != word.size() && !leads_nowhere(*address))) {
            fault = {.kind = entry::FaultKind::field, .field = SIEVE_FIELD_SRC, .found = std::string(word)};
            return Translated::bad;
        }
        if (without_blanks(rest).empty()) {
            fault = fault_of(
                fmt::format("found {} alone, expected an address and its names", entry::quote(word)));
            return Translated::bad;
        }
        if (leads_nowhere(*address)) return Translated::omitted;
        text = unzoned;
        return Translated::entry;
    }

    std::string_view omits() const override { return "whose address leads nowhere, such as 0.0.0.0"; }
};

// The addresses at which hosts files point the names that they block, and those of this host, which is in
// every such file.
bool is_sink(const WordAddress& address) {
    if (!address.v4) return address.number <= 1;
    const auto number = static_cast<std::uint32_t>(address.number);
    return number == 0 || number >> 24 == 127;
}

bool is_name(std::string_view word) {
    return std::ranges::all_of(word, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c >= 0x80;
    });
}

// What a line may be: an address and names; of a sink, its first name has a letter.
struct HostLine {
    std::string address{};
    std::string name{};
    bool is_host = false;
    bool is_sink = false;
};

HostLine host_line_of(std::string_view line) {
    HostLine host;
    std::string_view rest = line.substr(0, line.find('#'));
    std::string text;
    entry::Fault fault;
    if (Hosts().translate(rest, text, fault) == Translated::bad) return host;
    host.address = take_word(rest);
    const auto address = address_of(host.address);
    host.name = take_word(rest);
    host.is_host = is_name(host.name);
    for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest))
        host.is_host = host.is_host && is_name(word);
    host.is_sink = host.is_host && address && is_sink(*address) &&
                   std::ranges::any_of(host.name, [](unsigned char c) { return std::isalpha(c) != 0; });
    return host;
}

// A plain list may have an address of this host, too, with words behind it. What no plain list has is one
// sink again and again, for one name after the other, in most of its lines; nor has it a zone (fe80::1%lo0).
Likeness hosts_likeness(std::span<const SampledLine> lines, std::uint32_t fields) {
    if (!entry::is_single_address(fields)) return Likeness::none;
    std::size_t sinks = 0;
    bool all_hosts = true;
    bool has_zone = false;
    bool has_many_names = false;
    std::map<std::string, std::string> names; // the first one of each sink
    for (const SampledLine& line : lines) {
        HostLine host = host_line_of(line.text);
        all_hosts = all_hosts && host.is_host;
        has_zone = has_zone || (host.is_host && host.address.find('%') != std::string::npos);
        if (!host.is_sink) continue;
        ++sinks;
        const auto [first, is_new] = names.try_emplace(std::move(host.address), host.name);
        has_many_names = has_many_names || (!is_new && first->second != host.name);
    }
    if (sinks == 0) return Likeness::none;
    if (has_many_names && 2 * sinks > lines.size()) return Likeness::certain;
    if (!all_hosts) return Likeness::none;
    return has_zone ? Likeness::certain : Likeness::doubtful;
}

} // namespace

const FormatReader hosts_format = {
    .likeness = hosts_likeness,
    .lines = [](const ListFormat&, std::uint32_t, std::string_view)
        -> Result<std::unique_ptr<const LineTranslator>> { return std::make_unique<Hosts>(); },
};

} // namespace sieve::formats
