// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Labelled ranges, as file-sharing clients read them:
//
//     Some network:192.0.2.0-192.0.2.255                        PeerGuardian's P2P format
//     192.000.002.000 - 192.000.002.255 , 000 , Some network    eMule's ipfilter.dat
//
// eMule blocks ranges of an access level below 128. The numbers of an address may have leading zeros.
#include <array>

#include <fmt/format.h>

#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/formats/words.hpp"

namespace sieve::formats {

namespace {

constexpr unsigned first_allowed_level = 128;

// The address without leading zeros; empty if it is none.
std::string plain_address(std::string_view padded) {
    padded = without_blanks(padded);
    if (address_of(padded)) return std::string(padded);
    std::array<unsigned, 4> parts{};
    for (std::size_t i = 0; i < parts.size(); i++) {
        const std::size_t dot = i < 3 ? padded.find('.') : padded.size();
        if (dot == std::string_view::npos) return {};
        const auto part = small_number(padded.substr(0, dot), 255);
        if (!part) return {};
        parts[i] = *part;
        padded.remove_prefix(std::min(dot + 1, padded.size()));
    }
    return fmt::format("{}", fmt::join(parts, "."));
}

class P2p : public LineTranslator {
  public:
    Translated translate(std::string_view line, std::string& text, entry::Fault& fault) const override {
        std::string_view range = line;
        bool allowed = false;
        if (const std::size_t comma = line.find(',');
            comma != std::string_view::npos && is_range(line.substr(0, comma))) {
            range = line.substr(0, comma);
            const std::string_view rest = line.substr(comma + 1);
            const auto level = small_number(without_blanks(rest.substr(0, rest.find(','))), 255);
            if (!level) {
                fault = fault_of(fmt::format(
                    "found {}, expected an access level from 0 to 255 behind the range", entry::quote(line)));
                return Translated::bad;
            }
            allowed = *level >= first_allowed_level;
        } else {
            // A label may hold colons itself, and the addresses may be IPv6: the longest range counts. A
            // range of IPv6 addresses has no label, though what follows its first colon may be a range, too.
            std::size_t colon = is_range(line) ? std::string_view::npos : line.find(':');
            while (colon != std::string_view::npos && !is_range(line.substr(colon + 1)))
                colon = line.find(':', colon + 1);
            if (colon == std::string_view::npos) {
                fault = fault_of(
                    fmt::format("found {}, expected LABEL:FIRST-LAST or FIRST - LAST , LEVEL , LABEL",
                                entry::quote(line)));
                return Translated::bad;
            }
            range = line.substr(colon + 1);
        }
        if (allowed) return Translated::omitted;
        const std::size_t dash = range.find('-');
        text =
            fmt::format("{}-{}", plain_address(range.substr(0, dash)), plain_address(range.substr(dash + 1)));
        return Translated::entry;
    }

    std::string_view omits() const override {
        return "of an access level of 128 or more, which eMule lets through";
    }

  private:
    static bool is_range(std::string_view text) {
        const std::size_t dash = text.find('-');
        return dash != std::string_view::npos && !plain_address(text.substr(0, dash)).empty() &&
               !plain_address(text.substr(dash + 1)).empty();
    }
};

bool is_p2p(std::string_view line) {
    std::string text;
    entry::Fault fault;
    return P2p().translate(line, text, fault) != Translated::bad;
}

// Whether a line of eMule's is written as eMule writes it: blanks around dash and comma, and a level of three
// digits.
bool is_emules(std::string_view line) {
    std::string_view rest = line;
    const std::string_view first = take_word(rest);
    const std::string_view dash = take_word(rest);
    const std::string_view last = take_word(rest);
    const std::string_view comma = take_word(rest);
    std::string_view level = take_word(rest);
    level = level.substr(0, level.find(','));
    return address_of(first) && dash == "-" && address_of(last) && comma == "," && level.size() == 3;
}

// A plain range may be followed by columns, the first of which may be a number, too. A key of several fields
// may be an address and a range.
Likeness p2p_likeness(std::span<const SampledLine> lines, std::uint32_t fields) {
    if (!entry::is_single_address(fields)) return Likeness::none;
    bool all = !lines.empty();
    for (const SampledLine& line : lines) {
        const bool is_one = is_p2p(line.text);
        if (is_one && (!line.is_plain || is_emules(line.text))) return Likeness::certain;
        all = all && is_one;
    }
    return all ? Likeness::doubtful : Likeness::none;
}

} // namespace

const FormatReader p2p_format = {
    .likeness = p2p_likeness,
    .lines = [](const ListFormat&, std::uint32_t, std::string_view)
        -> Result<std::unique_ptr<const LineTranslator>> { return std::make_unique<P2p>(); },
};

} // namespace sieve::formats
