// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kinds of filter as an image tells them apart: names, what of a header makes sense, and a query.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <sieve/image.h>

#include "libsieve/util/result.hpp"

namespace sieve {

// "blocked", "bloom", "dleft64", "dleft128", "ddlcbf"; "unknown" for any other number.
const char* kind_name(std::uint32_t kind);

// The kind of that name, or a usage error that lists all.
Result<sieve_kind> parse_kind(std::string_view name);

// What is wrong with line 0's geometry, whatever the filter's content; empty if nothing is.
std::string geometry_fault(const sieve_lookup& lookup);

// Lines that a filter of this header has. The header must have no geometry_fault.
std::uint64_t filter_lines(const sieve_lookup& lookup);

// Whether the filter holds the key of this hash: locate, fetch and test of the kind's shared header, fetching
// from memory. `filter` has filter_lines(lookup) lines.
bool filter_holds(const sieve_lookup& lookup, const sieve_hash& hash, const sieve_line* filter);

} // namespace sieve
