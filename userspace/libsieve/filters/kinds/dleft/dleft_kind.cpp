// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/dleft/dleft_kind.hpp"

#include <fmt/core.h>

#include "libsieve/filters/kinds/dleft/dleft_builder.hpp"
#include "libsieve/filters/kinds/dleft/dleft_plan.hpp"
#include "libsieve/filters/placement/shards.hpp"
#include "libsieve/filters/sizing.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {

namespace {

class DleftKindBuilder final : public KindBuilder {
  public:
    DleftKindBuilder(const DleftShape& shape, std::uint32_t rounds) : shape_(shape), rounds_(rounds) {}

    [[nodiscard]] std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) const override {
        return whole_shards(dleft_lines_for_bits(keys, bits_per_key, shape_), shape_.subtables) *
               shape_.subtables;
    }

    [[nodiscard]] Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr) const override {
        SIEVE_ASSIGN(const std::uint64_t lines, dleft_lines_for_fpr(keys, fpr, shape_, rounds_));
        return whole_shards(lines, shape_.subtables) * shape_.subtables;
    }

    [[nodiscard]] std::uint64_t usable_lines(std::uint64_t lines) const override {
        const std::uint32_t bits = shard_bits_for(lines);
        return (lines / shape_.subtables >> bits << bits) * shape_.subtables;
    }

    [[nodiscard]] Status describe(std::uint64_t, std::uint64_t lines, sieve_lookup& lookup) const override {
        store_shape(shape_, lookup);
        lookup.buckets = static_cast<std::uint32_t>(lines / shape_.subtables);
        lookup.shard_bits = static_cast<std::uint8_t>(shard_bits_for(lines));
        return {};
    }

    [[nodiscard]] std::optional<double> model_fpr(std::uint64_t keys,
                                                  const sieve_lookup& lookup) const override {
        return model_dleft_fpr(bits_per_key_of(keys, std::uint64_t{lookup.choices} * lookup.buckets), shape_);
    }

    [[nodiscard]] double predict_fpr(std::uint64_t keys, const sieve_lookup& lookup) const override {
        return predict_dleft_fpr(keys, lookup.buckets, shape_, rounds_);
    }

    [[nodiscard]] Result<std::uint32_t> fill(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                             std::span<sieve_line> lines, std::uint64_t seed,
                                             const Progress& progress) const override {
        SIEVE_ASSIGN(const DleftReport report,
                     place_dleft(keys, lookup, lines, options_with(seed), progress));
        return report.rounds;
    }
    [[nodiscard]] Result<std::uint32_t> fill_shards(std::span<const sieve_hash> keys,
                                                    const sieve_lookup& lookup, std::span<sieve_line> lines,
                                                    std::uint32_t first, std::uint32_t count,
                                                    std::uint64_t seed) const override {
        SIEVE_ASSIGN(const DleftReport report,
                     place_dleft_shards(keys, lookup, lines, first, count, options_with(seed), {}));
        return report.rounds;
    }

  private:
    [[nodiscard]] DleftOptions options_with(std::uint64_t seed) const {
        return {.rounds = rounds_, .scatter = rounds_ == 0, .seed = seed};
    }

    DleftShape shape_;
    std::uint32_t rounds_;
};

} // namespace

const constinit DleftKind dleft64_kind{SIEVE_KIND_DLEFT64,
                                       "dleft64",
                                       "fingerprints in 64-bit buckets, two cache lines a packet, more "
                                       "accurate than `blocked` at 16 to 19 bits per key",
                                       {.excess_bits = 3.6, .lines = 2, .least_rate = 1e-5}};
const constinit DleftKind dleft128_kind{SIEVE_KIND_DLEFT128,
                                        "dleft128",
                                        "fingerprints in 128-bit buckets, two cache lines a packet, more "
                                        "accurate than `blocked` from 17 bits per key on",
                                        {.excess_bits = 4.1, .lines = 2, .least_rate = 1e-7}};

std::string DleftKind::geometry_fault(const sieve_lookup& lookup) const {
    if (lookup.buckets > SIEVE_DLEFT_MAX_LINES)
        return fmt::format("subtables of {} lines, expected at most {}", lookup.buckets,
                           SIEVE_DLEFT_MAX_LINES);
    const std::uint32_t most_sorted = facts().number == SIEVE_KIND_DLEFT128 ? 2 : 1;
    if ((lookup.hashes & SIEVE_DLEFT_SORTING) > most_sorted ||
        (lookup.hashes & ~(SIEVE_DLEFT_SORTING | SIEVE_DLEFT_GROUPED)) != 0)
        return fmt::format("bucket format {:#x}, expected up to {} sorted bits, grouped or not",
                           lookup.hashes, most_sorted);
    return {};
}

std::uint64_t DleftKind::lines(const sieve_lookup& lookup) const {
    return std::uint64_t{lookup.choices} * lookup.buckets;
}

bool DleftKind::holds(const sieve_lookup& lookup, const sieve_hash& hash, const sieve_line* filter) const {
    std::uint32_t at[SIEVE_DLEFT_MAX_SUBTABLES];
    std::uint32_t position[SIEVE_DLEFT_MAX_SUBTABLES];
    sieve_dleft_locate(&lookup, hash, at, position);
    if (sieve_dleft_is_usual(&lookup) != 0) {
        const __u64* const first = filter[at[0]].word;
        const __u64* const second = filter[at[1]].word;
        if (lookup.kind == SIEVE_KIND_DLEFT64)
            return sieve_dleft64_test(first[position[0]], second[position[1]], hash.test) != 0;
        return sieve_dleft128_test(first + std::size_t{2} * position[0],
                                   second + std::size_t{2} * position[1], hash.test) != 0;
    }
    const sieve_line* line[SIEVE_DLEFT_MAX_SUBTABLES];
    for (int i = 0; i < SIEVE_DLEFT_MAX_SUBTABLES; i++) line[i] = filter + at[i];
    return sieve_dleft_test(&lookup, hash, line, position) != 0;
}

double DleftKind::expected_rate(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                std::uint64_t) const {
    return expected_dleft_fpr(lookup, filter);
}

std::string DleftKind::geometry(const sieve_lookup& lookup) const {
    return fmt::format("{} of {}", count_choices(lookup.choices), counted(lookup.buckets, "line")) +
           shards_in_words(lookup, lines(lookup));
}

std::string DleftKind::parameters(const sieve_lookup& lookup, std::uint64_t keys) const {
    const DleftShape shape = shape_of(lookup);
    const double buckets = static_cast<double>(lines(lookup)) * shape.buckets_per_line();
    return fmt::format("{}, load {:.1f}, {}", count_choices(shape.subtables),
                       static_cast<double>(keys) / buckets, counted(shape.sorting, "sorted bit"));
}

LinesTouched DleftKind::lines_touched(const sieve_lookup& lookup, double) const {
    return {.non_member = static_cast<double>(lookup.choices), .member = static_cast<double>(lookup.choices)};
}

std::uint32_t DleftKind::rounds(Effort effort, std::uint32_t) const {
    switch (effort) {
    case Effort::fast:
        return 0;
    case Effort::normal:
        return 16;
    case Effort::best:
        return 64;
    }
    return 0;
}

Result<std::unique_ptr<KindBuilder>> DleftKind::builder(const KindOptions& options) const {
    const DleftShape shape{.kind = facts().number,
                           .subtables = choices_of(options),
                           .sorting = facts().number == SIEVE_KIND_DLEFT128 ? 2U : 1U};
    SIEVE_TRY(shape.check());
    return std::make_unique<DleftKindBuilder>(shape, rounds_of(options));
}

} // namespace sieve
