// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/registry.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include <fmt/core.h>

#include "libsieve/filters/kinds/blocked/blocked_kind.hpp"
#include "libsieve/filters/kinds/bloom/bloom_kind.hpp"
#include "libsieve/filters/kinds/choice.hpp"
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_kind.hpp"
#include "libsieve/filters/kinds/dleft/dleft_kind.hpp"
#include "libsieve/filters/kinds/exact/exact_kind.hpp"
#include "libsieve/filters/kinds/ranges/ranges_kind.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_kind.hpp"
#include "libsieve/filters/shards.hpp"

namespace sieve {

namespace {

/// Represents the numbers that no kind has.
class NoKind final : public FilterKind {
  public:
    constexpr NoKind()
        : FilterKind({.number = SIEVE_KIND_NONE,
                      .name = "unknown",
                      .summary = "",
                      .choices = {.one = "", .many = "", .least = 0, .most = 0, .standard = 0}}) {}

    [[nodiscard]] std::string geometry_fault(const sieve_lookup& lookup) const override {
        return fmt::format("unknown filter kind {}", lookup.kind);
    }
    [[nodiscard]] std::uint64_t lines(const sieve_lookup&) const override { return 0; }
    [[nodiscard]] bool holds(const sieve_lookup&, const sieve_hash&, const sieve_line*) const override {
        return false;
    }
    [[nodiscard]] double expected_rate(const sieve_lookup&, std::span<const sieve_line>,
                                       std::uint64_t) const override {
        return 0;
    }
    [[nodiscard]] std::string geometry(const sieve_lookup&) const override { return "unknown"; }
    [[nodiscard]] std::string parameters(const sieve_lookup&, std::uint64_t) const override {
        return "unknown";
    }
    [[nodiscard]] LinesTouched lines_touched(const sieve_lookup&, double) const override { return {}; }
    [[nodiscard]] std::uint32_t rounds(Effort, std::uint32_t) const override { return 0; }
    [[nodiscard]] Result<std::unique_ptr<KindBuilder>> builder(const KindOptions& options) const override {
        return invalid_request(fmt::format("unknown filter kind {}", static_cast<int>(options.kind)));
    }
};

const constinit NoKind no_kind;

using Table = std::array<const FilterKind*, std::numeric_limits<__u8>::max() + 1>;

#define SIEVE_KIND_ENTRY(UPPER, lower, number) kinds[number] = &lower##_kind;
constexpr Table built_in() {
    Table kinds{};
    SIEVE_KINDS(SIEVE_KIND_ENTRY)
    return kinds;
}
#undef SIEVE_KIND_ENTRY

/// The kinds by number.
constinit Table table = built_in();

Status check(const KindFacts& facts, const KindOptions& options) {
    if (options.alpha && !facts.takes_alpha)
        return invalid_request(fmt::format("alpha is no option of kind {}", facts.name));
    if (options.hashes && !facts.takes_hashes)
        return invalid_request(fmt::format("hashes is no option of kind {}", facts.name));
    const Choices& choices = facts.choices;
    if (options.choices && (*options.choices < choices.least || *options.choices > choices.most))
        return invalid_request(fmt::format("{} {}, expected {} to {}", *options.choices,
                                           *options.choices == 1 ? choices.one : choices.many, choices.least,
                                           choices.most));
    return {};
}

} // namespace

std::vector<const FilterKind*> filter_kinds() {
    std::vector<const FilterKind*> kinds;
    std::copy_if(table.begin(), table.end(), std::back_inserter(kinds),
                 [](const FilterKind* kind) { return kind != nullptr; });
    return kinds;
}

std::vector<const FilterKind*> hashing_kinds() {
    std::vector<const FilterKind*> kinds = filter_kinds();
    std::erase_if(kinds, [](const FilterKind* kind) { return kind->exact() != nullptr; });
    return kinds;
}

const FilterKind& standard_kind() {
    return choose_kind({});
}

const FilterKind& kind_of(std::uint32_t number) {
    return number < table.size() && table[number] != nullptr ? *table[number] : no_kind;
}

const char* kind_name(std::uint32_t number) {
    return kind_of(number).facts().name;
}

Result<sieve_kind> parse_kind(std::string_view name) {
    for (const FilterKind* kind : filter_kinds())
        if (name == kind->facts().name) return kind->facts().number;
    return invalid_request(fmt::format("{}: unknown kind of filter, expected {}", name, names_of_kinds()));
}

std::string names_of_kinds(bool (*wanted)(const KindFacts&)) {
    std::vector<const char*> names;
    for (const FilterKind* kind : filter_kinds())
        if (wanted == nullptr || wanted(kind->facts())) names.push_back(kind->facts().name);
    std::string text;
    for (std::size_t i = 0; i < names.size(); i++)
        text += fmt::format("{}{}", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
    return text;
}

std::string geometry_fault(const sieve_lookup& lookup) {
    if (lookup.fields == 0 || (lookup.fields & ~SIEVE_FIELD_ALL) != 0)
        return fmt::format("key fields {:#x} are not a set of src, dst, sport, dport, proto", lookup.fields);
    if (lookup.buckets == 0) return "a filter without lines";
    const FilterKind& kind = kind_of(lookup);
    const KindFacts& facts = kind.facts();
    if (facts.number == SIEVE_KIND_NONE) return kind.geometry_fault(lookup);
    if (lookup.choices < facts.choices.least || lookup.choices > facts.choices.most)
        return fmt::format("{}, expected {} to {}", kind.count_choices(lookup.choices), facts.choices.least,
                           facts.choices.most);
    if (const std::uint32_t bits = lookup.shard_bits; bits != 0 && !facts.has_marks) {
        if (!facts.has_shards)
            return fmt::format("shards, which a filter of kind {} does not have", facts.name);
        if (bits > shard_bits_for(kind.lines(lookup)) || lookup.buckets >> bits << bits != lookup.buckets)
            return fmt::format("{} lines in 2^{} shards, expected equal shards of at least {} lines",
                               kind.lines(lookup), bits, least_shard_lines);
    }
    return kind.geometry_fault(lookup);
}

Status check_kind_options(const KindOptions& options) {
    return check(kind_of(options.kind).facts(), options);
}

Result<std::unique_ptr<KindBuilder>> kind_builder(const KindOptions& options) {
    SIEVE_TRY(check_kind_options(options));
    return kind_of(options.kind).builder(options);
}

AdditionalKind::AdditionalKind(const FilterKind& kind) : number_(kind.facts().number) {
    assert(number_ != SIEVE_KIND_NONE && number_ < table.size() && table[number_] == nullptr);
    table[number_] = &kind;
}

AdditionalKind::~AdditionalKind() {
    table[number_] = nullptr;
}

} // namespace sieve
