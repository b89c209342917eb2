// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/spec/condition.hpp"

#include <cctype>
#include <charconv>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include <sieve/ports.h>

#include "libsieve/feeds/text/protocols.hpp"

namespace sieve::control {

namespace {

constexpr ConditionPart parts[] = {
    {SIEVE_PART_DPORT, SIEVE_FIELD_DPORT, "dport", "PORTS",
     "only packets to these ports match, such as 22,443,8000-8100",
     "ports and ranges of ports, such as 22,443,8000-8100, or any"},
    {SIEVE_PART_SPORT, SIEVE_FIELD_SPORT, "sport", "PORTS", "only packets from these ports match",
     "ports and ranges of ports, such as 53,1024-65535, or any"},
    {SIEVE_PART_PROTO, SIEVE_FIELD_PROTO, "proto", "PROTOCOLS",
     "only packets of these protocols match, by name or number, such as tcp,udp,47",
     "names or numbers of protocols, such as tcp,udp,47, or any"},
};
constexpr std::string_view anything = "any";

constexpr unsigned most_port = 65535, most_protocol = 255;

std::optional<unsigned> number_of(std::string_view text, unsigned most) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number > most) return std::nullopt;
    return number;
}

sieve_span span_of(unsigned first, unsigned last) {
    return {static_cast<__u16>(first), static_cast<__u16>(last)};
}

std::optional<sieve_span> ports_of(std::string_view text) {
    const std::size_t dash = text.find('-');
    const std::optional<unsigned> first = number_of(text.substr(0, dash), most_port);
    const std::optional<unsigned> last =
        dash == std::string_view::npos ? first : number_of(text.substr(dash + 1), most_port);
    if (!first || !last || *first > *last) return std::nullopt;
    return span_of(*first, *last);
}

std::optional<sieve_span> protocol_of(std::string_view text) {
    if (const int named = protocol_number(text); named >= 0)
        return span_of(static_cast<unsigned>(named), static_cast<unsigned>(named));
    const std::optional<unsigned> number = number_of(text, most_protocol);
    if (!number) return std::nullopt;
    return span_of(*number, *number);
}

// In order, and one where ports touch. Protocols that touch have nothing in common.
std::vector<sieve_span> tidy(std::vector<sieve_span> spans, bool join) {
    std::ranges::sort(spans, {}, &sieve_span::first);
    std::vector<sieve_span> tidied;
    for (const sieve_span& span : spans) {
        const unsigned reach = tidied.empty() ? 0U : tidied.back().last + (join ? 1U : 0U);
        if (!tidied.empty() && span.first <= reach)
            tidied.back().last = std::max(tidied.back().last, span.last);
        else
            tidied.push_back(span);
    }
    return tidied;
}

void put(sieve_condition& condition, const ConditionPart& part, std::span<const sieve_span> spans) {
    std::ranges::fill(condition.span[part.part], sieve_span{});
    std::ranges::copy(spans, condition.span[part.part]);
    condition.spans[part.part] = static_cast<__u8>(spans.size());
    condition.fields =
        static_cast<__u8>(spans.empty() ? condition.fields & ~part.field : condition.fields | part.field);
}

std::span<const sieve_span> spans_of(const sieve_condition& condition, const ConditionPart& part) {
    return {condition.span[part.part], condition.spans[part.part]};
}

std::uint32_t value_of(const sieve_key& key, sieve_field field) {
    switch (field) {
    case SIEVE_FIELD_DPORT:
        return key.word[4] >> SIEVE_DPORT_SHIFT & 0xffff;
    case SIEVE_FIELD_SPORT:
        return key.word[4] >> SIEVE_SPORT_SHIFT & 0xffff;
    default:
        return key.word[4] >> SIEVE_PROTO_SHIFT & 0xff;
    }
}

} // namespace

std::span<const ConditionPart> condition_parts() {
    return parts;
}

Status set_condition(sieve_condition& condition, const ConditionPart& part, std::string_view text) {
    if (text == anything) {
        put(condition, part, {});
        return {};
    }
    const bool protocols = part.part == SIEVE_PART_PROTO;
    std::vector<sieve_span> spans;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        const std::string_view piece = text.substr(begin, comma - begin);
        const std::optional<sieve_span> span = protocols ? protocol_of(piece) : ports_of(piece);
        if (!span) return invalid_request(fmt::format("`{}`: expected {}", piece, part.expected));
        spans.push_back(*span);
        begin = comma + 1;
    }
    spans = tidy(std::move(spans), !protocols);
    if (spans.size() > SIEVE_CONDITION_SPANS)
        return invalid_request(fmt::format("{} {}, expected at most {}", spans.size(),
                                           protocols ? "protocols" : "ports and ranges",
                                           SIEVE_CONDITION_SPANS));
    put(condition, part, spans);
    return {};
}

bool continues_list(const ConditionPart& part, std::string_view piece) {
    if (piece.empty()) return false;
    return std::isdigit(static_cast<unsigned char>(piece.front())) != 0 ||
           (part.part == SIEVE_PART_PROTO && protocol_number(piece) >= 0);
}

Status check_condition(const sieve_condition& condition) {
    if ((condition.fields & SIEVE_FIELD_PORTS) == 0 || (condition.fields & SIEVE_FIELD_PROTO) == 0) return {};
    for (const sieve_span& span :
         std::span(condition.span[SIEVE_PART_PROTO], condition.spans[SIEVE_PART_PROTO]))
        if (sieve_has_ports(static_cast<__u8>(span.first)) != 0) return {};
    return invalid_request(fmt::format(
        "{}: no packet matches, since no such protocol has ports; expected tcp, udp, sctp, dccp or udplite",
        describe_condition(condition)));
}

std::vector<std::string> condition_values(const sieve_condition& condition, const ConditionPart& part) {
    std::vector<std::string> values;
    for (const sieve_span& span : spans_of(condition, part)) {
        const std::string_view name = part.part == SIEVE_PART_PROTO
                                          ? protocol_name(static_cast<std::uint8_t>(span.first))
                                          : std::string_view();
        values.push_back(!name.empty()             ? std::string(name)
                         : span.first == span.last ? fmt::format("{}", span.first)
                                                   : fmt::format("{}-{}", span.first, span.last));
    }
    return values;
}

std::string describe_condition(const sieve_condition& condition) {
    std::string text;
    for (const ConditionPart& part : parts)
        if ((condition.fields & part.field) != 0)
            text += fmt::format("{}{}={}", text.empty() ? "" : ",", part.name,
                                fmt::join(condition_values(condition, part), ","));
    return text;
}

Met is_met(const sieve_condition& condition, const sieve_key& key, std::uint32_t known) {
    const bool no_ports = (known & SIEVE_FIELD_PROTO) != 0 &&
                          sieve_has_ports(static_cast<__u8>(value_of(key, SIEVE_FIELD_PROTO))) == 0;
    if (no_ports && (condition.fields & SIEVE_FIELD_PORTS) != 0) return Met::no;
    Met met = Met::yes;
    for (const ConditionPart& part : parts) {
        if ((condition.fields & part.field) == 0) continue;
        if ((known & part.field) == 0)
            met = Met::depends;
        else if (sieve_spans_hold(condition.span[part.part], condition.spans[part.part],
                                  value_of(key, part.field)) == 0)
            return Met::no;
    }
    return met;
}

sieve_condition edited(const sieve_condition& condition, const ConditionEdit& edit) {
    sieve_condition now = condition;
    for (const ConditionPart& part : parts)
        if ((edit.fields & part.field) != 0) put(now, part, spans_of(edit.to, part));
    return now;
}

} // namespace sieve::control
