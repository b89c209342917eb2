// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What `ipset save` prints: `create` lines, which say nothing about entries, and `add SET ENTRY OPTIONS`.
#include <utility>

#include <fmt/format.h>

#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/formats/words.hpp"

namespace sieve::formats {

namespace {

// The set of the first entry in the text; empty if there is none.
std::string first_set(std::string_view head) {
    while (!head.empty()) {
        std::string_view line = take_line(head);
        if (take_word(line) == "add") return std::string(take_word(line));
    }
    return {};
}

class Ipset : public LineTranslator {
  public:
    Ipset(std::string set, bool chosen, std::uint32_t fields)
        : set_(std::move(set)), chosen_(chosen), fields_(fields) {}

    Translated translate(std::string_view line, std::string& text, entry::Fault& fault) const override {
        const std::string_view whole = line;
        const std::string_view command = take_word(line);
        if (command == "create" || command == "flush" || command == "COMMIT") return Translated::nothing;
        const std::string_view set = take_word(line);
        const std::string_view value = take_word(line);
        if (command != "add" || value.empty()) {
            fault = fault_of(
                fmt::format("found {}, expected a line of `ipset save`: create or add", entry::quote(whole)));
            return Translated::bad;
        }
        if (set != set_) {
            if (chosen_) return Translated::nothing;
            fault =
                fault_of(fmt::format("found an entry of the set {} behind entries of {}, expected one set; "
                                     "choose one, as in ipset:{}",
                                     entry::quote(set), entry::quote(set_), entry::quote(set)));
            return Translated::bad;
        }
        for (std::string_view rest = line, option; !(option = take_word(rest)).empty();) {
            if (option == "comment") break; // free text follows
            if (option != "nomatch") continue;
            fault = fault_of(
                fmt::format("found {}: an exception (nomatch), expected an entry", entry::quote(whole)));
            return Translated::bad;
        }
        return split(value, text, fault) ? Translated::entry : Translated::bad;
    }

  private:
    // "192.0.2.1,tcp:80": components are separated by commas, and a port stands behind its protocol.
    bool split(std::string_view value, std::string& text, entry::Fault& fault) const {
        std::vector<std::string> components;
        for (;;) {
            const std::size_t comma = std::min(value.find(','), value.size());
            const std::string_view component = value.substr(0, comma);
            const std::size_t colon = component.find(':');
            const bool has_port = colon != std::string_view::npos && !is_address_like(component);
            if (has_port) {
                components.emplace_back(component.substr(0, colon));
                components.emplace_back(component.substr(colon + 1));
            } else {
                components.emplace_back(component);
            }
            if (comma == value.size()) break;
            value.remove_prefix(comma + 1);
        }
        return order_components(components, fields_, text, fault);
    }

    std::string set_;
    bool chosen_;
    std::uint32_t fields_;
};

} // namespace

std::unique_ptr<const LineTranslator> ipset_translator(const ListFormat& format, std::uint32_t fields,
                                                       std::string_view head) {
    const bool chosen = !format.parts.empty();
    return std::make_unique<Ipset>(chosen ? format.parts.front() : first_set(head), chosen, fields);
}

} // namespace sieve::formats
