// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// DShield's block list: the first address, the last address and the prefix length, then columns that do not
// matter.
#include <fmt/format.h>

#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/formats/words.hpp"

namespace sieve::formats {

namespace {

class DShield : public LineTranslator {
  public:
    Translated translate(std::string_view line, std::string& text, entry::Fault& fault) const override {
        const std::string_view whole = line;
        const std::string_view first = take_word(line);
        if (first == "Start") return Translated::nothing; // the heading
        const std::string_view last = take_word(line);
        const auto from = address_of(first);
        const auto to = address_of(last);
        const auto length = small_number(take_word(line), 32);
        if (!from || !to || !length || !from->v4 || !to->v4) {
            fault = fault_of(fmt::format(
                "found {}, expected a first address, a last address and a prefix length from 0 to 32",
                entry::quote(whole)));
            return Translated::bad;
        }
        const uint128 span = (uint128{1} << (32 - *length)) - 1;
        if (to->number - from->number != span || (from->number & span) != 0) {
            fault = fault_of(fmt::format("found {}: {} to {} are not a network of length {}",
                                         entry::quote(whole), first, last, *length));
            return Translated::bad;
        }
        text = fmt::format("{}-{}", first, last);
        return Translated::entry;
    }
};

// The three columns. A key of several fields may be two addresses and a port.
bool is_dshield(std::string_view line, std::uint32_t fields) {
    std::string text;
    entry::Fault fault;
    return entry::is_single_address(fields) && DShield().translate(line, text, fault) == Translated::entry;
}

} // namespace

const FormatReader dshield_format = {
    .is_line = is_dshield,
    .lines = [](const ListFormat&, std::uint32_t, std::string_view)
        -> Result<std::unique_ptr<const LineTranslator>> { return std::make_unique<DShield>(); },
};

} // namespace sieve::formats
