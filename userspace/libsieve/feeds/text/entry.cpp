// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/entry.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sieve/extensions.h>

#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/feeds/text/protocols.hpp"
#include "libsieve/feeds/text/range_part.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::entry {
namespace {

struct Address {
    std::uint64_t upper = 0;
    std::uint64_t lower = 0;
    bool dotted = false; // written as IPv4: its prefix lengths are 0 to 32

    [[nodiscard]] uint128 number() const { return static_cast<uint128>(upper) << 64 | lower; }
    [[nodiscard]] bool is_v4() const { return upper == 0 && lower >> 32 == SIEVE_V4_MAPPED >> 32; }
};

bool at_delimiter(const char* p, const char* end) {
    return p == end || is_separator(*p) || is_comment(*p);
}

const char* skip_blanks(const char* p, const char* end) {
    while (p != end && is_blank(*p)) ++p;
    return p;
}

std::string token(const char* p, const char* end) {
    const char* stop = p;
    while (!at_delimiter(stop, end)) ++stop;
    return {p, stop};
}

const char* parse_address(const char* p, const char* end, Address& address) {
    std::uint32_t v4 = 0;
    if (const char* behind = parse_ipv4(p, end, v4)) {
        address = {0, sieve_v4_mapped(v4), true};
        return behind;
    }
    address.dotted = false;
    return parse_ipv6(p, end, address.upper, address.lower);
}

// A decimal number up to `limit` without leading zeros. Returns a pointer to the byte after it, or null.
const char* parse_number(const char* p, const char* end, std::uint32_t limit, std::uint32_t& number) {
    const char* start = p;
    std::uint32_t value = 0;
    for (; p != end; ++p) {
        std::uint32_t digit = static_cast<unsigned char>(*p) - '0';
        if (digit > 9) break;
        value = value * 10 + digit;
        if (value > limit || (p != start && *start == '0')) return nullptr;
    }
    number = value;
    return p == start ? nullptr : p;
}

// Parses a netmask, such as 255.255.255.0, and tells its length. Null if there is none at p; the length is
// above 32 if a one follows a zero.
const char* parse_netmask(const char* p, const char* end, std::uint32_t& length) {
    std::uint32_t mask = 0;
    const char* behind = parse_ipv4(p, end, mask);
    if (!behind || !at_delimiter(behind, end)) return nullptr;
    length = static_cast<std::uint32_t>(std::countl_one(mask));
    if (std::countr_zero(mask) + std::countl_one(mask) != 32) length = 33;
    return behind;
}

// Parses the rest of "a/length" or "a/netmask". `text` points to the start of a, p to the byte behind the
// slash, or to the length.
bool parse_prefix(const char* text, const char*& p, const char* end, const Address& address, Fault& fault) {
    const std::uint32_t bits = address.dotted ? 32 : 128;
    std::uint32_t length = 0;
    const char* behind = address.dotted ? parse_netmask(p, end, length) : nullptr;
    const std::string found = std::string(text, p) + token(p, end);
    if (behind && length > bits) {
        fault = {.kind = FaultKind::netmask, .found = found};
        return false;
    }
    if (!behind) behind = parse_number(p, end, bits, length);
    if (!behind || !at_delimiter(behind, end)) {
        fault = {.kind = FaultKind::prefix_length, .limit = bits, .found = found};
        return false;
    }
    p = behind;
    if (length == bits) return true;
    const uint128 host = ~uint128{0} >> (128 - (bits - length));
    if (uint128 set = address.number() & host; set != 0) {
        uint128 network = address.number() & ~host;
        Address cleared{static_cast<std::uint64_t>(network >> 64), static_cast<std::uint64_t>(network)};
        fault = {.kind = FaultKind::host_bits,
                 .span = host,
                 .found = found,
                 .hint = fmt::format("{}/{}", format_address(cleared.upper, cleared.lower),
                                     cleared.is_v4() && !address.dotted ? length - 96 : length)};
        return false;
    }
    fault = {.kind = FaultKind::prefix, .span = host, .found = found};
    return false;
}

// Checks "from-to", which ends at p.
bool check_range(const char* text, const char* p, const Address& from, const Address& to, Fault& fault) {
    fault = {.found = {text, p}};
    if (from.is_v4() != to.is_v4())
        fault.kind = FaultKind::range_families;
    else if (from.number() > to.number())
        fault.kind = FaultKind::range_backwards;
    else if (from.number() != to.number()) {
        fault.kind = FaultKind::range;
        fault.span = to.number() - from.number();
    } else
        return true;
    return false;
}

// Whether a number or a netmask stands at p, and nothing directly behind it.
bool is_length_column(const char* p, const char* end) {
    const std::string word = token(p, end);
    return !word.empty() && word.find_first_not_of("0123456789.") == std::string::npos;
}

// Parses what may follow a single address at p: "/length", "-address", " / length" or " - address". The last
// forms look like further columns, but their author means a prefix or a range. Taking the first address alone
// would silently drop the rest.
bool parse_extent(const char* text, const char*& p, const char* end, const Address& address, Fault& fault) {
    if (p != end && *p == '/') return parse_prefix(text, ++p, end, address, fault);
    const char* dash = skip_blanks(p, end);
    if (dash != end && *dash == '/') {
        const char* const length = skip_blanks(dash + 1, end);
        if (!is_length_column(length, end)) return true;
        p = length;
        return parse_prefix(text, p, end, address, fault);
    }
    if (dash != end && *dash == '-') {
        Address last;
        const char* behind = parse_address(skip_blanks(dash + 1, end), end, last);
        if (behind && at_delimiter(behind, end)) {
            p = behind;
            return check_range(text, p, address, last, fault);
        }
        if (dash == p) {
            fault = {.kind = FaultKind::range_end, .found = token(text, end)};
            return false;
        }
    }
    return true;
}

// Whether the field behind this address is a port, so that a colon may part them.
bool port_follows(std::uint32_t fields, std::uint32_t field) {
    const std::uint32_t behind = fields & ~((field << 1) - 1);
    return (behind & -behind & SIEVE_FIELD_PORTS) != 0;
}

// "[2001:db8::1]:" before a port. Returns a pointer to the colon, or null.
const char* parse_bracketed(const char* p, const char* end, Address& address) {
    const char* behind =
        p == end || *p != '[' ? nullptr : parse_ipv6(p + 1, end, address.upper, address.lower);
    if (!behind || end - behind < 2 || behind[0] != ']' || behind[1] != ':') return nullptr;
    address.dotted = true; // the colon behind it is no part of it
    return behind + 1;
}

bool parse_address_field(const char*& p, const char* end, std::uint32_t fields, std::uint32_t field,
                         __u64* words, Fault& fault) {
    const char* text = p;
    Address address;
    const bool has_port = port_follows(fields, field);
    p = has_port ? parse_bracketed(text, end, address) : nullptr;
    if (!p) p = parse_address(text, end, address);
    words[0] = address.upper;
    words[1] = address.lower;
    if (p && address.dotted && has_port && end - p >= 2 && p[0] == ':' && p[1] >= '0' && p[1] <= '9') {
        ++p;
        return true;
    }
    if (p && p != end && (*p == '/' || *p == '-') && !is_single_address(fields)) {
        fault = {.kind = FaultKind::not_single, .field = field, .found = token(text, end)};
        return false;
    }
    if (p && is_single_address(fields) && !parse_extent(text, p, end, address, fault)) return false;
    if (!p || !at_delimiter(p, end)) {
        fault = {.kind = FaultKind::field, .field = field, .found = token(text, end)};
        return false;
    }
    return true;
}

// An address, a prefix or a range among several fields.
bool parse_addresses(const char*& p, const char* end, std::uint32_t field, AddressRange& addresses,
                     Fault& fault, bool mask_host_bits) {
    const char* text = p;
    Address address;
    p = parse_address(text, end, address);
    fault = {};
    const bool single = p && parse_extent(text, p, end, address, fault);
    const bool masked = mask_host_bits && fault.kind == FaultKind::host_bits;
    if (p && !single && !masked && !is_range(fault)) return false;
    if (!p || !at_delimiter(p, end)) {
        fault = {.kind = FaultKind::field, .field = field, .found = token(text, end)};
        return false;
    }
    const uint128 first = masked ? address.number() & ~fault.span : address.number();
    addresses = {first, first + fault.span};
    return true;
}

bool parse_number_field(const char*& p, const char* end, std::uint32_t field, std::uint32_t& number,
                        Fault& fault) {
    const char* text = p;
    p = parse_number(text, end, field == SIEVE_FIELD_PROTO ? 255 : 65535, number);
    if (p && at_delimiter(p, end)) return true;
    fault = {.kind = FaultKind::field, .field = field, .found = token(text, end)};
    if (field != SIEVE_FIELD_PROTO) return false;
    int proto = protocol_number(fault.found);
    if (proto < 0) return false;
    number = static_cast<std::uint32_t>(proto);
    p = text + fault.found.size();
    return true;
}

// Parses an entry's fields in their order. `is_given(field)` may take a field's text itself, and returns
// false then; `parse_address(field)` parses an address; the numbers become `transport`.
template <class IsGiven, class ParseAddress, class Word>
bool parse_fields(const char*& p, const char* end, std::uint32_t fields, Word& transport, Fault& fault,
                  const IsGiven& is_given, const ParseAddress& parse_address) {
    std::uint32_t sport = 0;
    std::uint32_t dport = 0;
    std::uint32_t proto = 0;
    for (const FieldName& name : field_names) {
        if (!(fields & name.field)) continue;
        while (p != end && is_separator(*p)) ++p;
        if (p == end || is_comment(*p)) {
            fault = {.kind = FaultKind::missing, .field = name.field};
            return false;
        }
        if (!is_given(name.field)) continue;
        bool good = false;
        switch (name.field) {
        case SIEVE_FIELD_SRC:
        case SIEVE_FIELD_DST:
            good = parse_address(name.field);
            break;
        case SIEVE_FIELD_SPORT:
            good = parse_number_field(p, end, name.field, sport, fault);
            break;
        case SIEVE_FIELD_DPORT:
            good = parse_number_field(p, end, name.field, dport, fault);
            break;
        default:
            good = parse_number_field(p, end, name.field, proto, fault);
        }
        if (!good) return false;
    }
    transport = sieve_transport_word(static_cast<std::uint16_t>(sport), static_cast<std::uint16_t>(dport),
                                     static_cast<std::uint8_t>(proto));
    return true;
}

std::string_view long_name(std::uint32_t field) {
    for (const FieldName& name : field_names)
        if (name.field == field) return name.long_name;
    return "field";
}

std::string expected(std::uint32_t field) {
    constexpr std::string_view address =
        ": IPv4 such as 192.0.2.1 (no leading zeros) or IPv6 such as 2001:db8::1 (no zone)";
    constexpr std::string_view port = ": a number from 0 to 65535";
    constexpr std::string_view protocol = ": a name such as tcp or a number from 0 to 255";
    return fmt::format("the {}{}", long_name(field),
                       field & SIEVE_FIELD_ADDRESSES ? address
                       : field & SIEVE_FIELD_PORTS   ? port
                                                     : protocol);
}

// Whether an address is IPv6 and the protocol is one that no IPv6 packet has. `fields` are those that the
// entry gives.
bool never_matches(std::uint32_t fields, std::uint64_t transport, uint128 source, uint128 destination,
                   Fault& fault) {
    const auto proto = static_cast<std::uint8_t>(transport >> SIEVE_PROTO_SHIFT);
    const bool v6 = ((fields & SIEVE_FIELD_SRC) != 0 && !is_ipv4(source)) ||
                    ((fields & SIEVE_FIELD_DST) != 0 && !is_ipv4(destination));
    if ((fields & SIEVE_FIELD_PROTO) == 0 || !v6 || !sieve_is_extension(proto)) return false;
    fault = {.kind = FaultKind::extension, .found = std::to_string(proto)};
    return true;
}

std::string count_of(uint128 span) {
    if (span >> 32 == 0) return std::to_string(static_cast<std::uint64_t>(span) + 1);
    const auto upper = static_cast<std::uint64_t>(span >> 64);
    const int bits =
        upper ? 128 - std::countl_zero(upper) : 64 - std::countl_zero(static_cast<std::uint64_t>(span));
    const bool exact = (span & (span + 1)) == 0;
    return exact ? fmt::format("2^{}", bits) : fmt::format("more than 2^{}", bits - 1);
}

// Rules out most words that are no address: an address has a dot or a colon among its first five bytes.
bool may_be_address(const char* p, const char* end) {
    for (const char* stop = p + std::min<std::ptrdiff_t>(5, end - p); p != stop; ++p) {
        if (*p == '.' || *p == ':') return true;
        const auto c = static_cast<unsigned char>(*p);
        const bool digit = c >= '0' && c <= '9';
        if (!digit && ((c | 0x20) < 'a' || (c | 0x20) > 'f')) return false;
    }
    return false;
}

// Whether a column begins here that is an address, or begins with one and goes on with a sign that may follow
// one.
bool is_address_column(const char* p, const char* end) {
    if (!may_be_address(p, end)) return false;
    Address address;
    const char* behind = parse_address(p, end, address);
    return behind && (at_delimiter(behind, end) || *behind == '/' || *behind == '-' ||
                      (*behind == ':' && address.dotted));
}

// The member that holds another address than `entry`, however deep: its name and the address.
struct OtherMember {
    std::string_view name;
    std::string_view text;
};
std::optional<OtherMember> find_other_address(const nlohmann::json& node, std::string_view name,
                                              std::string_view entry) {
    if (node.is_string()) {
        const std::string& text = node.get_ref<const std::string&>();
        if (text != entry && is_address_like(text)) return OtherMember{name, text};
        return std::nullopt;
    }
    for (auto item = node.begin(); node.is_structured() && item != node.end(); ++item)
        if (auto found = find_other_address(*item, node.is_object() ? item.key() : name, entry)) return found;
    return std::nullopt;
}

} // namespace

bool is_address_like(std::string_view word) {
    const char* p = word.data();
    const char* const end = p + word.size();
    sieve_key key{};
    Fault fault;
    const bool good = parse_entry(p, end, SIEVE_FIELD_SRC, key, fault) && p == end;
    return good || is_range(fault) || fault.kind == FaultKind::host_bits;
}

std::string quote(std::string_view text, std::size_t longest) {
    return '"' + printable(text, longest) + '"';
}

std::string describe(const Fault& fault) {
    const std::string found = quote(fault.found);
    const std::string bare = printable(fault.found, 64);
    switch (fault.kind) {
    case FaultKind::none:
        return "nothing is wrong";
    case FaultKind::field:
        return fmt::format("found {}, expected {}", found, expected(fault.field));
    case FaultKind::missing:
        return fmt::format("found the end, expected {}", expected(fault.field));
    case FaultKind::surplus:
        return fmt::format("found {} behind the last field, expected nothing more", found);
    case FaultKind::prefix_length:
        return fmt::format("found {}, expected a prefix length from 0 to {}", found, fault.limit);
    case FaultKind::host_bits:
        return fmt::format("found {}, which has bits set behind its prefix length, expected {}", found,
                           fault.hint);
    case FaultKind::prefix:
        return fmt::format("{} is a prefix of {} addresses, expected a single one", bare,
                           count_of(fault.span));
    case FaultKind::range:
        return fmt::format("{} is a range of {} addresses, expected a single one", bare,
                           count_of(fault.span));
    case FaultKind::range_end:
        return fmt::format("found {}, expected a range such as 192.0.2.1-192.0.2.9", found);
    case FaultKind::range_backwards:
        return fmt::format("found {}, expected a range that starts with its lower address", found);
    case FaultKind::range_families:
        return fmt::format("found {}, expected a range within IPv4 or within IPv6", found);
    case FaultKind::not_single:
        return fmt::format(
            "found {}, expected the {} alone: only keys of a single address may be prefixes or ranges", found,
            long_name(fault.field));
    case FaultKind::extension:
        return fmt::format(
            "found the protocol {} with an IPv6 address, expected the number of a protocol: in "
            "IPv6 this number is an extension header's, so no packet would match",
            bare);
    case FaultKind::nul:
        return "found a NUL byte, expected text";
    case FaultKind::too_long:
        return fmt::format("found a line of more than {} bytes that starts with {}, expected a shorter one",
                           fault.limit, quote(fault.found, 32));
    case FaultKind::json:
        return fmt::format("found {}, expected a JSON object on one line", found);
    case FaultKind::json_address:
        return fmt::format(
            "found {}, expected a JSON object with one address as \"cidr\", \"ip\", \"ipv4\" or "
            "\"ipv6\", or with \"type\": \"metadata\"",
            found);
    case FaultKind::json_twice:
        return fmt::format("found the member {} twice in a JSON object, expected it once", found);
    case FaultKind::second_address:
        return fmt::format(
            "found a second address, {}, behind the entry; expected one entry a line (DShield, "
            "hosts, csv and p2p lists are formats of their own)",
            found);
    case FaultKind::netmask:
        return fmt::format("found {}, expected a netmask such as 255.255.255.0", found);
    case FaultKind::sentence:
        return fault.hint;
    case FaultKind::json_fields:
        return fmt::format("found {}, expected plain columns: JSON lines are for keys of a single address",
                           found);
    }
    return "unknown fault";
}

const char* parse_ipv6(const char* p, const char* end, std::uint64_t& upper, std::uint64_t& lower) {
    std::array<std::uint16_t, 8> groups{};
    int count = 0;
    int gap = -1; // number of groups before "::"
    if (end - p >= 2 && p[0] == ':' && p[1] == ':') {
        gap = 0;
        p += 2;
    }
    for (;;) {
        const char* start = p;
        std::uint32_t group = 0;
        for (; p != end && p - start < 4; ++p) {
            std::uint32_t digit = static_cast<unsigned char>(*p) - '0';
            if (digit > 9) {
                digit = (static_cast<unsigned char>(*p) | 0x20) - 'a';
                if (digit > 5) break;
                digit += 10;
            }
            group = group << 4 | digit;
        }
        if (p == start) {
            if (gap != count) return nullptr; // only "::" may end the address
            break;
        }
        if (p != end && *p == '.') {
            std::uint32_t v4 = 0;
            if (count > 6 || !(p = parse_ipv4(start, end, v4))) return nullptr;
            groups[count++] = static_cast<std::uint16_t>(v4 >> 16);
            groups[count++] = static_cast<std::uint16_t>(v4);
            break;
        }
        if (count == 8) return nullptr;
        groups[count++] = static_cast<std::uint16_t>(group);
        if (p == end || *p != ':') break;
        ++p;
        if (p != end && *p == ':') {
            if (gap >= 0) return nullptr;
            gap = count;
            ++p;
        }
    }
    if (gap < 0 ? count != 8 : count > 7) return nullptr;
    uint128 head = 0;
    uint128 tail = 0;
    const int before = gap < 0 ? count : gap;
    for (int i = 0; i < before; ++i) head |= static_cast<uint128>(groups[i]) << (112 - 16 * i);
    for (int i = before; i < count; ++i) tail = tail << 16 | groups[i];
    head |= tail;
    upper = static_cast<std::uint64_t>(head >> 64);
    lower = static_cast<std::uint64_t>(head);
    return p;
}

bool parse_entry(const char*& p, const char* end, std::uint32_t fields, sieve_key& key, Fault& fault) {
    key = {};
    const auto parse_address = [&](std::uint32_t field) {
        return parse_address_field(p, end, fields, field, &key.word[sieve_address_word(field)], fault);
    };
    return parse_fields(
               p, end, fields, key.word[4], fault, [](std::uint32_t) { return true; }, parse_address) &&
           !never_matches(fields, key.word[4], address_number(key.word[0], key.word[1]),
                          address_number(key.word[2], key.word[3]), fault);
}

bool parse_key_range(const char*& p, const char* end, std::uint32_t fields, KeyRange& range, Fault& fault,
                     bool mask_host_bits) {
    range = {};
    bool masked = false;
    const auto is_given = [&](std::uint32_t field) {
        if (*p == '*' && at_delimiter(p + 1, end)) {
            ++p;
            return false;
        }
        range.fields |= field;
        return true;
    };
    const auto parse_address = [&](std::uint32_t field) {
        AddressRange& addresses = field == SIEVE_FIELD_SRC ? range.source : range.destination;
        const bool good = parse_addresses(p, end, field, addresses, fault, mask_host_bits);
        masked = masked || fault.kind == FaultKind::host_bits;
        return good;
    };
    if (!parse_fields(p, end, fields, range.transport, fault, is_given, parse_address)) return false;
    fault = {};
    if (masked) fault.kind = FaultKind::host_bits;
    if (range.fields == 0) {
        fault = {.kind = FaultKind::sentence, .hint = "found * for each field, expected one that is given"};
        return false;
    }
    const bool both = (range.fields & SIEVE_FIELD_ADDRESSES) == SIEVE_FIELD_ADDRESSES;
    if (both && is_ipv4(range.source.first) != is_ipv4(range.destination.first)) {
        fault = {.kind = FaultKind::sentence,
                 .hint = "found addresses of IPv4 and of IPv6, expected two of one family"};
        return false;
    }
    return !never_matches(range.fields, range.transport, range.source.first, range.destination.first, fault);
}

const char* find_second_address(const char* p, const char* end) {
    for (;;) {
        while (p != end && is_separator(*p)) ++p;
        if (p == end || *p == '#') return nullptr;
        if (*p == ';') break;
        if (is_address_column(p, end)) return p;
        while (!at_delimiter(p, end)) ++p;
    }
    while ((p = static_cast<const char*>(std::memchr(p, ';', static_cast<std::size_t>(end - p)))) != nullptr)
        if (is_address_column(++p, end)) return p;
    return nullptr;
}

Fault second_address(const char* p, const char* end) {
    return {.kind = FaultKind::second_address, .found = token(p, end)};
}

bool parse_json(std::string_view line, std::uint32_t fields, sieve_key& key, bool& has_key, Fault& fault) {
    has_key = false;
    std::optional<std::string> twice;
    const auto object = sieve::parse_json(line, twice);
    if (!object.is_object()) {
        fault = {.kind = FaultKind::json, .found = std::string(line)};
        return false;
    }
    if (twice) {
        fault = {.kind = FaultKind::json_twice, .found = *twice};
        return false;
    }
    const nlohmann::json* value = nullptr;
    std::string_view value_of;
    int values = 0;
    for (const char* member : {"cidr", "ip", "ipv4", "ipv6"})
        if (auto found = object.find(member); found != object.end() && !found->is_null()) {
            value = &*found;
            value_of = member;
            ++values;
        }
    if (values == 0) {
        auto type = object.find("type");
        if (type != object.end() && type->is_string() && type->get_ref<const std::string&>() == "metadata")
            return true;
    }
    if (values != 1 || !value->is_string()) {
        fault = {.kind = FaultKind::json_address, .found = std::string(line)};
        return false;
    }
    if (!is_single_address(fields)) {
        fault = {.kind = FaultKind::json_fields, .found = std::string(line)};
        return false;
    }
    const std::string& text = value->get_ref<const std::string&>();
    const char* p = text.data();
    const char* end = p + text.size();
    const bool single = parse_entry(p, end, fields, key, fault);
    if (!single && !is_range(fault) && fault.kind != FaultKind::host_bits) return false;
    if (single && p != end) {
        fault = {.kind = FaultKind::surplus, .found = {p, end}};
        return false;
    }
    for (auto item = object.begin(); single && item != object.end(); ++item) {
        if (item.key() == value_of || (!item->is_string() && !item->is_number_unsigned())) continue;
        const std::string part = item->is_string() ? item->get<std::string>() : item->dump();
        if (!widens(item.key(), part, text)) continue;
        fault = {.kind = FaultKind::sentence,
                 .hint =
                     fmt::format("found {} in a member {} beside the entry, expected a prefix or a range in "
                                 "one member",
                                 quote(part), quote(item.key()))};
        return false;
    }
    if (const auto other = find_other_address(object, {}, text)) {
        fault = {.kind = FaultKind::sentence,
                 .hint = fmt::format("found {} in a member {} beside the entry; expected one address, or "
                                     "members that are chosen, as in json:{}",
                                     quote(other->text), quote(other->name), value_of)};
        return false;
    }
    has_key = single;
    return single;
}

} // namespace sieve::entry
