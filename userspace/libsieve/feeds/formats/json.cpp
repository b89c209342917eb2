// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// JSON documents: the lists of networks that cloud providers publish, arrays of addresses, and `nft -j`. The
// names of members tell which strings are entries. An address in a member of another name is refused, not
// ignored: its author may have meant it.
#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/formats/words.hpp"

namespace sieve::formats {

namespace {

using json = nlohmann::ordered_json; // entries keep the document's order

constexpr std::size_t deepest = 64;

// What providers call their entries. The empty name is that of an array that is the whole document.
constexpr std::array<std::string_view, 23> known_members{
    "",
    "ip",
    "ipv4",
    "ipv6",
    "cidr",
    "cidrs",
    "ip_prefix",
    "ipv6_prefix",
    "ipv4Prefix",
    "ipv6Prefix",
    "ipv4_cidrs",
    "ipv6_cidrs",
    "ips",
    "addresses",
    "ipv4_addresses",
    "ipv6_addresses",
    "addressPrefixes",
    "networks",
    "prefixes",
    "ip_range",
    "address",
    "elem",
    "val",
};

class Document {
  public:
    Document(const ListFormat& format, std::uint32_t fields, const EntrySink& sink)
        : format_(format), fields_(fields), sink_(sink) {}

    Status walk(const json& node, const std::string& name) {
        if (node.is_string()) {
            take(node.get_ref<const std::string&>(), name);
            return {};
        }
        if (!node.is_structured()) return {};
        if (path_.size() == deepest)
            return bad_input(fmt::format("{}: nested deeper than {} levels", place().path, deepest));
        if (node.is_object() && is_wanted(name) && shape(node)) return {};
        std::size_t index = 0;
        for (const auto& item : node.items()) {
            path_.push_back(node.is_object() ? item.key() : std::to_string(index++));
            SIEVE_TRY(walk(item.value(), node.is_object() ? item.key() : name));
            path_.pop_back();
        }
        return {};
    }

  private:
    [[nodiscard]] Place place() const {
        return {.line = 0, .path = fmt::format("/{}", fmt::join(path_, "/"))};
    }

    [[nodiscard]] bool is_wanted(const std::string& name) const {
        if (!format_.parts.empty())
            return std::find(format_.parts.begin(), format_.parts.end(), name) != format_.parts.end();
        return std::find(known_members.begin(), known_members.end(), name) != known_members.end();
    }

    void take(const std::string& text, const std::string& name) {
        if (is_wanted(name)) return sink_(place(), Translated::entry, text, {});
        if (!format_.parts.empty() || !is_address_like(text)) return;
        sink_(
            place(), Translated::bad, {},
            fault_of(fmt::format("found {} in a member {}, whose meaning is not known; choose members, as in "
                                 "json:{}",
                                 entry::quote(text), entry::quote(name), name)));
    }

    // The objects that stand for one entry in `nft -j`.
    bool shape(const json& node) {
        if (node.size() != 1) return false;
        const std::string& kind = node.begin().key();
        const json& value = node.begin().value();
        if (kind == "prefix" && value.is_object() && value.contains("addr") && value["addr"].is_string() &&
            value.contains("len") && value["len"].is_number_unsigned()) {
            sink_(place(), Translated::entry,
                  fmt::format("{}/{}", value["addr"].get_ref<const std::string&>(),
                              value["len"].get<std::uint64_t>()),
                  {});
            return true;
        }
        if ((kind != "range" && kind != "concat") || !value.is_array()) return false;
        std::vector<std::string> parts;
        for (const json& part : value) {
            if (part.is_string())
                parts.push_back(part.get<std::string>());
            else if (part.is_number_unsigned())
                parts.push_back(std::to_string(part.get<std::uint64_t>()));
            else
                return false;
        }
        std::string text = fmt::format("{}", fmt::join(parts, "-"));
        entry::Fault fault;
        const bool good = kind == "range" || order_components(parts, fields_, text, fault);
        sink_(place(), good ? Translated::entry : Translated::bad, text, fault);
        return true;
    }

    const ListFormat& format_;
    std::uint32_t fields_;
    const EntrySink& sink_;
    std::vector<std::string> path_;
};

} // namespace

Status translate_json(const ListFormat& format, std::uint32_t fields, std::string_view document,
                      const EntrySink& sink) {
    json root;
    try {
        root = json::parse(document);
    } catch (const json::parse_error& error) {
        const std::string_view before = document.substr(0, error.byte);
        return bad_input(
            fmt::format("line {}: this is not JSON", std::count(before.begin(), before.end(), '\n') + 1));
    }
    if (!root.is_structured()) return bad_input("expected a JSON object or array");
    return Document(format, fields, sink).walk(root, "");
}

} // namespace sieve::formats
