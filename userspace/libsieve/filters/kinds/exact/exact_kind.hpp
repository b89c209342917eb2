// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kind `exact` (sieve/exact_table.h): single addresses of both families, or keys of several fields,
// without false positives.
#pragma once

#include <sieve/exact_table.h>

#include "libsieve/filters/exact_kind.hpp"

namespace sieve {

class ExactTableKind final : public ExactKind {
  public:
    constexpr ExactTableKind()
        : ExactKind({.number = SIEVE_KIND_EXACT,
                     .name = "exact",
                     .summary = "single addresses, exactly, at a filter's size",
                     .choices = {.one = "word", .many = "words", .least = 2, .most = 2, .standard = 2},
                     .has_marks = true,
                     .changes_live = true}) {}

    [[nodiscard]] std::string geometry_fault(const sieve_lookup& lookup) const override;
    [[nodiscard]] std::uint64_t lines(const sieve_lookup& lookup) const override;
    [[nodiscard]] std::string geometry(const sieve_lookup& lookup) const override;
    [[nodiscard]] std::string parameters(const sieve_lookup& lookup, std::uint64_t keys) const override;
    [[nodiscard]] LinesTouched lines_touched(const sieve_lookup& lookup, double fpr) const override;
    [[nodiscard]] bool holds_key(const sieve_lookup& lookup, const sieve_key& key,
                                 std::span<const sieve_line> filter) const override;

    [[nodiscard]] Status for_each_range(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                        const std::function<void(const AddressRange&)>& visit) const override;

    [[nodiscard]] bool is_of_keys() const override { return true; }
    using ExactKind::work_out;
    [[nodiscard]] Result<std::unique_ptr<ExactFilter>>
    work_out(const KeySet& keys, const Spare& spare,
             std::span<const __u64, SIEVE_HASH_KEY_WORDS> secret) const override;
    [[nodiscard]] std::uint64_t lines_for(std::uint64_t ipv4, std::uint64_t ipv6) const override;
    [[nodiscard]] Result<KeySet> list(const sieve_lookup& lookup,
                                      std::span<const sieve_line> filter) const override;
    [[nodiscard]] Status for_each_entry(const sieve_lookup& lookup, std::span<const sieve_line> filter,
                                        std::uint64_t now, const VisitEntry& visit) const override;
    [[nodiscard]] bool states_ends(std::uint32_t fields) const override;
    [[nodiscard]] std::uint64_t least_delay_of_ends(std::uint64_t longest) const override;
    [[nodiscard]] bool has_ends(const sieve_lookup& lookup,
                                std::span<const sieve_line> filter) const override;
    [[nodiscard]] bool has_marks(const sieve_lookup& lookup) const override;
    [[nodiscard]] Result<KeySum> add_up(const sieve_lookup& lookup,
                                        std::span<const sieve_line> filter) const override;
    [[nodiscard]] Result<std::unique_ptr<ChangeableTable>>
    open_table(const sieve_lookup& lookup, sieve_file& file, std::span<sieve_line> lines) const override;
};

extern const ExactTableKind exact_kind;

} // namespace sieve
