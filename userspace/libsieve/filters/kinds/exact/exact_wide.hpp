// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The form of kind `exact` for keys of several fields (sieve/exact_table.h): the filter's lines are records
// (sieve/records.h), and the header's hash keys are those of the sum.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <sieve/exact_table.h>

#include "libsieve/filters/exact_kind.hpp"

namespace sieve::exact {

[[nodiscard]] inline bool is_wide(std::uint32_t fields) {
    return sieve_is_one_address(fields) == 0;
}

/// What is wrong with the header; empty if nothing is. The functions below need one without a fault. Whatever
/// the lines hold, they end.
[[nodiscard]] std::string wide_fault(const sieve_lookup& lookup);

/// "62,504 rows of 16 tags, records of 40 bytes"
[[nodiscard]] std::string wide_geometry(const sieve_lookup& lookup);
[[nodiscard]] LinesTouched wide_lines_touched(const sieve_lookup& lookup);

[[nodiscard]] bool wide_holds(const sieve_lookup& lookup, const sieve_key& key,
                              std::span<const sieve_line> filter);

/// As ExactKind::work_out(), list(), add_up() and open_table().
[[nodiscard]] Result<std::unique_ptr<ExactFilter>>
work_out_wide(const KeySet& keys, std::uint64_t room, std::span<const __u64, SIEVE_HASH_KEY_WORDS> secret);
[[nodiscard]] Result<KeySet> list_wide(const sieve_lookup& lookup, std::span<const sieve_line> filter);
[[nodiscard]] Result<KeySum> add_up_wide(const sieve_lookup& lookup, std::span<const sieve_line> filter);
[[nodiscard]] Result<std::unique_ptr<ChangeableTable>> open_wide(const sieve_lookup& lookup, sieve_file& file,
                                                                 std::span<sieve_line> lines);

} // namespace sieve::exact
