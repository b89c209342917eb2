// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Hosts files: an address, then its names. A hosts file that blocks names points them at addresses that lead
// nowhere; such a line holds no address to filter by.
#include <cctype>

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
        if (leads_nowhere(*address)) return Translated::nothing;
        text = unzoned;
        return Translated::entry;
    }
};

// An address that leads nowhere, and a name.
bool is_hosts(std::string_view line) {
    std::string text;
    entry::Fault fault;
    if (Hosts().translate(line, text, fault) != Translated::nothing) return false;
    (void)take_word(line);
    const std::string_view name = take_word(line);
    return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0;
}

} // namespace

const FormatReader hosts_format = {
    .is_line = is_hosts,
    .lines = [](const ListFormat&, std::uint32_t, std::string_view)
        -> Result<std::unique_ptr<const LineTranslator>> { return std::make_unique<Hosts>(); },
};

} // namespace sieve::formats
