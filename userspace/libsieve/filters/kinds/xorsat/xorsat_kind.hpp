// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `xorsat` (sieve/xorsat.h): fingerprints as solutions of linear equations, one system a cache line.
#pragma once

#include <sieve/xorsat.h>

#include "libsieve/filters/filter_kind.hpp"

namespace sieve {

class XorsatKind final : public FilterKind {
  public:
    constexpr XorsatKind()
        : FilterKind(
              {.number = SIEVE_KIND_XORSAT,
               .name = "xorsat",
               .summary = "one cache line a packet, the fewest false positives at every size; slow to build",
               .choices = {.one = "line",
                           .many = "lines",
                           .least = 1,
                           .most = SIEVE_XORSAT_MAX_LINES,
                           .standard = 2},
               .model = "the rank of random equations over GF(2), Poisson loads",
               .figures = {.excess_bits = 0.7, .lines = 1.2, .least_rate = 2.7e-10}}) {}

    [[nodiscard]] std::string geometry_fault(const sieve_lookup& lookup) const override;
    [[nodiscard]] std::uint64_t lines(const sieve_lookup& lookup) const override;
    [[nodiscard]] bool holds(const sieve_lookup& lookup, const sieve_hash& hash,
                             const sieve_line* filter) const override;
    [[nodiscard]] double expected_rate(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                       std::uint64_t keys) const override;
    [[nodiscard]] std::vector<double> expected_rates(const sieve_lookup& lookup,
                                                     std::span<const sieve_line> filter, std::uint64_t keys,
                                                     std::uint32_t parts) const override;
    [[nodiscard]] std::string geometry(const sieve_lookup& lookup) const override;
    [[nodiscard]] std::string parameters(const sieve_lookup& lookup, std::uint64_t keys) const override;
    [[nodiscard]] LinesTouched lines_touched(const sieve_lookup& lookup, double fpr) const override;
    [[nodiscard]] std::uint32_t rounds(Effort effort, std::uint32_t choices) const override;
    [[nodiscard]] Result<std::unique_ptr<KindBuilder>> builder(const KindOptions& options) const override;
    [[nodiscard]] std::vector<KindOptions> forms() const override;
};

extern const XorsatKind xorsat_kind;

} // namespace sieve
