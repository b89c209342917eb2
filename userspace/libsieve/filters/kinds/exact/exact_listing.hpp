// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A table of kind `exact` (sieve/exact_table.h) read back: each line says which addresses it holds, and
// whether packets would find them there.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <sieve/exact_table.h>

#include "libsieve/keys/address_range.hpp"

namespace sieve::exact {

/// The parts of a filter whose geometry has no fault.
struct Parts {
    const sieve_exact& exact;
    const sieve_exact_ipv6& ipv6;
    std::span<const sieve_line> filter;

    static Parts of(const sieve_lookup& lookup, std::span<const sieve_line> filter);
    [[nodiscard]] const __u64* words() const { return filter[SIEVE_EXACT_IPV4_LINE].word; }
    [[nodiscard]] std::span<const sieve_line> ipv6_lines() const {
        return filter.subspan(sieve_exact_ipv6_line(&exact));
    }
};

/// What is wrong with the filter's line 0; empty if nothing is. The functions below need a line without a
/// fault.
[[nodiscard]] std::string parts_fault(const Parts& parts);

/// Calls visit for each address of the lines from `first` to before `last` of the filter, by number (IPv4 in
/// its v4-mapped form). Returns what is wrong with an entry, and where; empty if nothing is. `check`: also
/// whether a second copy of an address lies elsewhere in the table; without it, the lines alone are read.
[[nodiscard]] std::string list_lines(const Parts& parts, std::uint64_t first, std::uint64_t last, bool check,
                                     const std::function<void(uint128 address)>& visit);

} // namespace sieve::exact
