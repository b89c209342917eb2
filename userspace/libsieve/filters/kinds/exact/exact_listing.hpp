// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A table of kind `exact` (sieve/exact_table.h) read back: each line says which addresses it holds, and
// whether packets would find them there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sieve/exact_table.h>

#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/exact/exact_ends.hpp"
#include "libsieve/keys/address_range.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::exact {

/// The parts of a filter whose geometry has no fault.
struct Parts {
    const sieve_exact& exact;
    const sieve_exact_ipv6& ipv6;
    std::span<const sieve_line> filter;

    static Parts of(const sieve_lookup& lookup, std::span<const sieve_line> filter);
    [[nodiscard]] Values values() const;
    [[nodiscard]] const __u64* words() const { return filter[SIEVE_EXACT_IPV4_LINE].word; }
    [[nodiscard]] std::span<const sieve_line> ipv6_lines() const {
        return filter.subspan(sieve_exact_ipv6_line(&exact), ipv6.lines);
    }
    /// Empty if there are no values.
    [[nodiscard]] std::span<const sieve_line> ipv6_values() const {
        return filter.subspan(sieve_exact_ipv6_line(&exact) + ipv6.lines);
    }
};

/// What is wrong with the filter's line 0; empty if nothing is. The functions below need a line without a
/// fault.
[[nodiscard]] std::string parts_fault(const Parts& parts);

/// The value of an address of a table with values, if the table has it, ended or not. Runs the code of the
/// packet path.
[[nodiscard]] std::optional<std::uint32_t> value_in(const Parts& parts, std::uint64_t upper,
                                                    std::uint64_t lower);

/// Calls visit for each address of the lines from `first` to before `last` of the filter, by number (IPv4 in
/// its v4-mapped form), with its value, and whether it is marked. Returns what is wrong with an entry, and
/// where; empty if nothing is. `check`: also whether a second copy of an address lies elsewhere in the table;
/// without it, the lines alone are read, with the values of those.
using Visit = std::function<void(uint128 address, std::uint32_t value, bool marked)>;
[[nodiscard]] std::string list_lines(const Parts& parts, std::uint64_t first, std::uint64_t last, bool check,
                                     const Visit& visit);

/// All entries of a table, by family. The values are empty in a table without values.
struct Entries {
    std::vector<std::uint32_t> ipv4{};
    std::vector<uint128> ipv6{};
    std::vector<std::uint16_t> ipv4_values{};
    std::vector<std::uint16_t> ipv6_values{};
};

/// The entries, those that have ended included. bad_input, without an origin: what is wrong with the table.
[[nodiscard]] Result<Entries> entries_of(const Parts& parts);

/// What a portion of a filter's entries adds up to, or what is wrong with one of them.
struct PortionSum {
    KeySum sum{};
    std::string fault{};
};

/// Adds up so many portions, side by side. Error (bad_input): the fault of the first one that has any.
[[nodiscard]] Result<KeySum> sum_of_portions(std::size_t count,
                                             const std::function<PortionSum(std::size_t portion)>& add_up);

/// Checks every entry of the filter against all others. Returns the number of its members and the sum of
/// their hashes. Error (bad_input, without an origin): what is wrong, and where.
[[nodiscard]] Result<KeySum> sum_of_table(const sieve_lookup& lookup, std::span<const sieve_line> filter);

} // namespace sieve::exact
