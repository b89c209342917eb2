// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A condition of a set on a packet's ports and protocol (sieve/condition.h), in words:
// `dport=22,443,proto=tcp`.
//
// Within a field, a packet meets one of the values; it meets all fields. The words are one list for the
// options of a set, the words of `set`, and the keys of the configuration.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sieve/condition.h>
#include <sieve/key.h>

#include "libsieve/util/results/result.hpp"

// In the namespace of the type, so that members of it compare, too.
[[nodiscard]] constexpr bool operator==(const sieve_span& a, const sieve_span& b) {
    return a.first == b.first && a.last == b.last;
}
[[nodiscard]] constexpr bool operator==(const sieve_condition& a, const sieve_condition& b) {
    for (int part = 0; part < SIEVE_PARTS; part++)
        if (!std::ranges::equal(a.span[part], b.span[part])) return false;
    return a.fields == b.fields && std::ranges::equal(a.spans, b.spans);
}

namespace sieve::control {

struct ConditionPart {
    sieve_part part;
    sieve_field field;
    const char* name;     // the option's
    const char* value;    // what the help calls its value
    const char* help;     // what it does
    const char* expected; // of its value, for an error
};

// In the order in which a condition is written.
[[nodiscard]] std::span<const ConditionPart> condition_parts();

// What the condition asks of a field: ports and ranges of ports ("22,443,8000-8100"), or protocols by name or
// number ("tcp,47"); "any": nothing. Error invalid_request, without the field's name: the text is nothing of
// the kind, or more than SIEVE_CONDITION_SPANS remain after those that touch are one.
[[nodiscard]] Status set_condition(sieve_condition& condition, const ConditionPart& part,
                                   std::string_view text);

// Whether a piece of text between commas can go on with a list of the field's values, rather than begin
// another option.
[[nodiscard]] bool continues_list(const ConditionPart& part, std::string_view piece);

// Error invalid_request: no packet can meet it, since it asks for ports of protocols that have none.
[[nodiscard]] Status check_condition(const sieve_condition& condition);

// What it asks of one field: "22", "8000-8100"; protocols by name.
[[nodiscard]] std::vector<std::string> condition_values(const sieve_condition& condition,
                                                        const ConditionPart& part);

// "dport=22,443,proto=tcp"; empty if there is no condition.
[[nodiscard]] std::string describe_condition(const sieve_condition& condition);

// Whether packets meet a condition of whose key only some fields are known.
enum class Met : std::uint8_t { no, yes, depends };
[[nodiscard]] Met is_met(const sieve_condition& condition, const sieve_key& key, std::uint32_t known);

// A condition of which some fields change.
struct ConditionEdit {
    std::uint32_t fields = 0; // enum sieve_field bits: those that change
    sieve_condition to{};     // in these
};
[[nodiscard]] sieve_condition edited(const sieve_condition& condition, const ConditionEdit& edit);

} // namespace sieve::control
