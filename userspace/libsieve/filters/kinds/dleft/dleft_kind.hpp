// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kinds `dleft64` and `dleft128` (sieve/dleft.h): fingerprints in buckets of 64 or 128 bits.
#pragma once

#include <sieve/dleft.h>

#include "libsieve/filters/filter_kind.hpp"

namespace sieve {

class DleftKind final : public FilterKind {
  public:
    constexpr DleftKind(sieve_kind number, const char* name, const char* summary, const KindFigures& figures)
        : FilterKind({.number = number,
                      .name = name,
                      .summary = summary,
                      .choices = {.one = "subtable",
                                  .many = "subtables",
                                  .least = SIEVE_DLEFT_MIN_SUBTABLES,
                                  .most = SIEVE_DLEFT_MAX_SUBTABLES,
                                  .standard = 2},
                      .has_shards = true,
                      .model = "formula (1) of the d-left paper",
                      .figures = figures}) {}

    [[nodiscard]] std::string geometry_fault(const sieve_lookup& lookup) const override;
    [[nodiscard]] std::uint64_t lines(const sieve_lookup& lookup) const override;
    [[nodiscard]] bool holds(const sieve_lookup& lookup, const sieve_hash& hash,
                             const sieve_line* filter) const override;
    [[nodiscard]] double expected_rate(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                       std::uint64_t keys) const override;
    [[nodiscard]] std::string geometry(const sieve_lookup& lookup) const override;
    [[nodiscard]] std::string parameters(const sieve_lookup& lookup, std::uint64_t keys) const override;
    [[nodiscard]] LinesTouched lines_touched(const sieve_lookup& lookup, double fpr) const override;
    [[nodiscard]] std::uint32_t rounds(Effort effort, std::uint32_t choices) const override;
    [[nodiscard]] Result<std::unique_ptr<KindBuilder>> builder(const KindOptions& options) const override;
};

extern const DleftKind dleft64_kind;
extern const DleftKind dleft128_kind;

} // namespace sieve
