// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/blocked/blocked_kind.hpp"

#include <fmt/core.h>

#include <sieve/blocked.h>

#include "libsieve/filters/bloom_like_builder.hpp"
#include "libsieve/filters/kinds/blocked/blocked_placement.hpp"
#include "libsieve/filters/kinds/blocked/blocked_plan.hpp"
#include "libsieve/filters/kinds/blocked/blocked_rate.hpp"
#include "libsieve/filters/placement/shards.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {

namespace {

class BlockedBuilder final : public BloomLikeBuilder<BlockedShape> {
  public:
    using BloomLikeBuilder::BloomLikeBuilder;

    [[nodiscard]] std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) const override {
        return whole_shards(BloomLikeBuilder::lines_for_bits(keys, bits_per_key));
    }
    [[nodiscard]] std::uint64_t usable_lines(std::uint64_t lines) const override {
        return lines >> shard_bits_for(lines) << shard_bits_for(lines);
    }

    [[nodiscard]] Status describe(std::uint64_t keys, std::uint64_t lines,
                                  sieve_lookup& lookup) const override {
        lookup.kind = SIEVE_KIND_BLOCKED;
        lookup.choices = static_cast<std::uint8_t>(shape().choices);
        lookup.hashes = hashes_for(keys, lines);
        lookup.buckets = static_cast<std::uint32_t>(lines);
        lookup.shard_bits = static_cast<std::uint8_t>(shard_bits_for(lines));
        lookup.alpha = alpha_to_image(shape().alpha);
        return {};
    }

    [[nodiscard]] Result<std::uint32_t> fill(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                             std::span<sieve_line> lines, std::uint64_t seed,
                                             const Progress& progress) const override {
        return place_blocked(keys, lookup, lines, {.rounds = rounds(), .seed = seed}, progress).rounds;
    }
    [[nodiscard]] Result<std::uint32_t> fill_shards(std::span<const sieve_hash> keys,
                                                    const sieve_lookup& lookup, std::span<sieve_line> lines,
                                                    std::uint32_t first, std::uint32_t count,
                                                    std::uint64_t seed) const override {
        return place_shards(keys, lookup, lines, first, count, {.rounds = rounds(), .seed = seed}, {}).rounds;
    }
};

} // namespace

const constinit BlockedKind blocked_kind;

std::string BlockedKind::geometry_fault(const sieve_lookup& lookup) const {
    if (!sieve_pattern_valid(lookup.hashes))
        return fmt::format("{} bits set by a key, expected {} to {}", lookup.hashes, SIEVE_PATTERN_MIN_HASHES,
                           SIEVE_PATTERN_MAX_HASHES);
    return {};
}

std::uint64_t BlockedKind::lines(const sieve_lookup& lookup) const {
    return lookup.buckets;
}

bool BlockedKind::holds(const sieve_lookup& lookup, const sieve_hash& hash, const sieve_line* filter) const {
    std::uint32_t at[SIEVE_MAX_CHOICES];
    sieve_blocked_locate(&lookup, hash, at);
    const sieve_line* const line[SIEVE_MAX_CHOICES] = {filter + at[0], filter + at[1], filter + at[2]};
    return sieve_blocked_test(&lookup, hash, line) != 0;
}

double BlockedKind::expected_rate(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                  std::uint64_t keys) const {
    return expected_blocked_rate(lookup, filter, keys);
}

std::string BlockedKind::geometry(const sieve_lookup& lookup) const {
    std::string text = fmt::format("{} bits set by a key, {} to choose from", lookup.hashes,
                                   counted(lookup.choices, "line"));
    if (lookup.choices > 1 && lookup.alpha != 0xffff)
        text += fmt::format(" for {:.0f}% of keys", alpha_from_image(lookup.alpha) * 100);
    return text + shards_in_words(lookup, lines(lookup));
}

std::string BlockedKind::parameters(const sieve_lookup& lookup, std::uint64_t) const {
    return fmt::format("{}, k = {}", count_choices(lookup.choices), lookup.hashes);
}

LinesTouched BlockedKind::lines_touched(const sieve_lookup& lookup, double) const {
    return {.non_member = static_cast<double>(lookup.choices), .member = static_cast<double>(lookup.choices)};
}

std::uint32_t BlockedKind::rounds(Effort effort, std::uint32_t choices) const {
    switch (effort) {
    case Effort::fast:
        return 0;
    case Effort::normal:
        // Rebalancing takes longer to exploit a third line, because each move proposes only one of the other
        // two.
        return choices > 2 ? 24 : 16;
    case Effort::best:
        return 64;
    }
    return 0;
}

Result<std::unique_ptr<KindBuilder>> BlockedKind::builder(const KindOptions& options) const {
    BlockedShape shape{.choices = choices_of(options), .hashes = options.hashes.value_or(0)};
    shape.alpha = options.alpha.value_or(shape.alpha);
    if (!(shape.alpha >= 0 && shape.alpha <= 1))
        return invalid_request(fmt::format("alpha {}, expected 0 to 1", shape.alpha));
    if (options.hashes && !sieve_pattern_valid(shape.hashes))
        return invalid_request(fmt::format("{} bits set by a key, expected {} to {}", shape.hashes,
                                           SIEVE_PATTERN_MIN_HASHES, SIEVE_PATTERN_MAX_HASHES));
    if (shape.choices == 1) shape.alpha = 0;
    return std::make_unique<BlockedBuilder>(shape, rounds_of(options));
}

std::vector<KindOptions> BlockedKind::forms() const {
    return {{.kind = SIEVE_KIND_BLOCKED, .choices = 1},
            {.kind = SIEVE_KIND_BLOCKED, .choices = 2},
            {.kind = SIEVE_KIND_BLOCKED, .choices = 3}};
}

} // namespace sieve
