// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/key_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/feeds/text/protocols.hpp"

namespace sieve {
namespace {

constexpr std::string_view expected_list =
    "expected a comma list of src, dst, sport, dport, proto in this order";

struct Parsed {
    sieve_key key{};
    entry::Fault fault{}; // no fault: the whole text is the key
};

Parsed parse(std::string_view text, std::uint32_t fields) {
    Parsed parsed;
    const char* p = text.data();
    const char* end = p + text.size();
    if (!entry::parse_entry(p, end, fields, parsed.key, parsed.fault)) return parsed;
    parsed.fault = {}; // failed attempts on the way to the key do not matter
    while (p != end && entry::is_separator(*p)) ++p;
    if (p != end) parsed.fault = {.kind = entry::FaultKind::surplus, .found = {p, end}};
    return parsed;
}

tl::unexpected<Error> refused(std::string_view text, const entry::Fault& fault) {
    return bad_input(fmt::format("key {}: {}", entry::quote(text, 200), entry::describe(fault)));
}

} // namespace

Result<std::uint32_t> parse_fields(std::string_view list) {
    std::uint32_t fields = 0;
    for (std::string_view rest = list;;) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view name = rest.substr(0, comma);
        const auto* known = std::ranges::find(entry::field_names, name, &entry::FieldName::name);
        if (known == entry::field_names.end())
            return invalid_request(
                fmt::format("{} is not a field of a key: {}", entry::quote(name), expected_list));
        if (fields & known->field)
            return invalid_request(fmt::format("the field {} stands twice in {}", name, entry::quote(list)));
        if (fields > known->field)
            return invalid_request(fmt::format("{} is out of order: {}", entry::quote(list), expected_list));
        fields |= known->field;
        if (comma == rest.size()) return fields;
        rest.remove_prefix(comma + 1);
    }
}

std::string format_fields(std::uint32_t fields) {
    std::string list;
    for (const entry::FieldName& name : entry::field_names) {
        if (!(fields & name.field)) continue;
        if (!list.empty()) list += ',';
        list += name.name;
    }
    return list;
}

Result<sieve_key> parse_key(std::string_view text, std::uint32_t fields) {
    const Parsed parsed = parse(text, fields);
    if (parsed.fault.kind == entry::FaultKind::none) return parsed.key;
    return refused(text, parsed.fault);
}

Result<MemberText> parse_member(std::string_view text, std::uint32_t fields) {
    const Parsed parsed = parse(text, fields);
    if (parsed.fault.kind == entry::FaultKind::none) return MemberText{parsed.key, {}, {}};
    if (entry::is_range(parsed.fault))
        return MemberText{parsed.key, entry::range_of(parsed.key, fields, parsed.fault), {}};
    if (!entry::may_be_key_range(parsed.fault)) return refused(text, parsed.fault);
    const char* p = text.data();
    const char* const end = p + text.size();
    KeyRange range;
    entry::Fault fault;
    if (!entry::parse_key_range(p, end, fields, range, fault)) return refused(text, fault);
    while (p != end && entry::is_separator(*p)) ++p;
    if (p != end) return refused(text, {.kind = entry::FaultKind::surplus, .found = {p, end}});
    return MemberText{parsed.key, {}, range};
}

void add_member(const MemberText& text, Members& members) {
    if (text.range)
        members.ranges.push_back(*text.range);
    else if (text.key_range)
        members.key_ranges.push_back(*text.key_range);
    else
        members.keys.add(text.key);
}

std::string format_key(const sieve_key& key, std::uint32_t fields) {
    std::string text;
    auto add = [&text](std::string_view field) {
        if (!text.empty()) text += ' ';
        text += field;
    };
    const std::uint64_t transport = key.word[4];
    if (fields & SIEVE_FIELD_SRC) add(format_address(key.word[0], key.word[1]));
    if (fields & SIEVE_FIELD_DST) add(format_address(key.word[2], key.word[3]));
    if (fields & SIEVE_FIELD_SPORT) add(std::to_string(transport >> SIEVE_SPORT_SHIFT & 0xffff));
    if (fields & SIEVE_FIELD_DPORT) add(std::to_string(transport >> SIEVE_DPORT_SHIFT & 0xffff));
    if (fields & SIEVE_FIELD_PROTO) {
        const auto proto = static_cast<std::uint8_t>(transport >> SIEVE_PROTO_SHIFT);
        const std::string_view name = protocol_name(proto);
        add(name.empty() ? std::to_string(proto) : name);
    }
    return text;
}

} // namespace sieve
