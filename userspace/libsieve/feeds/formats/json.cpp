// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// JSON documents: the lists of networks that cloud providers publish, arrays of addresses, and `nft -j`. The
// names of members tell which strings are entries. An address in a member of another name is refused, not
// ignored: its author may have meant it. So are an address beside its netmask, its length or the end of its
// range, unless members are chosen; addresses that are written as numbers, members that are named twice, a
// second set of `nft -j`, and its commands that take elements out again. A document may also be JSON lines:
// one value a line.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/formats/words.hpp"
#include "libsieve/feeds/text/range_part.hpp"
#include "libsieve/util/text/doubled_member.hpp"

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

// Of them, those that hold one entry. A number in another one may be a count.
constexpr std::array<std::string_view, 9> single_members{
    "ip", "ipv4", "ipv6", "cidr", "ip_prefix", "ipv6_prefix", "ipv4Prefix", "ipv6Prefix", "address"};

// One of an object, and its text.
struct Member {
    std::string name;
    std::string value;
};

// So many of them in an object are looked at, which bounds the time that an object takes.
constexpr std::size_t most_range_parts = 8;

class Document {
  public:
    Document(const ListFormat& format, std::uint32_t fields, const EntrySink& sink)
        : format_(format), fields_(fields), sink_(sink) {}

    // `parts`: members beside the node that must not make a range of its address.
    Status walk(const json& node, const std::string& name, const std::vector<Member>& parts = {}) {
        if (node.is_string()) {
            take(node.get_ref<const std::string&>(), name, parts);
            return {};
        }
        if (!node.is_structured()) return {};
        if (path_.size() == deepest)
            return bad_input(fmt::format("{}: nested deeper than {} levels", place().path, deepest));
        if (node.is_object() && is_wanted(name) && shape(node)) return {};
        if (node.is_object() && (adds_nothing(node) || !is_same_set(node, name))) return {};
        const std::vector<Member> inner = range_parts(node);
        std::size_t index = 0;
        for (const auto& item : node.items()) {
            path_.push_back(node.is_object() ? item.key() : std::to_string(index++));
            const std::string& child = node.is_object() ? item.key() : name;
            if (item.value().is_number() && is_wanted(child) && (node.is_array() || is_single(child)))
                bad(fmt::format("found the number {} in a member {}, expected an address as text",
                                item.value().dump(), entry::quote(child)));
            SIEVE_TRY(walk(item.value(), child, inner));
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

    [[nodiscard]] static bool is_single(const std::string& name) {
        return std::find(single_members.begin(), single_members.end(), name) != single_members.end();
    }

    void bad(std::string sentence) { sink_(place(), Translated::bad, {}, fault_of(std::move(sentence))); }

    // The first members of an object that may be; of chosen members, those: each is to be an entry.
    [[nodiscard]] std::vector<Member> range_parts(const json& node) const {
        std::vector<Member> parts;
        if (!node.is_object()) return parts;
        for (const auto& item : node.items()) {
            if (parts.size() == most_range_parts) break;
            if (!format_.parts.empty() && !is_wanted(item.key())) continue;
            if (!entry::names_range_part(item.key())) continue;
            if (item.value().is_string()) parts.push_back({item.key(), item.value().get<std::string>()});
            if (item.value().is_number_unsigned()) parts.push_back({item.key(), item.value().dump()});
        }
        return parts;
    }

    void take(const std::string& text, const std::string& name, const std::vector<Member>& parts) {
        if (!format_.parts.empty() && !is_wanted(name)) return;
        for (const Member& part : parts)
            if (part.name != name && entry::widens(part.name, part.value, text))
                return bad(
                    fmt::format("found {} in a member {} beside {}, expected a prefix or a range in one "
                                "member",
                                entry::quote(part.value), entry::quote(part.name), entry::quote(text)));
        if (is_wanted(name)) return sink_(place(), Translated::entry, text, {});
        if (!is_address_like(text)) return;
        bad(fmt::format("found {} in a member {}, whose meaning is not known{}", entry::quote(text),
                        entry::quote(name),
                        entry::names_range_part(name) ? "" : "; choose members, as in json:" + name));
    }

    // Of `nft -j`, in which each set is an object with a name and elements: false, with a fault, if this is
    // a map, or another set than the first.
    bool is_same_set(const json& node, const std::string& name) {
        if ((name != "set" && name != "map" && name != "element") || !node.contains("elem")) return true;
        const auto found = node.find("name");
        if (found == node.end() || !found->is_string()) return true;
        const std::string& set = found->get_ref<const std::string&>();
        if (name == "map") {
            bad(fmt::format("{} is a map, expected a set", entry::quote(set)));
        } else if (set_ && *set_ != set) {
            bad(fmt::format(
                "found elements of the set {} behind elements of {}, expected one set, as `nft -j "
                "list set` prints it",
                entry::quote(set), entry::quote(*set_)));
        } else {
            set_ = set;
            return true;
        }
        return false;
    }

    // Of `nft -j`: whether this is a command that takes elements out, or only asks about them. It is bad
    // behind elements, unless it names another set.
    bool adds_nothing(const json& node) {
        if (path_.size() < 2 || path_[path_.size() - 2] != "nftables" || node.size() != 1) return false;
        const std::string& command = node.begin().key();
        const json& operand = node.begin().value();
        const bool asks = command == "get" || command == "reset";
        if ((!asks && command != "delete" && command != "destroy" && command != "flush") ||
            !operand.is_object() || operand.size() != 1)
            return false;
        const std::string& what = operand.begin().key();
        const bool of_set = what == "element" || what == "set";
        if (!of_set && what != (command == "flush" ? "ruleset" : "table")) return false;
        const auto name = operand.begin().value().find("name");
        const bool other = of_set && name != operand.begin().value().end() && *name != set_.value_or("");
        if (set_ && !other)
            bad(fmt::format("found \"{} {}\" behind elements of the set {}, expected elements that {}",
                            command, what, entry::quote(*set_), asks ? "are added" : "stay"));
        return true;
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
    std::optional<std::string> set_{}; // of `nft -j`: the first
};

// Parses a value that begins on that line.
Status parse(std::string_view text, std::size_t line, json& value) {
    DoubledMember twice;
    try {
        value = json::parse(text, std::ref(twice));
    } catch (const json::parse_error& error) {
        const std::string_view before = text.substr(0, error.byte);
        return bad_input(
            fmt::format("line {}: this is not JSON",
                        line + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'))));
    }
    if (!twice.found()) return {};
    return bad_input(
        fmt::format("an object has the member {} twice, expected it once", entry::quote(*twice.found())));
}

// Whether each line is a value: the first is a whole one, and another follows.
bool is_json_lines(std::string_view document) {
    std::string_view first;
    while (first.empty() && !document.empty()) first = without_blanks(take_line(document));
    return json::accept(first) && document.find_first_not_of(" \t\r\n") != std::string_view::npos;
}

// The beginning of a JSON document; a line that is one JSON object with an address belongs to a plain list.
bool begins_json(std::string_view line, std::uint32_t fields) {
    if (line[0] == '{') {
        sieve_key key{};
        bool has_key = false;
        entry::Fault fault;
        return !entry::parse_json(line, fields, key, has_key, fault) && !entry::is_range(fault) &&
               fault.kind != entry::FaultKind::host_bits && fault.kind != entry::FaultKind::json_twice;
    }
    // "[2001:db8::1]:443" begins like an array, too.
    return line[0] == '[' && (line.size() == 1 || line.find(']') == std::string_view::npos ||
                              !address_of(line.substr(1, line.find(']') - 1)));
}

Status translate_json(const ListFormat& format, std::uint32_t fields, std::string_view document,
                      const EntrySink& sink) {
    json root;
    if (is_json_lines(document)) {
        root = json::array();
        std::size_t number = 1;
        for (std::string_view rest = document; !rest.empty(); number++) {
            const std::string_view line = without_blanks(take_line(rest));
            if (line.empty()) continue;
            json value;
            SIEVE_TRY(parse(line, number, value));
            root.push_back(std::move(value));
        }
    } else {
        SIEVE_TRY(parse(document, 1, root));
    }
    if (!root.is_structured()) return bad_input("expected a JSON object or array");
    return Document(format, fields, sink).walk(root, "");
}

} // namespace

const FormatReader json_format = {.is_first_line = begins_json, .document = translate_json};

} // namespace sieve::formats
