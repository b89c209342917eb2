// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `ranges` (sieve/ranges.h): addresses, prefixes and ranges of any lengths, exactly.
#pragma once

#include "libsieve/filters/exact_kind.hpp"

namespace sieve {

class RangesKind final : public ExactKind {
  public:
    constexpr RangesKind()
        : ExactKind({.number = SIEVE_KIND_RANGES,
                     .name = "ranges",
                     .summary = "prefixes and ranges of any lengths, exactly",
                     .choices = {.one = "place", .many = "places", .least = 1, .most = 1, .standard = 1}}) {}

    [[nodiscard]] std::string geometry_fault(const sieve_lookup& lookup) const override;
    [[nodiscard]] std::uint64_t lines(const sieve_lookup& lookup) const override;
    [[nodiscard]] std::string geometry(const sieve_lookup& lookup) const override;
    [[nodiscard]] std::string parameters(const sieve_lookup& lookup, std::uint64_t keys) const override;
    [[nodiscard]] LinesTouched lines_touched(const sieve_lookup& lookup, double fpr) const override;
    [[nodiscard]] bool holds_key(const sieve_lookup& lookup, const sieve_key& key,
                                 std::span<const sieve_line> filter) const override;
    [[nodiscard]] Status for_each_range(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                        const std::function<void(const AddressRange&)>& visit) const override;
    [[nodiscard]] bool is_of_keys() const override { return false; }
    using ExactKind::work_out;
    [[nodiscard]] Result<std::unique_ptr<ExactFilter>> work_out(const AddressSet& members) const override;
};

extern const RangesKind ranges_kind;

} // namespace sieve
