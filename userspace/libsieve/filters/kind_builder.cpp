// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kind_builder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <execution>
#include <random>
#include <vector>

#include <fmt/format.h>

#include <sieve/bloom.h>
#include <sieve/pattern.h>

#include "libsieve/filters/kinds/blocked/blocked_placement.hpp"
#include "libsieve/filters/kinds/blocked/blocked_plan.hpp"
#include "libsieve/filters/kinds/blocked/blocked_rate.hpp"
#include "libsieve/filters/kinds/bloom/bloom_plan.hpp"
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_filter.hpp"
#include "libsieve/filters/kinds/dleft/dleft_builder.hpp"
#include "libsieve/filters/kinds/dleft/dleft_plan.hpp"
#include "libsieve/image/kinds.hpp"

namespace sieve {

namespace {

double bits_per_key_of(std::uint64_t keys, std::uint64_t lines) {
    return static_cast<double>(lines) * SIEVE_LINE_BITS / static_cast<double>(keys);
}

tl::unexpected<Error> not_of_kind(const KindOptions& options, const char* option) {
    return usage_error(fmt::format("{} is no option of the kind {}", option, kind_name(options.kind)));
}

std::uint32_t rounds_of(const KindOptions& options, std::uint32_t choices) {
    return options.rounds.value_or(rounds_for(options.effort, options.kind, choices));
}

// What the two Bloom kinds have in common: a shape whose number of hashes may be left open, and plans by
// overloads on it.
template <class Shape>
class BloomLikeBuilder : public KindBuilder {
  public:
    [[nodiscard]] Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr) const override {
        return sieve::lines_for_fpr(keys, fpr, shape_, rounds_);
    }

    [[nodiscard]] std::optional<double> model_fpr(std::uint64_t keys,
                                                  const sieve_lookup& lookup) const override {
        return sieve::model_fpr(bits_per_key_of(keys, lookup.buckets), used(lookup));
    }

    [[nodiscard]] double predict_fpr(std::uint64_t keys, const sieve_lookup& lookup) const override {
        return sieve::predict_fpr(keys, lookup.buckets, used(lookup), rounds_);
    }

  protected:
    // The hashes that were asked for, or the best number at that size.
    [[nodiscard]] std::uint8_t hashes_for(std::uint64_t keys, std::uint64_t lines) const {
        return static_cast<std::uint8_t>(
            shape_.hashes != 0 ? shape_.hashes : best_hashes(bits_per_key_of(keys, lines), shape_));
    }

    [[nodiscard]] Shape used(const sieve_lookup& lookup) const {
        Shape shape = shape_;
        shape.hashes = lookup.hashes;
        return shape;
    }

    Shape shape_;
    std::uint32_t rounds_ = 0;
};

class BlockedBuilder final : public BloomLikeBuilder<BlockedShape> {
  public:
    static Result<std::unique_ptr<KindBuilder>> create(const KindOptions& options) {
        auto builder = std::make_unique<BlockedBuilder>();
        BlockedShape& shape = builder->shape_;
        shape.choices = options.choices.value_or(shape.choices);
        shape.alpha = options.alpha.value_or(shape.alpha);
        shape.hashes = options.hashes.value_or(0);
        if (shape.choices < 1 || shape.choices > SIEVE_MAX_CHOICES)
            return usage_error(fmt::format("{} choices, expected 1 to {}", shape.choices, SIEVE_MAX_CHOICES));
        if (!(shape.alpha >= 0 && shape.alpha <= 1))
            return usage_error(fmt::format("alpha {}, expected 0 to 1", shape.alpha));
        if (options.hashes && !sieve_pattern_valid(shape.hashes))
            return usage_error(fmt::format("{} bits set by a key, expected {} to {}", shape.hashes,
                                           SIEVE_PATTERN_MIN_HASHES, SIEVE_PATTERN_MAX_HASHES));
        if (shape.choices == 1) shape.alpha = 0;
        builder->rounds_ = rounds_of(options, shape.choices);
        return builder;
    }

    [[nodiscard]] Status describe(std::uint64_t keys, std::uint64_t lines,
                                  sieve_lookup& lookup) const override {
        lookup.kind = SIEVE_KIND_BLOCKED;
        lookup.choices = static_cast<std::uint8_t>(shape_.choices);
        lookup.hashes = hashes_for(keys, lines);
        lookup.buckets = static_cast<std::uint32_t>(lines);
        lookup.alpha = alpha_to_image(shape_.alpha);
        return {};
    }

    [[nodiscard]] Result<std::uint32_t> place(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                              std::span<sieve_line> lines, std::uint64_t seed,
                                              const Progress& progress) const override {
        return place_blocked(keys, lookup, lines, {.rounds = rounds_, .seed = seed}, progress).rounds;
    }
};

class BloomBuilder final : public BloomLikeBuilder<BloomGroups> {
  public:
    static Result<std::unique_ptr<KindBuilder>> create(const KindOptions& options) {
        if (options.alpha) return not_of_kind(options, "alpha");
        auto builder = std::make_unique<BloomBuilder>();
        BloomGroups& shape = builder->shape_;
        shape.groups = options.choices.value_or(shape.groups);
        shape.hashes = options.hashes.value_or(0);
        if (!sieve_bloom_valid(shape.groups, options.hashes.value_or(1), 1))
            return usage_error(fmt::format("{} groups of {} probes, expected 1 to {} and 1 to {}",
                                           shape.groups, shape.hashes, SIEVE_BLOOM_MAX_GROUPS,
                                           SIEVE_BLOOM_MAX_HASHES));
        builder->rounds_ = rounds_of(options, shape.groups);
        return builder;
    }

    [[nodiscard]] Status describe(std::uint64_t keys, std::uint64_t lines,
                                  sieve_lookup& lookup) const override {
        lookup.kind = SIEVE_KIND_BLOOM;
        lookup.choices = static_cast<std::uint8_t>(shape_.groups);
        lookup.hashes = hashes_for(keys, lines);
        lookup.buckets = static_cast<std::uint32_t>(lines);
        return {};
    }

    [[nodiscard]] Result<std::uint32_t> place(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                              std::span<sieve_line> lines, std::uint64_t seed,
                                              const Progress& progress) const override {
        return place_bloom(keys, lookup, lines, {.search = shape_.search, .rounds = rounds_, .seed = seed},
                           progress)
            .rounds;
    }
};

// Subtables of equal size: lines come in multiples of their number.
std::uint64_t whole_subtables(std::uint64_t lines, std::uint32_t subtables) {
    return std::max<std::uint64_t>(1, lines / subtables) * subtables;
}

class DleftBuilder final : public KindBuilder {
  public:
    static Result<std::unique_ptr<KindBuilder>> create(const KindOptions& options) {
        if (options.alpha) return not_of_kind(options, "alpha");
        if (options.hashes) return not_of_kind(options, "hashes");
        auto builder = std::make_unique<DleftBuilder>();
        builder->shape_ = {.kind = options.kind,
                           .subtables = options.choices.value_or(2),
                           .sorting = options.kind == SIEVE_KIND_DLEFT128 ? 2U : 1U};
        SIEVE_TRY(builder->shape_.check());
        builder->rounds_ = rounds_of(options, builder->shape_.subtables);
        return builder;
    }

    [[nodiscard]] std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) const override {
        return dleft_lines_for_bits(keys, bits_per_key, shape_) * shape_.subtables;
    }

    [[nodiscard]] Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr) const override {
        SIEVE_ASSIGN(const std::uint64_t lines, dleft_lines_for_fpr(keys, fpr, shape_, rounds_));
        return lines * shape_.subtables;
    }

    [[nodiscard]] std::uint64_t usable_lines(std::uint64_t lines) const override {
        return whole_subtables(lines, shape_.subtables);
    }

    [[nodiscard]] Status describe(std::uint64_t, std::uint64_t lines, sieve_lookup& lookup) const override {
        store_shape(shape_, lookup);
        lookup.buckets = static_cast<std::uint32_t>(lines / shape_.subtables);
        return {};
    }

    [[nodiscard]] std::optional<double> model_fpr(std::uint64_t keys,
                                                  const sieve_lookup& lookup) const override {
        return model_dleft_fpr(bits_per_key_of(keys, filter_lines(lookup)), shape_);
    }

    [[nodiscard]] double predict_fpr(std::uint64_t keys, const sieve_lookup& lookup) const override {
        return predict_dleft_fpr(keys, lookup.buckets, shape_, rounds_);
    }

    [[nodiscard]] Result<std::uint32_t> place(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                              std::span<sieve_line> lines, std::uint64_t seed,
                                              const Progress& progress) const override {
        std::vector<sieve_hash> scattered;
        if (rounds_ == 0) {
            // Keys come sorted by their first bucket. Placed for good in that order, buckets fill up one
            // after the other instead of together, which makes for two to four times the rate.
            scattered.assign(keys.begin(), keys.end());
            std::sort(std::execution::par_unseq, scattered.begin(), scattered.end(),
                      [](const sieve_hash& a, const sieve_hash& b) { return a.test < b.test; });
            keys = scattered;
        }
        SIEVE_ASSIGN(const DleftReport report,
                     place_dleft(keys, lookup, lines, {.rounds = rounds_, .seed = seed}, progress));
        return report.rounds;
    }

  private:
    DleftShape shape_;
    std::uint32_t rounds_ = 0;
};

// The counting filter is filled as it will be used: by insertions, in no order, and nothing is rebalanced.
class DdlcbfBuilder final : public KindBuilder {
  public:
    static Result<std::unique_ptr<KindBuilder>> create(const KindOptions& options) {
        if (options.alpha) return not_of_kind(options, "alpha");
        if (options.hashes) return not_of_kind(options, "hashes");
        auto builder = std::make_unique<DdlcbfBuilder>();
        builder->shape_.subtables = options.choices.value_or(builder->shape_.subtables);
        builder->shape_.minimal = default_minimal;
        SIEVE_TRY(builder->shape_.check());
        return builder;
    }

    [[nodiscard]] std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) const override {
        const std::uint64_t lines = KindBuilder::lines_for_bits(keys, bits_per_key);
        return (lines + shape_.subtables - 1) / shape_.subtables * shape_.subtables;
    }

    [[nodiscard]] Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr) const override {
        // In steps of 1%, from as few bits as may do; each try is a small filter.
        for (double bits = std::max(12.0, -std::log2(fpr)); bits < most_bits_per_key; bits *= 1.01) {
            sieve_lookup lookup{};
            const std::uint64_t lines = lines_for_bits(keys, bits);
            SIEVE_TRY(describe(keys, lines, lookup));
            if (predict_fpr(keys, lookup) <= fpr) return lines;
        }
        return usage_error(
            fmt::format("a false positive rate of {:.3g} is out of reach of a counting filter", fpr));
    }

    [[nodiscard]] std::uint64_t usable_lines(std::uint64_t lines) const override {
        return whole_subtables(lines, shape_.subtables);
    }

    [[nodiscard]] Status describe(std::uint64_t, std::uint64_t lines, sieve_lookup& lookup) const override {
        store_shape(shape_, lookup);
        lookup.kind = SIEVE_KIND_DDLCBF;
        lookup.buckets = static_cast<std::uint32_t>(lines / shape_.subtables);
        return {};
    }

    [[nodiscard]] std::optional<double> model_fpr(std::uint64_t, const sieve_lookup&) const override {
        return {};
    }

    [[nodiscard]] double predict_fpr(std::uint64_t keys, const sieve_lookup& lookup) const override {
        const std::uint64_t sample = std::min(keys, sample_keys);
        sieve_lookup small = lookup;
        small.buckets = static_cast<std::uint32_t>(std::max<std::uint64_t>(
            1, std::llround(static_cast<double>(lookup.buckets) * static_cast<double>(sample) /
                            static_cast<double>(keys))));
        const std::uint64_t filters = std::min<std::uint64_t>(64, (sample_keys + sample - 1) / sample);
        std::mt19937_64 random(sample_seed);
        double rate = 0;
        for (std::uint64_t f = 0; f < filters; f++) {
            std::vector<sieve_hash> hashes(sample);
            for (auto& hash : hashes) hash = {random(), random()};
            std::vector<sieve_line> lines(filter_lines(small));
            if (!place(hashes, small, lines, 0, {})) return 1;
            rate += expected_query_rate(small, lines, sample);
        }
        return rate / static_cast<double>(filters);
    }

    [[nodiscard]] Result<std::uint32_t> place(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                              std::span<sieve_line> lines, std::uint64_t,
                                              const Progress& progress) const override {
        SIEVE_ASSIGN(DdlcbfFilter filter, DdlcbfFilter::open(lookup, lines));
        for (std::size_t i = 0; i < keys.size(); i++) {
            if (progress && (i & 0xffff) == 0)
                progress("inserting", static_cast<double>(i) / static_cast<double>(keys.size()));
            if (auto inserted = filter.insert(keys[i]); !inserted)
                return bad_input(fmt::format("key {} of {} does not fit: {}; give more bits per key", i + 1,
                                             keys.size(), inserted.error().message));
        }
        return 0U;
    }

  private:
    // Measured to wear least under exchanges (filters/ddlcbf_filter.hpp).
    static constexpr std::uint32_t default_minimal = 11;
    static constexpr std::uint64_t sample_keys = 32768;
    static constexpr std::uint64_t sample_seed = 0x5349455645;

    DdlcbfShape shape_;
};

} // namespace

std::uint64_t KindBuilder::lines_for_bits(std::uint64_t keys, double bits_per_key) const {
    return sieve::lines_for_bits(keys, bits_per_key);
}

Result<std::unique_ptr<KindBuilder>> kind_builder(const KindOptions& options) {
    switch (options.kind) {
    case SIEVE_KIND_BLOOM:
        return BloomBuilder::create(options);
    case SIEVE_KIND_DLEFT64:
    case SIEVE_KIND_DLEFT128:
        return DleftBuilder::create(options);
    case SIEVE_KIND_DDLCBF:
        return DdlcbfBuilder::create(options);
    default:
        return BlockedBuilder::create(options);
    }
}

double expected_query_rate(const sieve_lookup& lookup, std::span<const sieve_line> lines,
                           std::uint64_t keys) {
    switch (lookup.kind) {
    case SIEVE_KIND_BLOOM: {
        std::uint64_t ones = 0;
        for (const sieve_line& line : lines)
            for (const auto word : line.word) ones += static_cast<std::uint64_t>(std::popcount(word));
        return bloom_rate(static_cast<double>(ones) / static_cast<double>(lines.size() * SIEVE_LINE_BITS),
                          lookup.hashes, lookup.choices);
    }
    case SIEVE_KIND_DLEFT64:
    case SIEVE_KIND_DLEFT128:
        return expected_dleft_fpr(lookup, lines);
    case SIEVE_KIND_DDLCBF: {
        std::vector<sieve_line> copy(lines.begin(), lines.end()); // it opens filters for change only
        const auto filter = DdlcbfFilter::open(lookup, copy);
        return filter ? filter->expected_fpr() : 1;
    }
    default:
        return expected_blocked_rate(lookup, lines, keys);
    }
}

std::string describe_geometry(const sieve_lookup& lookup) {
    switch (lookup.kind) {
    case SIEVE_KIND_BLOOM:
        return fmt::format("{} group{} of {} probes to choose from", lookup.choices,
                           lookup.choices == 1 ? "" : "s", lookup.hashes);
    case SIEVE_KIND_DLEFT64:
    case SIEVE_KIND_DLEFT128:
    case SIEVE_KIND_DDLCBF:
        return fmt::format("{} subtables of {} lines", lookup.choices, lookup.buckets);
    default: {
        std::string text = fmt::format("{} bits set by a key, {} line{} to choose from", lookup.hashes,
                                       lookup.choices, lookup.choices == 1 ? "" : "s");
        if (lookup.choices > 1 && lookup.alpha != 0xffff)
            text += fmt::format(" for {:.0f}% of keys", alpha_from_image(lookup.alpha) * 100);
        return text;
    }
    }
}

const char* model_name(std::uint32_t kind) {
    switch (kind) {
    case SIEVE_KIND_BLOOM:
        return "eq. (3.2) of the two-choice paper";
    case SIEVE_KIND_DLEFT64:
    case SIEVE_KIND_DLEFT128:
        return "formula (1) of the d-left paper";
    default:
        return "eq. (3.4) of the one-plus-alpha paper";
    }
}

} // namespace sieve
