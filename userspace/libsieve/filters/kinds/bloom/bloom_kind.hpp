// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `bloom` (sieve/bloom.h): a Bloom filter in which a key sets bits anywhere, chosen by one of a few
// groups of hash functions.
#pragma once

#include <sieve/bloom.h>

#include "libsieve/filters/filter_kind.hpp"

namespace sieve {

class BloomKind final : public FilterKind {
  public:
    constexpr BloomKind()
        : FilterKind(
              {.number = SIEVE_KIND_BLOOM,
               .name = "bloom",
               .summary = "more accurate than `blocked` at every size, at ten and more cache lines a match",
               .choices = {.one = "group",
                           .many = "groups",
                           .least = 1,
                           .most = SIEVE_BLOOM_MAX_GROUPS,
                           .standard = 3},
               .takes_hashes = true,
               .rebalances_slowly = true,
               .model = "eq. (3.2) of the two-choice paper",
               .figures = {.excess_bits = 3.2, .lines = 16}}) {}

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

extern const BloomKind bloom_kind;

} // namespace sieve
