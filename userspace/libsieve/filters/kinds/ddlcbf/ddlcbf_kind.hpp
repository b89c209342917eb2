// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `ddlcbf` (sieve/ddlcbf.h): fingerprints with counters, so that keys and prefixes can be inserted
// and deleted while the filter is in force.
#pragma once

#include <sieve/ddlcbf.h>

#include "libsieve/filters/filter_kind.hpp"

namespace sieve {

class DdlcbfKind final : public FilterKind {
  public:
    // At 20 bits a key, a new filter is just full; the default size leaves room for insertions.
    constexpr DdlcbfKind()
        : FilterKind({.number = SIEVE_KIND_DDLCBF,
                      .name = "ddlcbf",
                      .summary = "keys and prefixes go in and out while it is in force",
                      .choices = {.one = "subtable",
                                  .many = "subtables",
                                  .least = SIEVE_DLEFT_MIN_SUBTABLES,
                                  .most = SIEVE_DLEFT_MAX_SUBTABLES,
                                  .standard = 4},
                      .bits_per_key = 24,
                      .least_bits_per_key = 20,
                      .changes_live = true,
                      .figures = {.excess_bits = 9.0, .lines = 4}}) {}

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
    [[nodiscard]] Result<std::unique_ptr<ChangeableFilter>>
    open_for_change(const sieve_lookup& lookup, std::span<sieve_line> lines) const override;
};

extern const DdlcbfKind ddlcbf_kind;

} // namespace sieve
