// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/image/kinds.hpp"

#include <array>

#include <fmt/format.h>

#include <sieve/blocked.h>
#include <sieve/bloom.h>
#include <sieve/ddlcbf.h>
#include <sieve/dleft.h>

namespace sieve {

namespace {

struct KindName {
    sieve_kind kind;
    const char* name;
};

constexpr std::array<KindName, 5> kind_names{{
    {SIEVE_KIND_BLOCKED, "blocked"},
    {SIEVE_KIND_BLOOM, "bloom"},
    {SIEVE_KIND_DLEFT64, "dleft64"},
    {SIEVE_KIND_DLEFT128, "dleft128"},
    {SIEVE_KIND_DDLCBF, "ddlcbf"},
}};

bool is_dleft(const sieve_lookup& lookup) {
    return lookup.kind == SIEVE_KIND_DLEFT64 || lookup.kind == SIEVE_KIND_DLEFT128 ||
           lookup.kind == SIEVE_KIND_DDLCBF;
}

std::string dleft_fault(const sieve_lookup& lookup) {
    if (lookup.choices < SIEVE_DLEFT_MIN_SUBTABLES || lookup.choices > SIEVE_DLEFT_MAX_SUBTABLES)
        return fmt::format("{} subtables, expected {} to {}", lookup.choices, SIEVE_DLEFT_MIN_SUBTABLES,
                           SIEVE_DLEFT_MAX_SUBTABLES);
    if (lookup.buckets > SIEVE_DLEFT_MAX_LINES) return "subtables that are too large";
    if (lookup.kind == SIEVE_KIND_DDLCBF) {
        const std::uint32_t minimal = lookup.hashes >> SIEVE_DDLCBF_MINIMAL_SHIFT;
        if (minimal < SIEVE_DDLCBF_MIN_MINIMAL || minimal > SIEVE_DDLCBF_MAX_MINIMAL ||
            (lookup.hashes & SIEVE_DDLCBF_COUNTER) > 2 || lookup.alpha > SIEVE_DDLCBF_MAX_CELLS)
            return "buckets that cannot be written like that";
        return {};
    }
    const std::uint32_t sorting = lookup.hashes & SIEVE_DLEFT_SORTING;
    if (sorting > (lookup.kind == SIEVE_KIND_DLEFT128 ? 2U : 1U) ||
        (lookup.hashes & ~(SIEVE_DLEFT_SORTING | SIEVE_DLEFT_GROUPED)) != 0)
        return "buckets that cannot be written like that";
    return {};
}

} // namespace

const char* kind_name(std::uint32_t kind) {
    for (const auto& [value, name] : kind_names)
        if (kind == static_cast<std::uint32_t>(value)) return name;
    return "unknown";
}

Result<sieve_kind> parse_kind(std::string_view text) {
    std::string all;
    for (const auto& [kind, name] : kind_names) {
        if (text == name) return kind;
        all += all.empty() ? "" : ", ";
        all += name;
    }
    return usage_error(fmt::format("{}: unknown kind of filter, expected one of {}", text, all));
}

std::string geometry_fault(const sieve_lookup& lookup) {
    if (lookup.fields == 0 || (lookup.fields & ~SIEVE_FIELD_ALL) != 0)
        return fmt::format("key fields {:#x} are not a set of src, dst, sport, dport, proto", lookup.fields);
    if (lookup.buckets == 0) return "a filter without lines";
    if (lookup.probes != 0 && lookup.kind != SIEVE_KIND_BLOCKED)
        return fmt::format("a prefix set of kind {}, expected blocked", kind_name(lookup.kind));
    switch (lookup.kind) {
    case SIEVE_KIND_BLOCKED:
        if (lookup.choices < 1 || lookup.choices > SIEVE_MAX_CHOICES)
            return fmt::format("{} choices, expected 1 to {}", lookup.choices, SIEVE_MAX_CHOICES);
        if (!sieve_pattern_valid(lookup.hashes))
            return fmt::format("{} bits per key, which no pattern has", lookup.hashes);
        return {};
    case SIEVE_KIND_BLOOM:
        if (!sieve_bloom_valid(lookup.choices, lookup.hashes, lookup.buckets))
            return fmt::format("{} groups of {} probes in {} lines cannot be", lookup.choices, lookup.hashes,
                               lookup.buckets);
        return {};
    case SIEVE_KIND_DLEFT64:
    case SIEVE_KIND_DLEFT128:
    case SIEVE_KIND_DDLCBF:
        return dleft_fault(lookup);
    default:
        return fmt::format("unknown filter kind {}", lookup.kind);
    }
}

std::uint64_t filter_lines(const sieve_lookup& lookup) {
    return is_dleft(lookup) ? std::uint64_t{lookup.choices} * lookup.buckets : lookup.buckets;
}

bool filter_holds(const sieve_lookup& lookup, const sieve_hash& hash, const sieve_line* filter) {
    if (lookup.kind == SIEVE_KIND_BLOOM) return sieve_bloom_covered(&lookup, hash, filter) != 0;
    if (!is_dleft(lookup)) {
        std::uint32_t at[SIEVE_MAX_CHOICES];
        sieve_blocked_locate(&lookup, hash, at);
        const sieve_line* const line[SIEVE_MAX_CHOICES] = {filter + at[0], filter + at[1], filter + at[2]};
        return sieve_blocked_test(&lookup, hash, line) != 0;
    }
    const sieve_line* line[SIEVE_DLEFT_MAX_SUBTABLES];
    if (lookup.kind == SIEVE_KIND_DDLCBF) {
        sieve_ddlcbf_place place[SIEVE_DLEFT_MAX_SUBTABLES] = {};
        sieve_ddlcbf_locate(&lookup, hash, place);
        for (int i = 0; i < SIEVE_DLEFT_MAX_SUBTABLES; i++) line[i] = filter + place[i].line;
        return sieve_ddlcbf_test(&lookup, line, place) != 0;
    }
    std::uint32_t at[SIEVE_DLEFT_MAX_SUBTABLES];
    std::uint32_t slot[SIEVE_DLEFT_MAX_SUBTABLES];
    sieve_dleft_locate(&lookup, hash, at, slot);
    for (int i = 0; i < SIEVE_DLEFT_MAX_SUBTABLES; i++) line[i] = filter + at[i];
    return sieve_dleft_test(&lookup, hash, line, slot) != 0;
}

} // namespace sieve
