// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/registry.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

#include <fmt/core.h>

#include "libsieve/filters/kinds/blocked/blocked_kind.hpp"
#include "libsieve/filters/kinds/bloom/bloom_kind.hpp"
#include "libsieve/filters/kinds/choice.hpp"
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_kind.hpp"
#include "libsieve/filters/kinds/dleft/dleft_kind.hpp"
#include "libsieve/filters/kinds/exact/exact_kind.hpp"
#include "libsieve/filters/kinds/ranges/ranges_kind.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_kind.hpp"
#include "libsieve/filters/placement/shards.hpp"

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

} // namespace

#define SIEVE_KIND_ENTRY(UPPER, lower, number) by_number_[number] = &lower##_kind;
constexpr Kinds::Kinds() {
    SIEVE_KINDS(SIEVE_KIND_ENTRY)
}
#undef SIEVE_KIND_ENTRY

const Kinds& built_in_kinds() {
    static constinit const Kinds kinds;
    return kinds;
}

Kinds Kinds::with(const FilterKind& kind) const {
    const std::uint32_t number = kind.facts().number;
    assert(number != SIEVE_KIND_NONE && number < by_number_.size() && by_number_[number] == nullptr);
    Kinds more = *this;
    more.by_number_[number] = &kind;
    return more;
}

std::vector<const FilterKind*> Kinds::all() const {
    std::vector<const FilterKind*> kinds;
    std::copy_if(by_number_.begin(), by_number_.end(), std::back_inserter(kinds),
                 [](const FilterKind* kind) { return kind != nullptr; });
    return kinds;
}

const FilterKind& Kinds::of(std::uint32_t number) const {
    return number < by_number_.size() && by_number_[number] != nullptr ? *by_number_[number] : no_kind;
}

Result<sieve_kind> Kinds::parse(std::string_view name) const {
    for (const FilterKind* kind : all())
        if (name == kind->facts().name) return kind->facts().number;
    return invalid_request(fmt::format("{}: unknown kind of filter, expected {}", name, names()));
}

std::string Kinds::names(bool (*wanted)(const KindFacts&)) const {
    std::vector<const char*> names;
    for (const FilterKind* kind : all())
        if (wanted == nullptr || wanted(kind->facts())) names.push_back(kind->facts().name);
    std::string text;
    for (std::size_t i = 0; i < names.size(); i++)
        text += fmt::format("{}{}", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
    return text;
}

std::string Kinds::geometry_fault(const sieve_lookup& lookup) const {
    if (lookup.fields == 0 || (lookup.fields & ~SIEVE_FIELD_ALL) != 0)
        return fmt::format("key fields {:#x} are not a set of src, dst, sport, dport, proto", lookup.fields);
    if (lookup.buckets == 0) return "a filter without lines";
    const FilterKind& kind = of(lookup);
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

Status Kinds::check(const KindOptions& options) const {
    const KindFacts& facts = of(options.kind).facts();
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

Result<std::unique_ptr<KindBuilder>> Kinds::builder(const KindOptions& options) const {
    SIEVE_TRY(check(options));
    return of(options.kind).builder(options);
}

std::vector<const FilterKind*> hashing_kinds() {
    std::vector<const FilterKind*> kinds = filter_kinds();
    std::erase_if(kinds, [](const FilterKind* kind) { return kind->exact() != nullptr; });
    return kinds;
}

const FilterKind& standard_kind() {
    return choose_kind({});
}

const char* kind_name(std::uint32_t number) {
    return kind_of(number).facts().name;
}

} // namespace sieve
