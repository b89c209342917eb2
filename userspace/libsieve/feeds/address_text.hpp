// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Addresses as text.
#pragma once

#include <cstdint>
#include <string>

namespace sieve {

// An address of a flow key: v4-mapped ones as IPv4, all others as RFC 5952 writes IPv6 (lower case, the
// longest run of at least two zero groups as "::", the first of equals).
[[nodiscard]] std::string format_address(std::uint64_t upper, std::uint64_t lower);

} // namespace sieve
