// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `blocked` (sieve/blocked.h): a Bloom filter of 512-bit lines, each key in one of a few lines.
#pragma once

#include "libsieve/filters/filter_kind.hpp"

namespace sieve {

class BlockedKind final : public FilterKind {
  public:
    constexpr BlockedKind()
        : FilterKind(
              {.number = SIEVE_KIND_BLOCKED,
               .name = "blocked",
               .summary = "two cache lines a packet, good at every size",
               .choices =
                   {.one = "choice", .many = "choices", .least = 1, .most = SIEVE_MAX_CHOICES, .standard = 2},
               .takes_alpha = true,
               .takes_hashes = true,
               .has_shards = true,
               .model = "eq. (3.4) of the one-plus-alpha paper",
               .figures = {.excess_bits = 4.0, .lines = 2}}) {}

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
    [[nodiscard]] std::vector<KindOptions> forms() const override;
};

extern const BlockedKind blocked_kind;

} // namespace sieve
