// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/xorsat/xorsat_kind.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "libsieve/analysis/xorsat.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_builder.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_plan.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_rate.hpp"
#include "libsieve/filters/sizing.hpp"

namespace sieve {

namespace {

// Sweeps of all eighths before the first round. With fewer, the price of an export falls too fast
// (xorsat_exports.cpp): with two, the rate is 8% higher.
constexpr std::uint32_t least_sweeps = 4;

class XorsatKindBuilder final : public KindBuilder {
  public:
    XorsatKindBuilder(std::uint32_t choices, std::uint32_t rounds)
        : choices_(choices), rounds_(choices > 1 ? rounds : 0),
          sweeps_(choices > 1 ? rounds + least_sweeps : 0) {}

    [[nodiscard]] std::uint64_t lines_for_bits(std::uint64_t keys, double bits_per_key) const override {
        return sieve::lines_for_bits(keys, bits_per_key);
    }

    [[nodiscard]] Result<std::uint64_t> lines_for_fpr(std::uint64_t keys, double fpr) const override {
        return xorsat_lines_for_fpr(keys, fpr, sweeps_);
    }

    [[nodiscard]] std::uint64_t usable_lines(std::uint64_t lines) const override { return lines; }

    [[nodiscard]] Status describe(std::uint64_t, std::uint64_t lines, sieve_lookup& lookup) const override {
        lookup.kind = SIEVE_KIND_XORSAT;
        lookup.choices = static_cast<std::uint8_t>(choices_);
        lookup.buckets = static_cast<std::uint32_t>(lines);
        return {};
    }

    [[nodiscard]] std::optional<double> model_fpr(std::uint64_t keys,
                                                  const sieve_lookup& lookup) const override {
        return analysis::xorsat::rate_without_exports(bits_per_key_of(keys, lookup.buckets));
    }

    [[nodiscard]] double predict_fpr(std::uint64_t keys, const sieve_lookup& lookup) const override {
        return predict_xorsat_fpr(keys, lookup.buckets, sweeps_);
    }

    [[nodiscard]] Result<std::uint32_t> fill(std::span<const sieve_hash> keys, const sieve_lookup& lookup,
                                             std::span<sieve_line> lines, std::uint64_t,
                                             const Progress& progress) const override {
        fill_xorsat(keys, lookup, lines, sweeps_, progress);
        return rounds_;
    }

  private:
    std::uint32_t choices_;
    std::uint32_t rounds_;
    std::uint32_t sweeps_;
};

} // namespace

const constinit XorsatKind xorsat_kind;

std::string XorsatKind::geometry_fault(const sieve_lookup& lookup) const {
    if (lookup.hashes != 0 || lookup.alpha != 0)
        return fmt::format("hashes {} and alpha {}, expected 0", lookup.hashes, lookup.alpha);
    return {};
}

std::uint64_t XorsatKind::lines(const sieve_lookup& lookup) const {
    return lookup.buckets;
}

bool XorsatKind::holds(const sieve_lookup& lookup, const sieve_hash& hash, const sieve_line* filter) const {
    std::uint32_t line = sieve_xorsat_line(&lookup, hash);
    const std::uint32_t eighth = sieve_xorsat_eighth(hash);
    if (sieve_xorsat_exports(filter + line, eighth) != 0) line = sieve_xorsat_other(&lookup, line, eighth);
    return sieve_xorsat_test(filter + line, hash) != 0;
}

double XorsatKind::expected_rate(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                 std::uint64_t) const {
    return expected_xorsat_rate(lookup, filter);
}

// A part's lines alone would not do: the lines that keep what they export are among the whole filter's.
std::vector<double> XorsatKind::expected_rates(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                               std::uint64_t, std::uint32_t parts) const {
    return expected_xorsat_rates(lookup, filter, parts);
}

std::string XorsatKind::geometry(const sieve_lookup& lookup) const {
    return lookup.choices > 1 ? "one line for each key, some in another line than their own"
                              : "one line for each key";
}

std::string XorsatKind::parameters(const sieve_lookup& lookup, std::uint64_t keys) const {
    return fmt::format("{}, load {:.1f}", count_choices(lookup.choices),
                       static_cast<double>(keys) / lookup.buckets);
}

LinesTouched XorsatKind::lines_touched(const sieve_lookup& lookup, double fpr) const {
    // The builder exports about seven eighths in a thousand for each bit that a key compares.
    const double exported = lookup.choices > 1 ? std::clamp(-0.007 * std::log2(fpr), 0.0, 0.2) : 0;
    return {.non_member = 1 + exported, .member = 1 + exported};
}

std::uint32_t XorsatKind::rounds(Effort effort, std::uint32_t choices) const {
    if (choices < 2) return 0;
    switch (effort) {
    case Effort::fast:
        return 0;
    case Effort::normal:
        return 6;
    case Effort::best:
        return 14;
    }
    return 0;
}

Result<std::unique_ptr<KindBuilder>> XorsatKind::builder(const KindOptions& options) const {
    return std::make_unique<XorsatKindBuilder>(choices_of(options), rounds_of(options));
}

std::vector<KindOptions> XorsatKind::forms() const {
    return {{.kind = SIEVE_KIND_XORSAT, .choices = 1}, {.kind = SIEVE_KIND_XORSAT, .choices = 2}};
}

} // namespace sieve
