// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What `ipset save` prints: `create SET TYPE OPTIONS` and `add SET ENTRY OPTIONS`. A set that was created
// with `netmask LENGTH` holds networks of that length, though its entries are written as single addresses.
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

// What a `create` line says about the entries of its set, behind the command.
struct Creation {
    std::string_view set{};
    std::string_view netmask{}; // empty: entries are what they say
    bool bitmask = false;
};

Creation read_creation(std::string_view line) {
    Creation creation{.set = take_word(line)};
    for (std::string_view option; !(option = take_word(line)).empty();) {
        if (option == "netmask") creation.netmask = take_word(line);
        if (option == "bitmask") creation.bitmask = true;
    }
    return creation;
}

// The netmask of the set, if the text creates it.
std::string netmask_of(std::string_view head, const std::string& set) {
    while (!head.empty()) {
        std::string_view line = take_line(head);
        if (take_word(line) != "create") continue;
        if (const Creation creation = read_creation(line); creation.set == set)
            return std::string(creation.netmask);
    }
    return {};
}

class Ipset : public LineTranslator {
  public:
    Ipset(std::string set, std::string netmask, bool chosen, std::uint32_t fields)
        : set_(std::move(set)), netmask_(std::move(netmask)), chosen_(chosen), fields_(fields) {}

    Translated translate(std::string_view line, std::string& text, entry::Fault& fault) const override {
        const std::string_view whole = line;
        const std::string_view command = take_word(line);
        if (command == "create") return check_creation(whole, line, fault);
        if (command == "COMMIT") return Translated::nothing;
        if (command == "flush") return check_flush(whole, take_word(line), fault);
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
        Translated what = Translated::entry;
        for (std::string_view rest = line, option; !(option = take_word(rest)).empty();) {
            if (option == "comment") break; // free text follows
            if (option == "timeout" && take_word(rest) != "0") what = Translated::timed;
            if (option != "nomatch") continue;
            fault = fault_of(
                fmt::format("found {}: an exception (nomatch), expected an entry", entry::quote(whole)));
            return Translated::bad;
        }
        return split(value, text, fault) ? what : Translated::bad;
    }

  private:
    Translated check_creation(std::string_view whole, std::string_view line, entry::Fault& fault) const {
        const Creation creation = read_creation(line);
        if (creation.set != set_ || (!creation.bitmask && creation.netmask == netmask_))
            return Translated::nothing;
        fault = fault_of(creation.bitmask
                             ? fmt::format("found {}: a bitmask, expected a set of addresses or networks",
                                           entry::quote(whole))
                             : fmt::format("found {} too far behind the beginning of the list, expected "
                                           "`create` lines before all entries",
                                           entry::quote(whole)));
        return Translated::bad;
    }

    // Without a name, all sets are emptied.
    Translated check_flush(std::string_view whole, std::string_view set, entry::Fault& fault) const {
        if (!set.empty() && set != set_) return Translated::nothing;
        fault = fault_of(fmt::format("found {} behind entries of the set {}, expected entries that stay",
                                     entry::quote(whole), entry::quote(set_)));
        return Translated::flush;
    }

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
                if (!netmask_.empty() && address_of(component)) components.back() += '/' + netmask_;
            }
            if (comma == value.size()) break;
            value.remove_prefix(comma + 1);
        }
        return order_components(components, fields_, text, fault);
    }

    std::string set_;
    std::string netmask_;
    bool chosen_;
    std::uint32_t fields_;
};

bool is_ipset(std::string_view line, std::uint32_t) {
    return starts_with_word(line, "create") || starts_with_word(line, "add");
}

Result<std::unique_ptr<const LineTranslator>> make_ipset(const ListFormat& format, std::uint32_t fields,
                                                         std::string_view head) {
    const bool chosen = !format.parts.empty();
    std::string set = chosen ? format.parts.front() : first_set(head);
    std::string netmask = netmask_of(head, set);
    return std::make_unique<Ipset>(std::move(set), std::move(netmask), chosen, fields);
}

} // namespace

const FormatReader ipset_format = {.is_first_line = is_ipset, .lines = make_ipset};

} // namespace sieve::formats
