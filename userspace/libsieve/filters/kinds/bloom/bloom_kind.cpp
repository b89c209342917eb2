// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/bloom/bloom_kind.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/core.h>

#include "libsieve/filters/bloom_like_builder.hpp"
#include "libsieve/filters/kinds/bloom/bloom_placement.hpp"
#include "libsieve/filters/kinds/bloom/bloom_plan.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {

namespace {

class BloomBuilder final : public BloomLikeBuilder<BloomGroups> {
  public:
    using BloomLikeBuilder::BloomLikeBuilder;

    [[nodiscard]] Status describe(std::uint64_t keys, std::uint64_t lines,
                                  sieve_lookup& lookup) const override {
        lookup.kind = SIEVE_KIND_BLOOM;
        lookup.choices = static_cast<std::uint8_t>(shape().groups);
        lookup.hashes = hashes_for(keys, lines);
        lookup.buckets = static_cast<std::uint32_t>(lines);
        return {};
    }

    [[nodiscard]] Result<std::uint32_t> fill(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                             std::span<sieve_line> lines, std::uint64_t seed,
                                             const Progress& progress) const override {
        return place_bloom(keys, lookup, lines, {.search = shape().search, .rounds = rounds(), .seed = seed},
                           progress)
            .rounds;
    }
};

} // namespace

const constinit BloomKind bloom_kind;

std::string BloomKind::geometry_fault(const sieve_lookup& lookup) const {
    if (!sieve_bloom_valid(lookup.choices, lookup.hashes, lookup.buckets))
        return fmt::format("{} of {} probes in {} lines, expected 1 to {} probes in at most {} lines",
                           count_choices(lookup.choices), lookup.hashes, lookup.buckets,
                           SIEVE_BLOOM_MAX_HASHES, SIEVE_BLOOM_MAX_LINES);
    return {};
}

std::uint64_t BloomKind::lines(const sieve_lookup& lookup) const {
    return lookup.buckets;
}

bool BloomKind::holds(const sieve_lookup& lookup, const sieve_hash& hash, const sieve_line* filter) const {
    return sieve_bloom_covered(&lookup, hash, filter) != 0;
}

double BloomKind::expected_rate(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                std::uint64_t) const {
    std::uint64_t ones = 0;
    for (const sieve_line& line : filter)
        for (const auto word : line.word) ones += static_cast<std::uint64_t>(std::popcount(word));
    return bloom_rate(static_cast<double>(ones) / static_cast<double>(filter.size() * SIEVE_LINE_BITS),
                      lookup.hashes, lookup.choices);
}

std::string BloomKind::geometry(const sieve_lookup& lookup) const {
    return fmt::format("{} of {} to choose from", count_choices(lookup.choices),
                       counted(lookup.hashes, "probe"));
}

std::string BloomKind::parameters(const sieve_lookup& lookup, std::uint64_t) const {
    return fmt::format("{}, k = {}", count_choices(lookup.choices), lookup.hashes);
}

LinesTouched BloomKind::lines_touched(const sieve_lookup& lookup, double fpr) const {
    // A lookup probes a group until it finds a zero: 1/(1-p) probes on average. A member's own group takes
    // all k probes, and each group is equally likely to be its own. p follows from 1 - (1 - p^k)^c = fpr.
    const double groups = lookup.choices;
    const double one_group = -std::expm1(std::log1p(-std::min(fpr, 0.999)) / groups);
    const double ones = std::pow(one_group, 1.0 / lookup.hashes);
    const double in_vain = (1 - one_group) / (1 - ones);
    return {.non_member = groups * in_vain, .member = lookup.hashes + (groups - 1) / 2.0 * in_vain};
}

std::uint32_t BloomKind::rounds(Effort effort, std::uint32_t) const {
    switch (effort) {
    case Effort::fast:
        return 0;
    case Effort::normal:
        return 40;
    case Effort::best:
        return 100;
    }
    return 0;
}

Result<std::unique_ptr<KindBuilder>> BloomKind::builder(const KindOptions& options) const {
    const BloomGroups shape{.groups = choices_of(options), .hashes = options.hashes.value_or(0)};
    if (!sieve_bloom_valid(shape.groups, options.hashes.value_or(1), 1))
        return invalid_request(
            fmt::format("{} probes of a group, expected 1 to {}", shape.hashes, SIEVE_BLOOM_MAX_HASHES));
    return std::make_unique<BloomBuilder>(shape, rounds_of(options));
}

std::vector<KindOptions> BloomKind::forms() const {
    return {{.kind = SIEVE_KIND_BLOOM, .choices = 1},
            {.kind = SIEVE_KIND_BLOOM, .choices = 2},
            {.kind = SIEVE_KIND_BLOOM, .choices = 3}};
}

} // namespace sieve
