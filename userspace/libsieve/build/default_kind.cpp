// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/default_kind.hpp"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "libsieve/filters/kinds/choice.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve {

namespace {

// Whether one of the exceptions is more than one address.
bool has_address_ranges(const Exceptions& exceptions) {
    constexpr std::uint32_t whole_address = 128;
    return std::any_of(exceptions.lines.begin(), exceptions.lines.end(), [](const sieve_exception& line) {
        return line.bits.source + line.bits.destination < whole_address;
    });
}

bool asks_for_filter(const BuildOptions& options) {
    const KindOptions& kind = options.kind;
    return options.bits_per_key || options.fpr || options.memory || kind.choices || kind.alpha ||
           kind.hashes || kind.rounds || options.prefixes != PrefixLimits{};
}

// The first kind that has shards and takes the options, or else the first that has shards.
sieve_kind kind_with_shards(const Kinds& all, KindOptions options) {
    std::vector<const FilterKind*> kinds = all.all();
    std::erase_if(kinds, [](const FilterKind* kind) { return !kind->facts().has_shards; });
    const auto taking = std::find_if(kinds.begin(), kinds.end(), [&](const FilterKind* kind) {
        options.kind = kind->facts().number;
        return all.check(options).has_value();
    });
    return (taking != kinds.end() ? *taking : kinds.front())->facts().number;
}

std::string mebibytes(std::uint64_t bytes) {
    return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// Why single addresses are not kept exactly; empty if they are.
std::string why_not_exact(const BuildOptions& options, const ListFacts& list) {
    const char* const exact = kind_name(SIEVE_KIND_EXACT);
    if (list.spilled)
        return fmt::format("building kind {} would take more memory than the limit of {} bytes", exact,
                           options.memory_limit.value_or(0));
    const std::uint64_t bytes =
        bytes_of_exact(list.addresses[SIEVE_FAMILY_V4], list.addresses[SIEVE_FAMILY_V6]);
    if (bytes <= most_bytes_of_exact) return {};
    return fmt::format("kind {} would take {}, and is the default up to {}", exact, mebibytes(bytes),
                       mebibytes(most_bytes_of_exact));
}

} // namespace

ListFacts facts_of(const KeySet& keys, std::span<const AddressRange> ranges, const Exceptions& exceptions) {
    ListFacts facts{.fields = keys.fields()};
    if (!sieve_is_one_address(facts.fields)) return facts;
    facts.ranges = !ranges.empty();
    facts.excepts_ranges = has_address_ranges(exceptions);
    const std::uint64_t small = keys.addresses().size();
    facts.addresses[SIEVE_FAMILY_V4] = small;
    const int word = sieve_address_word(facts.fields);
    keys.for_each(small, keys.size(), [&](const sieve_key& key) {
        facts.addresses[sieve_family(key.word[word], key.word[word + 1])]++;
    });
    return facts;
}

KindChoice chosen_kind(const BuildOptions& options, const ListFacts& list) {
    if (options.kind.kind != automatic_kind) return {.kind = options.kind.kind};
    const auto settled = [&](bool ranges) { return settled_kind(options, ranges).kind.kind; };
    if (!sieve_is_one_address(list.fields)) return {.kind = settled(false)};
    if (asks_for_filter(options)) return {.kind = settled(list.ranges)};
    if (list.ranges) return {.kind = settled(true), .reason = "the list has prefixes or ranges"};
    std::string reason = why_not_exact(options, list);
    if (reason.empty()) return {.kind = SIEVE_KIND_EXACT};
    if (!list.excepts_ranges || list.spilled) return {.kind = settled(false), .reason = std::move(reason)};
    return {.kind = settled(true), .reason = reason + ", and the exceptions have prefixes or ranges"};
}

BuildOptions settled_kind(BuildOptions options, bool has_address_ranges) {
    if (options.kind.kind != automatic_kind) return options;
    if (has_address_ranges && !asks_for_filter(options))
        options.kind.kind = SIEVE_KIND_RANGES;
    else if (options.memory_limit && !has_address_ranges)
        options.kind.kind = kind_with_shards(*options.kinds, options.kind);
    else
        options.kind.kind =
            choose_kind(options.kind, {.fpr = options.fpr, .bits_per_key = options.bits_per_key})
                .facts()
                .number;
    return options;
}

} // namespace sieve
